# SPDX-License-Identifier: Apache-2.0
"""Dumps of modules: before the passes of the stage, and after each pass that changed the module."""

from __future__ import annotations

import itertools
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag import _compat
from hlotag._util.arguments import path_of
from hlotag._util.files import as_file_name, module_file_name, write_atomically
from hlotag.passes.running import Observer
from hlotag.passes.syntax import Element
from hlotag.tagging.warning import warn

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_directory: Path | None = None
_numbers = itertools.count()


def _set_directory(directory: Path | None) -> None:
    global _directory  # noqa: PLW0603
    _directory = directory


def dump_to(directory: str | os.PathLike[str] | None) -> ExitStack:
    """Writes each module of the stage as text with locations: before the passes, and after each pass that changed it.

    Files have the number and name of a module and the number and name of a pass: `hlotag0003_jit_step_00_before.mlir`,
    `hlotag0003_jit_step_01_hlotag-resolve.mlir`. In a multi-process job, `_process<index>` is added. Programs in JAX's
    caches are not lowered again, so they are not dumped. Dumps do not change the compiled program.

    Args:
        directory: The folder for the files of the whole process, created on demand. None turns dumps off.

    Returns:
        A context manager that restores the previous folder at the end of its block. Its use is optional.

    Raises:
        ArgumentError: `directory` is not a path.

    Examples:
        >>> import os
        >>> with hlotag.dump_to("dumps"), hlotag.stage():
        ...     program = jax.jit(lambda x: hlotag.tag(x + 1, {"k": "v"})).lower(1.0)
        >>> any(name.endswith("_before.mlir") for name in os.listdir("dumps"))
        True
    """
    previous = ExitStack()
    previous.callback(_set_directory, _directory)
    _set_directory(None if directory is None else path_of("directory", directory).absolute())
    return previous


def dump(module: ir.Module) -> Observer | None:
    """Writes a module before its passes, if dumps are on. Returns what their run calls after each pass, which writes the others.

    Warns if a file cannot be written, and writes no further ones.
    """
    if (directory := _directory) is None:
        return None
    process = _compat.runtime.process_of_job()
    prefix = f"hlotag{next(_numbers):04d}_{module_file_name(module)}"
    suffix = "" if process is None else f"_process{process}"
    number, last = -1, ""

    def write(element: Element | None, module: ir.Module, ok: bool) -> None:
        nonlocal directory, number, last
        number += 1
        text = str(module.operation.get_asm(enable_debug_info=True)) if ok and directory else last
        if directory is None or text == last:
            return
        last, stage = text, element.name if element else "before"
        try:
            write_atomically(directory / f"{prefix}_{number:02d}_{as_file_name(stage)}{suffix}.mlir", text)
        except OSError as error:
            directory = None
            warn(f"hlotag: a dump could not be written: {error}", RuntimeWarning)

    write(None, module, True)
    return write
