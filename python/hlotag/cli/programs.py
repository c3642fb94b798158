# SPDX-License-Identifier: Apache-2.0
"""Loads the program `train.py:step` that a command examines, from a user's file."""

from __future__ import annotations

import inspect
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from hlotag.errors import HlotagError

_WANTED = "a function without arguments that returns jax.jit(step).lower(...), or (step, arguments)"


def is_named(text: str) -> bool:
    """Whether a text names a program, `train.py:step`, and not a module.

    Args:
        text: What the user gave.

    Returns:
        True for a Python file, with or without a name.
    """
    return text.endswith(".py") or ".py:" in text


def file_of(text: str) -> str:
    """The file that a text names.

    Args:
        text: `train.py:step`, or a module's path.

    Returns:
        `train.py`, or the path.
    """
    return text.rpartition(":")[0] or text if is_named(text) else text


def load(text: str) -> tuple[Any, Sequence[Any]]:
    """Runs the user's file and calls the function in it; the file's folder is on Python's path from then on, as for a script.

    Args:
        text: `train.py:step`.

    Returns:
        What to audit: a `Lowered` without arguments, or a function and its arguments.

    Raises:
        HlotagError: `text` has no name, the file does not have the function, or that fails or returns something else.
        OSError: There is no such file.
    """
    filename, _, name = text.rpartition(":")
    if not name.isidentifier():
        raise HlotagError(f"{text}: a Python file needs the name of a function, as in train.py:step; name {_WANTED}")
    path = Path(filename).resolve(strict=True)
    sys.path.insert(0, str(path.parent))
    return _made(text, name, called(text, lambda: _module(path)))


def _module(path: Path) -> Any:
    loader = SourceFileLoader(path.stem, str(path))
    module = types.ModuleType(loader.name)
    module.__file__ = loader.path
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def called(text: str, function: Callable[[], Any]) -> Any:
    """Calls a function that runs the user's code.

    Args:
        text: `train.py:step`.
        function: Takes no arguments.

    Returns:
        The function's result.

    Raises:
        HlotagError: The user's code failed. Its traceback is on stderr, from the user's first line on; for an error of hlotag's
            own, the message has the user's line.
    """
    try:
        return function()
    except HlotagError as error:
        line = _users_line(error.__traceback__)
        raise HlotagError(f"{line}: {error}" if line else str(error)) from error
    except (Exception, SystemExit) as error:
        traceback.print_exception(error.with_traceback(_in_users_code(error.__traceback__)))
        raise HlotagError(f"{text}: the program failed, as the traceback says") from error


def _in_users_code(frames: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without its first frames, which are of this package and of the import system."""
    while frames and frames.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("hlotag", "importlib"):
        frames = frames.tb_next
    return frames


def _users_line(frames: types.TracebackType | None) -> str:
    """The innermost line of user code, `file:line`; empty if there is none."""
    from hlotag import _compat

    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(frames)]
    return next((f"{file}:{line}" for file, line in reversed(lines) if _compat.is_user_filename(file)), "")


def _made(text: str, name: str, module: Any) -> tuple[Any, Sequence[Any]]:
    import jax.stages

    if not hasattr(module, name):
        raise HlotagError(f"{text}: the file has no {name!r}; name {_WANTED}")
    made = getattr(module, name)
    if callable(made) and not isinstance(made, jax.stages.Lowered):
        needed = [p.name for p in inspect.signature(made).parameters.values() if _is_needed(p)]
        if needed:
            raise HlotagError(f"{text}: {name} takes arguments ({', '.join(needed)}); name {_WANTED}")
        made = called(text, made)
    match made:
        case jax.stages.Lowered():
            return made, ()
        case (function, tuple() | list() as arguments) if callable(function):
            return function, arguments
    raise HlotagError(f"{text}: {name} is or returns a {type(made).__name__}; name {_WANTED}")


def _is_needed(parameter: inspect.Parameter) -> bool:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variadic
