# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at a line of user code."""

from __future__ import annotations

import warnings
from typing import Any

# By file, the registry in which `warnings` records the places it has warned about.
_registries: dict[str, dict[Any, Any]] = {}


def warn_at(text: str, category: type[Warning], file: str | None, line: int) -> None:
    """Warns of a line.

    Args:
      text: the message.
      category: of the warning.
      file: the file; None or empty for the caller of the caller.
      line: its number.
    """
    if file:
        warnings.warn_explicit(text, category, file, line, registry=_registries.setdefault(file, {}))
    else:
        warnings.warn(text, category, stacklevel=3)


def warn(text: str, category: type[Warning]) -> None:
    """Warns of the line of user code that runs now.

    Args:
      text: the message.
      category: of the warning.
    """
    from hlotag import _compat

    frame = _compat.user_frame()
    warn_at(text, category, frame and frame.file_name, frame.start_line if frame else 0)
