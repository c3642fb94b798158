# SPDX-License-Identifier: Apache-2.0
"""Checks of what callers give; each error names the argument and shows what was given."""

from __future__ import annotations

import inspect
import os
import reprlib
from pathlib import Path
from typing import Any

from hlotag.errors import ArgumentError, HlotagError

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxlong = _shortened.maxother = 200


def shown(value: Any) -> str:
    """`value` for a message: as Python writes it, on one line and without its middle if it is long."""
    try:
        return " ".join(_shortened.repr(value).split())
    except ValueError:  # An int of more digits than Python writes.
        return f"<{type(value).__name__}>"


def check_text(what: str, text: str, error: type[HlotagError] = ArgumentError) -> None:
    """Checks that C++, whose text is UTF-8, can be given `text`.

    Args:
      what: what the error calls it.
      text: the text.
      error: its type.

    Raises:
      HlotagError: it has half of a character, as names of files that are no UTF-8 have.
    """
    try:
        text.encode()
    except UnicodeEncodeError as reason:
        raise error(f"{what}: {shown(text)} is not text that UTF-8 can write: {reason.reason}") from None


def check_flag(what: str, value: Any, error: type[HlotagError] = ArgumentError) -> None:
    """Checks that `value` is True or False: text such as "false" would be true.

    Args:
      what: what the error calls it.
      value: what was given.
      error: its type.

    Raises:
      HlotagError: it is something else.
    """
    if not isinstance(value, bool):
        raise error(f"{what} must be True or False, got {shown(value)}")


_RUN_LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


def check_decorated(function: Any, block: str, error: type[HlotagError] = ArgumentError) -> None:
    """Checks that a block around each call of `function` is one around its body.

    Args:
      function: what is decorated.
      block: how the block is written.
      error: its type.

    Raises:
      HlotagError: it is no function, or a generator or coroutine function.
    """
    if not callable(function):
        raise error(
            f"expected a callable to decorate, got {shown(function)}; in a class, write @classmethod, @staticmethod and "
            "@property above"
        )
    if any(runs_later(function) for runs_later in _RUN_LATER):
        raise error(
            f"{getattr(function, '__qualname__', function)} is a generator or coroutine function: its body runs after the call, "
            f"and the block would have been left; write `{block}` inside of it"
        )


def elements_of(what: str, value: Any, error: type[HlotagError] = ArgumentError) -> list[Any]:
    """The elements of a list or of whatever else can be gone through.

    Args:
      what: what the error calls it.
      value: what was given.
      error: its type.

    Returns:
      They, in order.

    Raises:
      HlotagError: it cannot be gone through.
    """
    try:
        return list(value)
    except TypeError:
        raise error(f"{what} must be a list, got {shown(value)} of type {type(value).__name__}") from None


def path_of(what: str, value: Any, error: type[HlotagError] = ArgumentError) -> Path:
    """The path that was given; whether something is there is not asked.

    Args:
      what: what the error calls it.
      value: what was given.
      error: its type.

    Returns:
      The path.

    Raises:
      HlotagError: it is no path, or one that no file can have.
    """
    try:
        name = os.fsencode(value)
    except TypeError:
        raise error(f"{what} must be a path, got {shown(value)} of type {type(value).__name__}") from None
    except UnicodeEncodeError as reason:
        raise error(f"{what}: {shown(value)} is no path: {reason.reason}") from None
    if not name or b"\0" in name:
        raise error(f"{what}: {shown(value)} is no path: {'it has a zero byte' if name else 'it is empty'}")
    return Path(os.fsdecode(name))
