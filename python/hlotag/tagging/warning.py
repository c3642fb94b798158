# SPDX-License-Identifier: Apache-2.0
"""How does a warning point at a line of user code?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

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
    """Emits a warning at a line.

    Args:
      text: the message.
      category: the class of the warning.
      file: the file; None or empty for the caller of the caller.
      line: the line in the file.
    """
    if file:
        warnings.warn_explicit(text, category, file, line, registry=_registries.setdefault(file, {}))
    else:
        warnings.warn(text, category, stacklevel=3)


def warn(text: str, category: type[Warning]) -> None:
    """Emits a warning at the running line of user code; within `reading`, at the line of the file.

    Args:
      text: the message.
      category: the class of the warning.
    """
    from hlotag import _compat

    try:
        frame = _compat.user_frame()
    except IncompatibleJaxlibError:  # Rules work on modules without JAX's tracing.
        frame = None
    warn_at(text, category, *(_read.get() or (frame and frame.file_name, frame.start_line if frame else 0)))
