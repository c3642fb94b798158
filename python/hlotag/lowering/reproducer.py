# SPDX-License-Identifier: Apache-2.0
"""Reproducers of failures: a file with the module before the pipeline, and the command that replays it."""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag._util.files import module_file_name, write_atomically
from hlotag.errors import PassError
from hlotag.passes import syntax
from hlotag.passes.python_passes import module_of

if TYPE_CHECKING:
    from jaxlib.mlir import ir


def with_reproducer(error: PassError, module: ir.Module, pipeline: str) -> PassError:
    """Saves the module that a pipeline failed on, and left unchanged.

    Returns the failure, with a message that names the file and the command, or says why no file could be written.
    """
    path: Path | None = None
    try:
        path = _save(module, pipeline)
        step = _replay(path, pipeline)
    except OSError as problem:
        step = f"No reproducer could be written ({problem}); set HLOTAG_REPRODUCER_DIR to a writable folder."
    return PassError(error.pass_name, error.diagnostics, f"The module was left unchanged. {step}", str(path or ""))


def _replay(path: Path, pipeline: str) -> str:
    """What to do: a shell command on one line, which also loads the files that register Python passes."""
    own = [element.name for element in syntax.parse(pipeline) if element.name in module_of]
    files = {name: getattr(sys.modules.get(module_of[name]), "__file__", None) for name in own}
    if missing := next((name for name, file in files.items() if file is None), None):
        return f"It is in {path}. To replay the failure, define the pass {missing} in a file."
    plugins = dict.fromkeys(f"--load-pass-plugin={Path(file).absolute()}" for file in files.values() if file)
    return f"To replay the failure:\n  {shlex.join(['hlotag-opt', str(path), *plugins, f'--pass-pipeline={pipeline}'])}"


def _save(module: ir.Module, pipeline: str) -> Path:
    text = str(module.operation.get_asm(enable_debug_info=True))
    # Named by content: repeated failures, or equal failures on hosts that share a file system, leave one file.
    digest = hashlib.sha256(f"{pipeline}\0{text}".encode()).hexdigest()[:12]
    directory = Path(os.environ.get("HLOTAG_REPRODUCER_DIR") or _private_directory()).absolute()
    path = directory / f"{module_file_name(module)}-{digest}.mlir"
    write_atomically(path, text)
    return path


@functools.cache
def _private_directory() -> str:
    return tempfile.mkdtemp(prefix="hlotag-")
