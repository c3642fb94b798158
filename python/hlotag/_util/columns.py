# SPDX-License-Identifier: Apache-2.0
"""How wide may printed text be?"""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

_UNBROKEN = 1 << 16
_DEFAULT = (120, 24)  # if the terminal does not say


def columns(stream: TextIO | None = None) -> int:
    """The width of the terminal that `stream` (standard output) is; in a file or pipe nothing is cut."""
    is_terminal = (stream or sys.stdout).isatty()
    return shutil.get_terminal_size(_DEFAULT).columns if is_terminal else _UNBROKEN
