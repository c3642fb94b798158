# SPDX-License-Identifier: Apache-2.0
"""The running step, on a line on stderr, if that is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from hlotag._text import printable

if TYPE_CHECKING:
    from rich.status import Status

_ItemT = TypeVar("_ItemT")
_line: ContextVar[Status | None] = ContextVar("hlotag_progress", default=None)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Shows a running step on the terminal. Within the outermost step nothing else may be printed."""
    if (line := _line.get()) is not None:
        before = line.status
        line.update(_text(what))
        yield
        line.update(before)
        return
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(_text(what)) as line:
        token = _line.set(line)
        try:
            yield
        finally:
            _line.reset(token)


def _text(what: str) -> Any:
    from rich.text import Text

    return Text(f"hlotag: {printable(what)}")


def track(items: Sequence[_ItemT], what: str) -> Iterator[_ItemT]:
    """Iterates over items in a step that counts them."""
    with step(what):
        for number, item in enumerate(items, 1):
            if (line := _line.get()) is not None:
                line.update(_text(f"{what} ({number} of {len(items)})"))
            yield item
