# SPDX-License-Identifier: Apache-2.0
"""Stack for deep recursion: MLIR's text parser and printer recurse at each bracket."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from hlotag._util.forks import free_in_children

MAX_DEPTH = 40_000
"""The limit of nested brackets in text: 20,000 regions. Parsing and printing take time quadratic in the depth."""

_SHALLOW = 256  # depth for which the stack of any thread suffices
_PER_LEVEL = 4 << 10  # bytes; a region takes less than 2.7 KiB for each of its two brackets, an attribute 1.6
_lock = free_in_children(threading.Lock())

T = TypeVar("T")


def with_room(depth: int, work: Callable[[], T]) -> T:
    """Calls a function whose stack use is proportional to a depth, of at most `MAX_DEPTH`.

    At a large depth, it runs in a thread with a larger stack.
    """
    if depth <= _SHALLOW:
        return work()
    context = contextvars.copy_context()
    results: list[T] = []
    problems: list[BaseException] = []

    def body() -> None:
        try:
            results.append(context.run(work))
        except BaseException as problem:
            problems.append(problem)

    with _lock:  # the size is a setting of the process
        previous = threading.stack_size((8 << 20) + depth * _PER_LEVEL)
        try:
            thread = threading.Thread(target=body)
            thread.start()
        finally:
            threading.stack_size(previous)
    try:
        thread.join()
    except BaseException:  # An interrupt: wait, so that no handler sees the module while it changes.
        thread.join()
        raise
    if problems:
        raise problems[0]
    return results[0]
