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
from hlotag.mlir.modules import copy_of
from hlotag.passes import syntax
from hlotag.passes.pipeline import run_and_report
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


def dump(module: ir.Module, pipeline: str, *, debug_origins: bool = False) -> None:
    """Writes the dumps of one module, which stays unchanged, if dumps are on. Warns if a file cannot be written."""
    if _directory is None:
        return
    try:
        _write_dumps(_directory, module, pipeline, debug_origins)
    except OSError as error:
        warn(f"hlotag: a dump could not be written: {error}", RuntimeWarning)


def _write_dumps(directory: Path, module: ir.Module, pipeline: str, debug_origins: bool) -> None:
    prefix = f"hlotag{next(_numbers):04d}_{module_file_name(module)}"
    process = _compat.runtime.process_of_job()
    suffix = "" if process is None else f"_process{process}"

    def write(number: int, stage: str, text: str) -> None:
        write_atomically(directory / f"{prefix}_{number:02d}_{as_file_name(stage)}{suffix}.mlir", text)

    # Run the passes one by one on a copy. The caller runs the whole pipeline on the module itself, as without dumps.
    copy = copy_of(module)
    before = _text(copy)
    write(0, "before", before)
    for number, element in enumerate(syntax.parse(pipeline), 1):
        done = run_and_report(copy, f"builtin.module({element})", verify=False, debug_origins=debug_origins)
        if not done.ok:
            return  # The run on the module itself reports the failure.
        after = _text(copy)
        if after != before:
            write(number, element.name, after)
        before = after


def _text(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=True))
