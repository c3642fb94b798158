# SPDX-License-Identifier: Apache-2.0
"""What is being done, on a terminal, once it takes more than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_PATIENCE = 1.0
_ItemT = TypeVar("_ItemT")


@contextmanager
def step(what: str) -> Iterator[None]:
    """Shows that a step is going on; nothing where stderr is no terminal.

    Args:
        what: The step, in words.

    Yields:
        Nothing.
    """
    if not sys.stderr.isatty():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("hlotag: {task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.add_task(what, total=None)
    timer = threading.Timer(_PATIENCE, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()


def track(items: Sequence[_ItemT], what: str) -> Iterator[_ItemT]:
    """Goes through items, with a bar on a terminal once that takes more than a second.

    Args:
        items: Any.
        what: What is done with them, in words.

    Yields:
        The items.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    columns = (TextColumn("hlotag: {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=len(items))
    start, shown = time.monotonic(), False
    try:
        for item in items:
            yield item
            progress.advance(task)
            if not shown and time.monotonic() - start > _PATIENCE:
                progress.start()
                shown = True
    finally:
        progress.stop()
