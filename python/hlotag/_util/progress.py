# SPDX-License-Identifier: Apache-2.0
"""The running step, on a line on stderr: if stderr is a terminal and the step takes more than a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from hlotag._text import printable

_PATIENCE = 1.0  # seconds before the line appears
_BIG = 4 << 20  # bytes that MLIR reads in about a second
_ItemT = TypeVar("_ItemT")


class _Line:
    """The text of the line, which rich reads each time that it draws the line."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text(f"hlotag: {printable(self.text)}")


_line: ContextVar[_Line | None] = ContextVar("hlotag_progress", default=None)


@contextmanager
def step(what: str, size: int = 0) -> Iterator[None]:
    """Shows a running step on the terminal. Within the outermost step nothing else may be printed.

    `size` is bytes to parse. MLIR keeps Python from running meanwhile, so a step of many bytes is shown at once.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    if (outer := _line.get()) is not None:
        before, outer.text = outer.text, what
        yield
        outer.text = before
        return
    line, shown = _Line(what), []

    def show() -> None:
        from rich.console import Console

        shown.append(Console(stderr=True).status(line))
        shown[0].start()

    token = _line.set(line)
    timer = threading.Timer(0 if size > _BIG else _PATIENCE, show)
    timer.daemon = True
    timer.start()
    if timer.interval <= 0:
        timer.join()
    try:
        yield
    finally:
        _line.reset(token)
        timer.cancel()
        timer.join()  # It may be showing the line right now.
        for status in shown:
            status.stop()


def track(items: Sequence[_ItemT], what: str) -> Iterator[_ItemT]:
    """Iterates over items in a step that counts them."""
    with step(what):
        for number, item in enumerate(items, 1):
            if (line := _line.get()) is not None:
                line.text = f"{what} ({number} of {len(items)})"
            yield item
