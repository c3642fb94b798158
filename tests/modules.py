# SPDX-License-Identifier: Apache-2.0
"""Reading modules in tests."""

from dataclasses import dataclass

from jaxlib.mlir import ir

NOT_TAGGED = {"func.func", "func.return", "stablehlo.return", "sdy.return"}


@dataclass(frozen=True)
class Op:
    """What the tests compare of an operation, copied, since an `ir.Operation` does not keep its module alive."""

    name: str
    entries: dict[str, str]
    function: str
    location: str


def ops_of(lowered_or_module) -> list[Op]:
    """The operations that the program runs, in order: those in regions included, and a function's once for each of its calls.

    JAX shares one function among calls or emits it again for each, which is not what the tests are about. Calls are listed,
    terminators are not.
    """
    module = lowered_or_module.compiler_ir() if hasattr(lowered_or_module, "compiler_ir") else lowered_or_module
    functions = {
        f.operation.attributes["sym_name"].value: f.operation for f in module.body.operations if f.operation.name == "func.func"
    }
    found: list[Op] = []

    def walk(op, function):
        for child in (o.operation for region in op.regions for block in region.blocks for o in block.operations):
            if child.name in NOT_TAGGED:
                continue
            found.append(Op(child.name, entries_of(child), function, str(child.location)))
            if child.name == "func.call":
                callee = child.attributes["callee"].value
                walk(functions[callee], callee)
            walk(child, function)

    walk(functions["main"], "main")
    return found


def entries_of(op: ir.Operation) -> dict[str, str]:
    if "mhlo.frontend_attributes" not in op.attributes:
        return {}
    return {a.name: ir.StringAttr(a.attr).value for a in ir.DictAttr(op.attributes["mhlo.frontend_attributes"])}
