# SPDX-License-Identifier: Apache-2.0
"""Shows on stderr, if it is a terminal, which step is running, once a step takes more than a second."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

_PATIENCE = 1.0  # seconds without a word
_BIG = 4 << 20  # bytes that MLIR reads in about a second
_ItemT = TypeVar("_ItemT")


class _Line:
    """The line of the outermost step; inner steps change its text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lock = threading.Lock()
        self._status: Any = None
        self._over = False

    def show(self) -> None:
        from rich.console import Console

        with self._lock:
            if self._over or self._status is not None:
                return
            self._status = Console(stderr=True).status(f"hlotag: {self.text}")
            self._status.start()

    def change(self, text: str) -> None:
        with self._lock:
            self.text = text
            if self._status is not None:
                self._status.update(f"hlotag: {text}")

    def remove(self) -> None:
        with self._lock:
            self._over = True
            if self._status is not None:
                self._status.stop()


_line: ContextVar[_Line | None] = ContextVar("hlotag_progress", default=None)


@contextmanager
def step(what: str, size: int = 0) -> Iterator[None]:
    """Shows a running step on the terminal. Within the outermost step nothing else may be printed.

    Args:
        what: The name of the step.
        size: Bytes to parse. MLIR keeps Python from running meanwhile, so a step of many bytes is shown at once.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    if (outer := _line.get()) is not None:
        before = outer.text
        outer.change(what)
        yield
        outer.change(before)
        return
    line = _Line(what)
    token = _line.set(line)
    timer = threading.Timer(_PATIENCE, line.show)
    timer.daemon = True
    if size > _BIG or _PATIENCE <= 0:
        line.show()
    else:
        timer.start()
    try:
        yield
    finally:
        _line.reset(token)
        timer.cancel()
        line.remove()


def track(items: Sequence[_ItemT], what: str) -> Iterator[_ItemT]:
    """Iterates over items in a step that counts them.

    Args:
        items: The items.
        what: The name of the step.

    Yields:
        The items.
    """
    with step(what):
        for number, item in enumerate(items, 1):
            if (line := _line.get()) is not None:
                line.change(f"{what} ({number} of {len(items)})")
            yield item
