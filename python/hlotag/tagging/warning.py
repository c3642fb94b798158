# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at a line of user code."""

from __future__ import annotations

import linecache
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from hlotag._text import printable
from hlotag.errors import IncompatibleJaxlibError

# By file, the registry in which `warnings` records the places it has warned about.
_registries: dict[str, dict[Any, Any]] = {}
_read: ContextVar[tuple[str, int] | None] = ContextVar("hlotag_read", default=None)


@contextmanager
def reading(file: str, line: int) -> Iterator[None]:
    """A block whose warnings point at a line of the file that is read, rather than at the running program."""
    token = _read.set((file, line))
    try:
        yield
    finally:
        _read.reset(token)


def warn_at(text: str, category: type[Warning], file: str | None, line: int) -> None:
    """Emits a warning at a line of a file; without a file, at the innermost caller outside of hlotag."""
    text = printable(text, keep="\n\t")
    if file:
        warnings.warn_explicit(text, category, file, line, registry=_registries.setdefault(file, {}))
    else:
        callers = traceback.walk_stack(sys._getframe(1))
        level = next((i for i, (frame, _) in enumerate(callers, 2) if not _is_ours(frame)), 1)
        warnings.warn(text, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").startswith("hlotag.")


def file_of_program(file: str) -> str | None:
    """Returns the file of a module's location for `warn_at`; None for files that Python has not read as code.

    `warnings` prints the line, and a module of someone else may name any file.
    """
    is_known = file in _registries or file in linecache.cache or (file.startswith("<") and file.endswith(">"))
    is_code = is_known or any(vars(module).get("__file__") == file for module in list(sys.modules.values()) if module)
    return file if is_code else None


def warn(text: str, category: type[Warning]) -> None:
    """Emits a warning at the running line of user code; within `reading`, at the line of the file."""
    from hlotag import _compat

    try:
        frame = _compat.tracing.user_frame()
    except IncompatibleJaxlibError:  # Rules work on modules without JAX's tracing.
        frame = None
    warn_at(text, category, *(_read.get() or (frame and frame.file_name, frame.start_line if frame else 0)))
