# SPDX-License-Identifier: Apache-2.0
"""What an audit says of kernels, held against the instructions of the compiled module."""

from __future__ import annotations

from hlotag._util.groups import group
from hlotag.audits import Audit
from hlotag.hlo import HloModule
from hlotag.profiles.program import Program

_PRODUCTS = {"dot_general", "convolution", "ragged_dot"}
_HOLD = {"dot", "convolution", "custom-call"}  # A library multiplies in a custom call.


def find_products_not_held(audit: Audit, module: HloModule) -> set[str]:
    """The kernels that are said to compute a product, and hold none."""
    found: dict[str, set[str]] = {}
    for instruction in module.instructions():
        fusion = module.fusions.get(instruction.computation.id)
        found.setdefault(fusion.name if fusion else instruction.name, set()).add(instruction.opcode)
    said = {i.kernel for i in audit.instructions for n in i.ops if audit.ops[n].name.rpartition(".")[2] in _PRODUCTS}
    assert said or not any(opcodes & {"dot", "convolution"} for opcodes in found.values())
    return {name for name in said if _HOLD.isdisjoint(found.get(name, ()))}


def find_products_of_others(audit: Audit) -> set[str]:
    """The products of the module that are said to compute something else."""
    products = (each for each in audit.instructions if each.opcode == "dot" and each.ops)
    return {each.name for each in products if audit.ops[each.ops[0]].name.rpartition(".")[2] not in _PRODUCTS}


def find_fusions_that_disagree(audit: Audit, module: HloModule, key: str, slack: float = 0.0) -> list[tuple[str, str]]:
    """The fusions whose tag is not on most of the work in them, by more than `slack` of it, each with the tag."""
    program, found = Program(audit), []
    inside = group((each.fusion, each) for each in audit.instructions if each.owners)
    for fusion in module.instructions():
        if fusion.opcode != "fusion" or fusion.computation.id in module.fusions:
            continue
        work: dict[str, float] = {}
        for each in inside.get(fusion.name, ()):
            for owner in each.owners:
                value = program.values(audit.ops[owner]).get(key, "")
                work[value] = work.get(value, 0.0) + each.effort / len(each.owners)
        tag = fusion.attributes.get(key, "")
        if work and work.get(tag, 0.0) < max(work.values()) - (slack + 1e-9) * sum(work.values()):
            found.append((fusion.name, tag))
    return found
