# SPDX-License-Identifier: Apache-2.0
"""The trial of an unknown jaxlib. It runs in a child process, which may crash, and checks every result.

It calls each function of the table, then runs passes on modules of an unregistered dialect.
"""

from __future__ import annotations

import sys
from typing import Any

from hlotag._compat.bindings import capsule

SUCCESS = "hlotag probe: ok"

# A marked op, an op in a region, one without a mark, an entry that is already there.
_MODULE = r"""
#file = loc("probe.py":3:7)
#marked = loc("f/\01hlotag#0\01/mul"(#file))
#transposed = loc("transpose(f/\01hlotag#0\01)/mul"(#file))
#plain = loc("f/add"(#file))
#called = loc(callsite(#marked at #plain))
module attributes {hlotag.tags = [{forward = {probe = "forward"}, derived = {probe = "derived"}}]} {
  %0 = "probe.source"() : () -> i32 loc(#plain)
  %1 = "probe.marked"(%0) : (i32) -> i32 loc(#marked)
  %2 = "probe.transposed"(%1) {mhlo.frontend_attributes = {old = "kept"}} : (i32) -> i32 loc(#transposed)
  "probe.region"(%2) ({
    %3 = "probe.inner"(%2) : (i32) -> i32 loc(#called)
    "probe.end"(%3) : (i32) -> () loc(#plain)
  }) : (i32) -> () loc(#plain)
} loc(#plain)
"""

_EXPECTED = {
    "probe.source": None,
    "probe.marked": {"probe": "forward"},
    "probe.transposed": {"probe": "derived", "old": "kept"},
    "probe.region": None,
    "probe.inner": {"probe": "forward"},
    "probe.end": None,
}

# The mark of the second op refers to no tag, so the pass fails. It must undo the tag of the first op.
_BAD_MODULE = r"""
#good = loc("f/\01hlotag#0\01/mul")
#bad = loc("f/\01hlotag#7\01/mul"("probe.py":5:1))
module attributes {hlotag.tags = [{forward = {probe = "forward"}, derived = {probe = "derived"}}]} {
  "probe.good"() : () -> () loc(#good)
  "probe.bad"() : () -> () loc(#bad)
}
"""


def main(job: dict[str, Any]) -> None:
    """Installs the table and runs the trial; prints `SUCCESS` if every result is right.

    Args:
        job: "library", the path of jaxlib's library, and "offsets" of its functions. Without "offsets", the trial is of the
            functions that call the Python bindings.

    Raises:
        SystemExit: An answer was wrong.
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

    if job["offsets"] is None:
        _core.install_bindings()
    else:
        missing = _core.install(job["library"], job["offsets"])
        _expect(not missing, f"these functions could not be resolved: {missing}")
    registry = dialect_registry()
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        context.allow_unregistered_dialects = True
        check_functions(_core, ir)
        _check_success(_core, ir)
        _check_failure(_core, ir)


def check_functions(core: Any, ir: Any) -> None:
    """Calls every function of the table on a module with known results. The current context must have all dialects.

    Args:
        core: `hlotag._core`.
        ir: `jaxlib.mlir.ir`.

    Raises:
        RuntimeError: An answer was wrong.
    """
    module = ir.Module.parse(core.CONFORMANCE_MODULE)
    wrong = core.find_wrong(capsule(module))
    _expect(not wrong, f"these functions gave wrong answers: {', '.join(wrong)}")


def _check_success(core: Any, ir: Any) -> None:
    module = ir.Module.parse(_MODULE)
    result = core.run(capsule(module), "hlotag-resolve,canonicalize")
    _expect(result.ok, f"the pipeline failed: {_texts(result)}")
    found = {op.name: _entries(ir, op) for op in _walk(module.operation) if op.name != "builtin.module"}
    _expect(found == _EXPECTED, f"wrong entries: {found}")
    _expect("hlotag" not in module.operation.get_asm(enable_debug_info=True), "marks were left in the module")
    _expect(module.operation.verify(), "the module is no longer valid")

    result = core.run(capsule(module), "hlotag-strip")
    _expect(result.ok, f"hlotag-strip failed: {_texts(result)}")
    _expect("frontend_attributes" not in str(module), "hlotag-strip left entries in the module")


def _check_failure(core: Any, ir: Any) -> None:
    module = ir.Module.parse(_BAD_MODULE)
    before = module.operation.get_asm(enable_debug_info=True)
    for pipeline in ("hlotag-resolve", "canonicalize,hlotag-resolve"):  # undone in two ways: a journal, a copy
        result = core.run(capsule(module), pipeline)
        _expect(not result.ok, "a pass that has to fail succeeded")
        _expect(result.failing_pass == "hlotag-resolve", f"the wrong pass failed: {result.failing_pass!r}")
        _expect("probe.py:5:1" in _texts(result), f"the diagnostic does not name the place: {_texts(result)}")
        after = module.operation.get_asm(enable_debug_info=True)
        _expect(after == before, f"a failing pass changed the module:\n{after}")


def _walk(op: Any) -> list[Any]:
    found = [op]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += _walk(inner.operation)
    return found


def _entries(ir: Any, op: Any) -> dict[str, str] | None:
    if "mhlo.frontend_attributes" not in op.attributes:
        return None
    dictionary = ir.DictAttr(op.attributes["mhlo.frontend_attributes"])
    return {entry.name: ir.StringAttr(entry.attr).value for entry in dictionary}


def _texts(result: Any) -> str:
    return "; ".join(str(diagnostic) for diagnostic in result.diagnostics)


def _expect(condition: bool, problem: str) -> None:
    if not condition:
        raise RuntimeError(problem)
