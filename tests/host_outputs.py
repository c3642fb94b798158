# SPDX-License-Identifier: Apache-2.0
"""What pipelines make of modules, told by whichever host the environment chooses; `test_hosts.py` compares two of them.

python host_outputs.py FOLDER    modules are FOLDER/*.mlir and *.bc, pipelines the lines of FOLDER/pipelines
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import hlotag
from hlotag import _core
from hlotag._compat.bindings import capsule
from hlotag.host import connection
from hlotag.host.modules import new_context, parse_module, to_bytecode
from hlotag.passes.pipeline import run_and_report


def outcome(source: str | bytes, pipeline: str) -> dict[str, Any]:
    """Everything that a run shows."""
    with new_context(allow_unregistered_dialects=True):
        module = parse_module(source)
        try:
            result = run_and_report(module, pipeline)
        except hlotag.ArgumentError as error:
            return {"refused": str(error)}
        text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
        entries: list[dict[str, str]] = []
        _core.any_entries(capsule(module), lambda found: bool(entries.append(found)))
        return {
            "ok": result.ok,
            "failing": result.failing_pass,
            "diagnostics": [str(diagnostic) for diagnostic in result.diagnostics],
            "changed": list(result.changed_passes),
            "changes": result.num_changes,
            "entries": entries,
            "text": hashlib.sha256(text.encode()).hexdigest(),
            "bytecode": hashlib.sha256(to_bytecode(module)).hexdigest(),
        }


def main() -> None:
    folder = Path(sys.argv[1])
    pipelines = (folder / "pipelines").read_text().splitlines()
    connection.ensure()
    outcomes = {}
    for file in sorted(folder.glob("*.*")):
        source = file.read_text() if file.suffix == ".mlir" else file.read_bytes()
        for pipeline in pipelines:
            outcomes[f"{file.name} {pipeline}"] = outcome(source, pipeline)
    print(json.dumps({"bindings": _core.uses_bindings(), "outcomes": outcomes}))


if __name__ == "__main__":
    main()
