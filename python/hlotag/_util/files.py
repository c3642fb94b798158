# SPDX-License-Identifier: Apache-2.0
"""Files that others may read while they are written, and the source lines that a module names."""

from __future__ import annotations

import json
import linecache
import os
import re
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag.errors import ParseError

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_OPEN_FILES = ("/dev/", "/proc/")  # names of open files, which are written to in place
_MAX_SOURCE = 4 << 20  # bytes of a source file
_MAX_NAME = 128  # bytes; leaves room for a prefix and a suffix within the 255 that file systems allow


def read_document(text: str, filename: str, what: str, schema: str) -> dict[str, Any]:
    """Reads JSON that the command wrote. Raises ParseError if the text is not JSON, or has another schema.

    `what` is the document in messages: "an audit".
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ParseError(f"{filename}: not JSON: {error}") from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise ParseError(f"{filename}: expected {what} with schema {schema!r}, found {found!r}; write it with --json")
    return document


def write_atomically(path: str | os.PathLike[str], content: str | bytes, *, private: bool = True) -> None:
    """Writes a file atomically: it appears whole or not at all, even if the disk is full or the process is killed.

    An old file is replaced; symbolic links are followed. Pipes and devices, such as `/dev/stdout`, are written to in place. Only
    the user may read a `private` file, whose folder is made if necessary. Otherwise an old file keeps its mode, a new one gets
    the umask's, and a missing folder, which is probably misspelt, is an error. After an OSError an old file is unchanged, and no
    temporary file is left.
    """
    data = content.encode() if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    if (target.exists() and not target.is_file()) or os.fspath(path).startswith(_OPEN_FILES):
        Path(path).write_bytes(data)
        return
    if private:
        target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".new-{secrets.token_hex(8)}"
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666), "wb") as file:
            file.write(data)
        if not private and target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename = os.fspath(path)
        raise


def source_line(file: str, line: int, root: str | None) -> str:
    """Reads the source line that a location names, stripped, if the file is a regular file below a folder and not huge.

    The `root` `/` also allows IPython's cells; None allows nothing. Empty if the file must not be read or has no such line.
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


def module_file_name(module: ir.Module) -> str:
    """Makes a file name of a module's name; "module" if it has none."""
    attributes: Any = module.operation.attributes
    # As bytes: MLIR's names need not be UTF-8.
    name = attributes["sym_name"].value_bytes.decode(errors="replace") if "sym_name" in attributes else ""
    return as_file_name(name) or "module"


def as_file_name(name: str) -> str:
    """Makes a name fit for a file, as JAX does for its dumps, and cuts it to a legal length."""
    return re.sub(r"[^\w.)( -]", "", name).encode()[:_MAX_NAME].decode(errors="ignore")
