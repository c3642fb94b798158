# SPDX-License-Identifier: Apache-2.0
"""Programs such as `train.py:step`, and passes, loaded from a user's file."""

from __future__ import annotations

import inspect
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from hlotag.errors import HlotagError

_EXPECTED = "a function without arguments that returns jax.jit(step).lower(...), or (step, arguments)"


def is_named(text: str) -> bool:
    """Whether a text names a program, `train.py:step` or `train.py`, and not the file of a module."""
    return text.endswith(".py") or ".py:" in text


def file_of(text: str) -> str:
    """The file that a text names: `train.py` for `train.py:step`, else the text."""
    return text.rpartition(":")[0] or text if is_named(text) else text


@contextmanager
def load_in_stage(text: str, pipeline: str = "", *, hlo: bool = True) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Loads a program in its own stage, or else in the stage of `hlotag.enable()`. What it prints goes to stderr.

    Yields what `load` returns. Raises HlotagError as `load` does, or if the program has its own stage and another one is asked
    for by `pipeline` or `hlo`.
    """
    from hlotag import _compat
    from hlotag.lowering import staging
    from hlotag.passes.pipeline import DEFAULT_PIPELINE
    from hlotag.tagging import state

    if sys.argv[0]:  # The script `hlotag`, whose frames are not the user's.
        _compat.hide_frames(sys.argv[0])
    is_off = state.of_process() is None
    if is_off:
        staging.enable(pipeline or DEFAULT_PIPELINE, hlo=hlo)
    ours = state.of_process()
    try:
        with redirect_stdout(sys.stderr):
            program = load(text)
        if state.of_process() is not ours and (pipeline or not hlo):
            raise HlotagError(f"{text} turns hlotag on or off itself: leave out --pass-pipeline and --no-hlo")
        yield program
    finally:
        if is_off:
            staging.disable()


@contextmanager
def load_to_run(text: str) -> Iterator[tuple[Any, Sequence[Any]]]:
    """As `load_in_stage`, for a program that will run. Raises HlotagError for a lowered one."""
    with load_in_stage(text) as (function, arguments):
        if not callable(function):
            raise HlotagError(f"{text}: a lowered program has no arguments to run it with; return (function, arguments)")
        yield function, arguments


def load(text: str) -> tuple[Any, Sequence[Any]]:
    """Runs the user's file and calls the function in it.

    Returns a `Lowered` without arguments, or a function and its arguments. Raises HlotagError if `text` has no name, the file
    lacks the function, or the function fails or returns another object; OSError if there is no such file.
    """
    filename, _, name = text.rpartition(":")
    if not name.isidentifier():
        raise HlotagError(f"{text}: a Python file needs the name of a function, as in train.py:step; name {_EXPECTED}")
    Path(filename).stat()  # A missing file is no failure of the program's.
    return _program_in(call(text, lambda: _module(filename)), text, name)


def load_passes(filename: str) -> None:
    """Runs the user's file, which registers passes. What it prints goes to stderr.

    Raises HlotagError if the file fails; OSError if there is no such file.
    """
    Path(filename).stat()  # A missing file is no failure of the file's.
    with redirect_stdout(sys.stderr):
        call(filename, lambda: _module(filename))


def _module(filename: str) -> Any:
    """Runs a file as a module. Adds the file's folder to Python's path, as for a script."""
    path = Path(filename).resolve(strict=True)
    sys.path.insert(0, str(path.parent))
    loader = SourceFileLoader(path.stem, str(path))
    module = types.ModuleType(loader.name)
    module.__file__ = loader.path
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def call(text: str, function: Callable[[], Any]) -> Any:
    """Calls a function that runs the user's code. If that fails, raises HlotagError.

    The traceback is on stderr, from the user's first line on. For hlotag's own errors, the message has the user's line instead.
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
    """A traceback without its first frames, of this package and of the import system."""
    while frames and frames.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("hlotag", "importlib"):
        frames = frames.tb_next
    return frames


def _users_line(frames: types.TracebackType | None) -> str:
    """The innermost line of user code, `file:line`; empty if there is none."""
    from hlotag import _compat

    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(frames)]
    return next((f"{file}:{line}" for file, line in reversed(lines) if _compat.tracing.is_user_filename(file)), "")


def _program_in(module: Any, text: str, name: str) -> tuple[Any, Sequence[Any]]:
    import jax.stages

    if not hasattr(module, name):
        raise HlotagError(f"{text}: the file has no {name!r}; name {_EXPECTED}")
    program = getattr(module, name)
    if callable(program) and not isinstance(program, jax.stages.Lowered):
        needed = [p.name for p in inspect.signature(program).parameters.values() if _is_needed(p)]
        if needed:
            raise HlotagError(f"{text}: {name} takes arguments ({', '.join(needed)}); name {_EXPECTED}")
        program = call(text, program)
    match program:
        case jax.stages.Lowered():
            return program, ()
        case (function, tuple() | list() as arguments) if callable(function):
            return function, arguments
    raise HlotagError(f"{text}: {name} is or returns a {type(program).__name__}; name {_EXPECTED}")


def _is_needed(parameter: inspect.Parameter) -> bool:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variadic
