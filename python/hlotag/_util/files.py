# SPDX-License-Identifier: Apache-2.0
"""Writing files that other processes may read at any time, and reading lines of source files that a module names."""

from __future__ import annotations

import linecache
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

_OPEN_FILES = ("/dev/", "/proc/")  # names for what somebody holds open, to be written to and not replaced
_MAX_SOURCE = 4 << 20  # bytes of a source file
_MAX_NAME = 128  # bytes; what is put around it must fit into 255, too


def write_atomically(path: str | os.PathLike[str], content: str | bytes, *, private: bool = True) -> None:
    """Writes a file that is there either whole or not at all, whatever happens: a full disk, a killed process, another writer.

    Args:
        path: The file; an old one is replaced, behind symbolic links too. What is no file, such as a pipe or `/dev/stdout`, is
            written to as it is.
        content: Text, which is written as UTF-8, or bytes.
        private: Whether nobody but the user may read it; otherwise it is as the process's umask and an old file have it.

    Raises:
        OSError: It cannot be written; an old file is as it was, and nothing is left behind.
    """
    data = content.encode() if isinstance(content, str) else content
    old = _status(path)
    if old is not None and (not stat.S_ISREG(old.st_mode) or os.fspath(path).startswith(_OPEN_FILES)):
        Path(path).write_bytes(data)
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    # An old file's mode is a public one's own.
    replace(target, data, 0o600 if private else 0o666, None if private or old is None else stat.S_IMODE(old.st_mode))


def replace(path: str | os.PathLike[str], data: bytes, mode: int = 0o600, exact_mode: int | None = None) -> None:
    """Puts a file in the place of whatever is there, a link or a pipe too, whole or not at all.

    Args:
        path: The file; its folder is there.
        data: What is in it.
        mode: Its mode, less the process's umask.
        exact_mode: Its mode whatever the umask is.

    Raises:
        OSError: It cannot be written; what was there is as it was, and nothing is left behind.
    """
    temporary = Path(path).parent / f".new-{secrets.token_hex(8)}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            if exact_mode is not None:
                os.fchmod(fd, exact_mode)
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def private_directory(path: str | os.PathLike[str]) -> bool:
    """Makes a directory that only the user can use.

    Args:
        path: The directory.

    Returns:
        Whether it is one now; not if somebody else has made one of that name, or a link.

    Raises:
        OSError: It cannot be made.
    """
    with suppress(FileExistsError):
        os.makedirs(path, mode=0o700)
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def source_line(file: str, line: int, root: str | None) -> str:
    """The text of a line that a location names, if it may be shown: of a regular file of usual size below a folder.

    Args:
        file: The file, or the name that IPython gave a cell.
        line: Its line, from 1.
        root: The folder; `/` also admits cells; None admits nothing.

    Returns:
        The text without the space around it; empty if it must not be shown, or is not there.
    """
    if root is None:
        return ""
    if root == "/" and file in linecache.cache:
        return linecache.getline(file, line).strip()
    path, folder = os.path.realpath(file), os.path.realpath(root)
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    is_source = stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_SOURCE
    return linecache.getline(path, line).strip() if is_source and Path(path).is_relative_to(folder) else ""


def module_file_name(module: Any) -> str:
    """A module's name, fit for a file.

    Args:
        module: An `ir.Module`.

    Returns:
        As `as_file_name` gives it; "module" if the module has no name.
    """
    attributes = module.operation.attributes
    # As bytes: MLIR's names need not be UTF-8.
    name = attributes["sym_name"].value_bytes.decode(errors="replace") if "sym_name" in attributes else ""
    return as_file_name(name) or "module"


def as_file_name(name: str) -> str:
    """Makes a name fit for a file, as JAX does for its dumps.

    Args:
        name: Any text.

    Returns:
        The text without what a file's name must not hold, and not too long for one.
    """
    return re.sub(r"[^\w.)( -]", "", name).encode()[:_MAX_NAME].decode(errors="ignore")


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
