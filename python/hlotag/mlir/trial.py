# SPDX-License-Identifier: Apache-2.0
"""The trial of an untried jaxlib: hlotag's passes on a small module, in a child process, where a crash does no harm."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from hlotag.mlir.library import Library, incompatible
from hlotag.mlir.modules import new_context, parse_module
from hlotag.mlir.symbols import addresses_of

_TIMEOUT_S = 120
_SUCCESS = "hlotag trial: ok"
# `-I` ignores PYTHON* variables and the current directory. The child gets this process's module path, so it imports the same
# jaxlib and hlotag.
_CODE = "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; from hlotag.mlir.trial import main; main(job)"
_PYTHON = re.compile(r"python[\d.]*[a-z]*")

# The default pipeline of `hlotag.passes`.
PIPELINE: list[tuple[str, dict[str, str]]] = [
    ("hlotag-resolve", {}),
    ("hlotag-propagate", {}),
    ("hlotag-finalize", {"on-mistake": "warning"}),
]

# Passes for a module that comes without its program.
_WITHOUT_PROGRAM: list[tuple[str, dict[str, str]]] = [
    ("hlotag-attach", {"rules": '[{op = "sine", attrs = {r = "1"}}]'}),
    ("hlotag-propagate-autodiff", {}),
]

_MODULE = Path(__file__).with_name("trial.mlir")
_EXPECTED = Path(__file__).with_name("trial_expected.mlir")


def run(library: Library, offsets: dict[str, int]) -> None:
    """Tries the functions. Raises IncompatibleJaxlibError if the trial crashed, hung, gave a wrong result, or could not run."""
    if not _PYTHON.fullmatch(os.path.basename(sys.executable or "")):  # A program that embeds Python: it must not start again.
        reason = f"hlotag has not tried it, and this process has no Python interpreter to do so: {sys.executable!r}"
        raise incompatible(library, reason)
    job = json.dumps({"path": [os.path.abspath(entry) for entry in sys.path], "library": library.path, "offsets": offsets})
    command = [sys.executable, "-I", "-c", _CODE]
    try:
        child = subprocess.run(
            command, input=job, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise incompatible(library, f"a trial of its MLIR in a child process could not finish: {error}") from error
    if child.returncode or not child.stdout.strip().endswith(_SUCCESS):
        status = child.returncode
        how = f"crashed ({signal.Signals(-status).name})" if status < 0 else f"failed (exit status {status})"
        said = "".join(f"\n    {line}" for line in (child.stdout + child.stderr).strip().splitlines()[-8:])
        raise incompatible(library, f"a trial of its MLIR in a child process {how}{said and ':' + said}")


def main(job: dict[str, Any]) -> None:
    """Installs the table and runs the passes; prints `_SUCCESS` if the result is right, else raises SystemExit.

    The job is "library", the path of jaxlib's library, and "offsets" of its functions.
    """
    from jaxlib.mlir import ir  # noqa: F401  (loads the library)

    from hlotag import _core

    try:
        if missing := _core.install(addresses_of(job["library"], job["offsets"])):
            raise RuntimeError(f"these functions could not be resolved: {missing}")
        check_result()
    except RuntimeError as error:
        sys.exit(str(error))
    print(_SUCCESS, flush=True)


def check_result() -> None:
    """Runs the passes. Raises RuntimeError with the first line of their result that differs from the expected one."""
    found, expected = result().splitlines(), _EXPECTED.read_text().splitlines()
    for line, right in zip([*found, "the end"], [*expected, "the end"], strict=False):
        if line != right:
            raise RuntimeError(f"the passes gave a wrong result\n  found: {line}\n  expected: {right}")


def result() -> str:
    """Runs the pipeline on the module of the trial: once so that it fails and is undone, once so that it succeeds.

    Returns each diagnostic, the scope and place of each operation, and what a program has of it, one a line; then the text of the
    module with its locations.
    """
    from hlotag import _core

    with new_context():
        module = parse_module(_MODULE.read_text())
        places = _core.provenance(module)
        failed = _core.run(module, [*PIPELINE[:-1], ("hlotag-finalize", {})])
        runs = [failed, _core.run(module, PIPELINE), _core.run(module, _WITHOUT_PROGRAM)]
        text = str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))
        program = _core.number_operations(module, "0", every=True)
        operations = [program[number] for number in range(len(program))]
    reports = [f"{d.file}:{d.line}:{d.column}: {d.severity}: {d.message}" for run in runs for d in run.diagnostics]
    lines = [*reports, *(" ".join(map(str, each)).strip() for each in (*places, *operations))]
    return "".join([*(f"// {line}\n" for line in lines), text.strip(), "\n"])
