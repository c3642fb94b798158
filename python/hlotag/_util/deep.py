# SPDX-License-Identifier: Apache-2.0
"""Room for what recurses: MLIR's text parser and printer call themselves at each bracket, and a thread's stack has an end."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

MAX_DEPTH = 40_000
"""How deep brackets of text may be nested: 20,000 regions. Parsing and printing take time with the square of that depth."""

_SHALLOW = 256  # for which every thread's stack is enough
_PER_LEVEL = 4 << 10  # bytes; measured: less than 2.7 KiB for each of the two brackets of a region, 1.6 for an attribute
_lock = threading.Lock()

T = TypeVar("T")


def with_room(depth: int, work: Callable[[], T]) -> T:
    """Calls a function that needs stack in proportion to a depth.

    Args:
        depth: How deep it may recurse; at most `MAX_DEPTH`.
        work: The function. If that is deep, it runs in a thread with a stack of its own.

    Returns:
        What it returns.

    Raises:
        BaseException: Whatever it raises.
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
    except BaseException:  # An interrupt; what is being worked on must not change under the hands of whoever handles it.
        thread.join()
        raise
    if problems:
        raise problems[0]
    return results[0]
