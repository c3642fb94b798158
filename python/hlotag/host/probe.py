# SPDX-License-Identifier: Apache-2.0
"""Does each function of an unknown jaxlib return the right result? Runs in a child process, which may crash."""

from __future__ import annotations

import sys
from typing import Any

from hlotag._compat.bindings import capsule

SUCCESS = "hlotag probe: ok"


def main(job: dict[str, Any]) -> None:
    """Installs the table and runs the trial; prints `SUCCESS` if every result is right.

    Args:
        job: "library", the path of jaxlib's library, and "offsets" of its functions.

    Raises:
        SystemExit: A result was wrong.
    """
    try:
        _try(job)
    except RuntimeError as error:
        sys.exit(str(error))
    print(SUCCESS, flush=True)


def _try(job: dict[str, Any]) -> None:
    from jaxlib.mlir import ir

    from hlotag import _core
    from hlotag._compat.bindings import dialect_registry

    if missing := _core.install(job["library"], job["offsets"]):
        raise RuntimeError(f"these functions could not be resolved: {missing}")
    registry = dialect_registry()
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        context.allow_unregistered_dialects = True
        check_functions(_core, ir)


def check_functions(core: Any, ir: Any) -> None:
    """Calls every function of the table on a module with known results. The current context must have all dialects.

    Args:
        core: `hlotag._core`.
        ir: `jaxlib.mlir.ir`.

    Raises:
        RuntimeError: A result was wrong.
    """
    module = ir.Module.parse(core.CONFORMANCE_MODULE)
    if wrong := core.find_wrong(capsule(module)):
        raise RuntimeError(f"these functions gave wrong answers: {', '.join(wrong)}")
