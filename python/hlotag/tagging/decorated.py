# SPDX-License-Identifier: Apache-2.0
"""The result of a decorator: a callable that binds, copies and compares like the wrapped one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import MethodType
from typing import Any

from hlotag._util.arguments import Error, check_decorated


def around(function: Callable, block: AbstractContextManager[Any], written: str, error: Error) -> Callable:
    """Decorates a callable: its calls, and those of its methods (`.lower` of a jitted function), run within a reentrant `block`.

    `written` is the block as users write it, for messages. Raises `error`, an ArgumentError, for what is not callable,
    and for generator and coroutine functions.
    """
    check_decorated(function, written, error)
    if not inspect.isfunction(function):
        return _Within(function, block)

    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        with block:
            return function(*args, **kwargs)

    return within


class Decorated:
    """Base of decorators for callables other than functions. An object binds, copies, pickles and compares as its callable does.

    Subclasses define `__call__` and `__getattr__`. Objects of one subclass are equal if their callables and `how` are equal.

    Args:
        function: The callable.
        how: The other arguments of the subclass.
    """

    def __init__(self, function: Callable, *how: Any):
        functools.update_wrapper(self, function)
        self._function = function
        self._how = how

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the callable, decorated."""
        raise NotImplementedError

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        bind = getattr(type(self._function), "__get__", None)
        if instance is None or bind is None:
            return self
        bound = bind(self._function, instance, owner)  # Some versions of Python bind a partial; none binds a static function.
        return MethodType(self, instance) if getattr(bound, "__self__", None) is instance else self

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self._function, self._how) == (other._function, other._how)

    def __hash__(self) -> int:
        return hash(self._function)

    def __reduce__(self) -> Any:
        """Pickles by name, as functions do, if the callable has a name and no instance."""
        name = None if inspect.ismethod(self._function) else getattr(self, "__qualname__", None)
        return name or (type(self), (self._function, *self._how))


class _Within(Decorated):
    """A callable whose calls, and whose methods' calls, run within a block."""

    def __init__(self, function: Callable, block: AbstractContextManager[Any]):
        super().__init__(function, block)
        self._block = block

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._block:
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._function, name)
        return _Within(attribute, self._block) if callable(attribute) else attribute
