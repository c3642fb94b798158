# SPDX-License-Identifier: Apache-2.0
"""Reproducers of failures: a file with the module before the pipeline, and the command that replays it."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag._util.files import module_file_name, private_directory, write_atomically
from hlotag.errors import PassError
from hlotag.passes import syntax
from hlotag.passes.python_passes import module_of

if TYPE_CHECKING:
    from jaxlib.mlir import ir


def with_reproducer(error: PassError, module: ir.Module, pipeline: str) -> PassError:
    """Saves the module that a pipeline failed on, and left unchanged.

    Returns the failure, with a message that names the file and the command, or says why no file could be written.
    """
    try:
        path = _save(module, pipeline)
    except OSError as problem:
        step = (
            f"The module was left unchanged. No reproducer could be written ({problem}); "
            "set HLOTAG_REPRODUCER_DIR to a writable folder."
        )
        return PassError(error.pass_name, error.diagnostics, step)
    if names := [name for name in _names(pipeline) if name in module_of and not _importable(module_of[name])]:
        step = f"The module was left unchanged; it is in {path}. To replay the failure, define the pass {names[0]} in a file."
    else:
        step = f"The module was left unchanged. To replay the failure:\n  {_command(path, pipeline)}"
    return PassError(error.pass_name, error.diagnostics, step, str(path))


def _names(pipeline: str) -> list[str]:
    return [element.name for element in syntax.parse(pipeline)]


def _command(path: Path, pipeline: str) -> str:
    """A shell command on one line, which also imports modules with Python passes."""
    names = _names(pipeline)
    modules = list(dict.fromkeys(_importable(module_of[name]) for name in names if name in module_of))
    arguments = [str(path), f"--pass-pipeline={pipeline}"]
    program = ["hlotag-opt"]
    if modules:
        # The folder in which a script finds itself and its modules.
        setup = f"sys.path.insert(0, {os.path.abspath(sys.path[0])!r}); " if sys.path and sys.path[0] else ""
        code = f"import sys; {setup}import {', '.join(modules)}; from hlotag.cli import opt_main; sys.exit(opt_main())"
        program = [sys.executable or "python", "-c", code]
    return shlex.join([*program, *arguments])


def _importable(module: str) -> str:
    """The name by which another process imports a module; for a script, the name of its file. Empty if it has no file."""
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)  # of `python -m`
    if spec:
        return spec.name
    file = Path(getattr(main, "__file__", None) or "")
    return file.stem if file.is_file() else ""


def _save(module: ir.Module, pipeline: str) -> Path:
    text = str(module.operation.get_asm(enable_debug_info=True))
    # Named by content: repeated failures, or equal failures on hosts that share a file system, leave one file.
    digest = hashlib.sha256(f"{pipeline}\0{text}".encode()).hexdigest()[:12]
    path = _directory() / f"{module_file_name(module)}-{digest}.mlir"
    write_atomically(path, text)
    return path


def _directory() -> Path:
    if chosen := os.environ.get("HLOTAG_REPRODUCER_DIR"):
        return Path(chosen).absolute()
    shared = Path(tempfile.gettempdir()) / f"hlotag-{os.getuid()}"
    # Another user of the machine may own a file of that name.
    return shared if private_directory(shared) else Path(tempfile.mkdtemp(prefix="hlotag-"))
