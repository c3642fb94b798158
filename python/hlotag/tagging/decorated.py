# SPDX-License-Identifier: Apache-2.0
"""The decorator form of a block, as that of JAX's `set_xla_metadata`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from hlotag._util.arguments import Error, show

_OF_JITTED = ("eval_shape", "lower", "trace")
_RUN_LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


def around(function: Callable, block: AbstractContextManager[Any], written: str, error: Error) -> Callable:
    """Decorates a callable: its calls, and `lower`, `trace` and `eval_shape` of a jitted one, run within a reentrant `block`.

    `written` is the block as users write it, for messages. Raises `error`, an ArgumentError, for what is not callable,
    and for generator and coroutine functions.
    """
    if not callable(function):
        raise error(
            f"expected a callable to decorate, got {show(function)}; in a class, write @classmethod, @staticmethod and "
            "@property above"
        )
    if any(runs_later(function) for runs_later in _RUN_LATER):
        raise error(
            f"{getattr(function, '__qualname__', function)} is a generator or coroutine function: its body runs after the call, "
            f"so after the end of the block; write `{written}` inside of it"
        )
    decorated = _within(block, function)
    for name in _OF_JITTED:
        if callable(method := getattr(function, name, None)):
            setattr(decorated, name, _within(block, method))
    return decorated


def _within(block: AbstractContextManager[Any], function: Callable) -> Callable:
    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        with block:
            return function(*args, **kwargs)

    return within
