# SPDX-License-Identifier: Apache-2.0
"""Writing files that other processes may read at any time."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Writes a file that is there either whole or not at all; only the user can read it.

    Args:
        path: The file; an old one is replaced.
        text: Its content.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def as_file_name(name: str) -> str:
    """Makes a module's name fit for a file, as JAX does for its dumps.

    Args:
        name: Any text.

    Returns:
        The text without what a file's name must not hold, and not too long for one.
    """
    return re.sub(r"[^\w.)( -]", "", name)[:128]
