# SPDX-License-Identifier: Apache-2.0
"""A probe of hlotag's passes on an unknown jaxlib. It runs in a child process, which may crash."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hlotag.mlir.modules import new_context, parse_module
from hlotag.mlir.symbols import addresses_of

SUCCESS = "hlotag probe: ok"

# The default pipeline of `hlotag.passes`.
PIPELINE: list[tuple[str, dict[str, str]]] = [
    ("hlotag-resolve", {}),
    ("hlotag-propagate-regions", {}),
    ("hlotag-propagate-calls", {}),
    ("hlotag-verify", {"on-mistake": "warning"}),
]

# Passes for a module that comes without its program.
WITHOUT_PROGRAM: list[tuple[str, dict[str, str]]] = [
    ("hlotag-attach", {"rules": '[{op = "sine", attrs = {r = "1"}}]'}),
    ("hlotag-propagate-autodiff", {}),
]

_MODULE = Path(__file__).with_name("trial.mlir")
_EXPECTED = Path(__file__).with_name("trial_expected.mlir")


def main(job: dict[str, Any]) -> None:
    """Installs the table and runs the trial; prints `SUCCESS` if the result is right, else raises SystemExit.

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
    print(SUCCESS, flush=True)


def check_result() -> None:
    """Runs the pipeline. Raises RuntimeError with the first line of its result that differs from the expected one."""
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
        failed = _core.run(module, [*PIPELINE[:-1], ("hlotag-verify", {})])
        runs = [failed, _core.run(module, PIPELINE), _core.run(module, WITHOUT_PROGRAM)]
        text = str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))
        program = _core.number_operations(module, "0", every=True)
        operations = [program[number] for number in range(len(program))]
    reports = [f"{d.file}:{d.line}:{d.column}: {d.severity}: {d.message}" for run in runs for d in run.diagnostics]
    lines = [*reports, *(" ".join(map(str, each)).strip() for each in (*places, *operations))]
    return "".join([*(f"// {line}\n" for line in lines), text.strip(), "\n"])
