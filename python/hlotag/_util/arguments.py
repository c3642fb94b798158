# SPDX-License-Identifier: Apache-2.0
"""Checks of a caller's arguments. Each error names the argument and quotes its value."""

from __future__ import annotations

import difflib
import os
import reprlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from hlotag.errors import ArgumentError

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxlong = _shortened.maxother = 200

Error = type[ArgumentError]


def show(value: Any) -> str:
    """`value` for a message: its repr on one line, without its middle if it is long."""
    try:
        return " ".join(_shortened.repr(value).split())
    except ValueError:  # An int of more digits than Python writes.
        return f"<{type(value).__name__}>"


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean scope?` for a message, of the word that is spelled most like `word`; empty if none is."""
    near = difflib.get_close_matches(word, [*known], 1, cutoff)
    return f"; did you mean {near[0]}?" if near else ""


def check_text(what: str, text: str, error: Error = ArgumentError) -> None:
    """Raises unless `text` can be encoded as UTF-8, which C++ takes; file names may hold lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as reason:
        raise error(f"{what}: {show(text)} cannot be encoded as UTF-8: {reason.reason}") from None


def check_flag(what: str, value: Any, error: Error = ArgumentError) -> None:
    """Raises unless `value` is True or False: text such as "false" would be true."""
    if not isinstance(value, bool):
        raise error(f"{what} must be True or False, got {show(value)}")


def check_choice(what: str, value: Any, choices: Collection[str], error: Error = ArgumentError, *, besides: str = "") -> None:
    """Raises unless `value` is one of `choices`; the message also names `besides`, which the caller has excluded."""
    if not isinstance(value, str) or value not in choices:  # An array would compare element by element.
        *others, last = [*map(repr, choices), *filter(None, [besides])]
        raise error(f"{what} must be {', '.join(others)} or {last}, got {show(value)}")


def check_keywords(kwargs: Any) -> dict[str, Any]:
    """The keyword arguments of the user's function, which are not options of hlotag's; raises if they are no mapping by name."""
    if kwargs is None:
        return {}
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise ArgumentError(f"kwargs= must have the function's keyword arguments by name, got {show(kwargs)}")
    return dict(kwargs)


def elements_of(what: str, value: Any) -> list[Any]:
    """The elements of an iterable; raises if `value` is not one."""
    try:
        return list(value)
    except TypeError:
        raise ArgumentError(f"{what} must be a list, got {show(value)} of type {type(value).__name__}") from None


def path_of(what: str, value: Any, error: Error = ArgumentError) -> Path:
    """`value` as a path, which need not exist; raises if it cannot be a path."""
    try:
        name = os.fsdecode(value)
    except TypeError:
        raise error(f"{what} must be a path, got {show(value)} of type {type(value).__name__}") from None
    if not name or "\0" in name:
        raise error(f"{what}: {show(value)} is not a path")
    return Path(name)
