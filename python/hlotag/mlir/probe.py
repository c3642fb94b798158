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
    """Runs the pipeline on the module of the trial.

    Returns the place and severity of each diagnostic, then the scope and place of each operation, one a line, and the text of the
    module with its locations.
    """
    from hlotag import _core

    with new_context():
        module = parse_module(_MODULE.read_text())
        places = _core.provenance(module)
        run = _core.run(module, PIPELINE)
        text = str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))
    lines = [f"// {' '.join(map(str, place)).strip()}\n" for place in places]
    return "".join([*(f"// {d.file}:{d.line}:{d.column}: {d.severity}\n" for d in run.diagnostics), *lines, text.strip(), "\n"])
