# SPDX-License-Identifier: Apache-2.0
"""Judges of the keys of fusions, calls and loops: which operations share a fusion, and which calls and loops are left."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag._text import count
from hlotag.audits.effects.schedule import Member, Schedule, Seen, is_passive, names
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import collective_of

# What runs other instructions without computing with them.
_CONTROL = {"async-start", "call", "conditional", "while"}


def must_fuse(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if one fusion computes all members with the id."""
    kernels: dict[Instruction, set[int]] = {}
    for member in members:
        for instruction in member.instructions:
            if not is_passive(instruction):
                kernels.setdefault(_kernel(instruction, schedule), set()).add(member.op.id)
    facts = frozenset((kernel.opcode == "fusion", frozenset(ops)) for kernel, ops in kernels.items())
    if len(kernels) == 1:
        return Seen(facts, f"{count(len(members), 'operation')} in {names(kernels)}")
    alone = [kernel for kernel in kernels if kernel.opcode != "fusion"]
    evidence = f"{count(len(members), 'operation')} in {count(len(kernels), 'instruction')}: {names(kernels)}"
    return Seen(facts, evidence, is_done=False, reason=f"{names(alone)} not fused" if alone else "")


def _kernel(instruction: Instruction, schedule: Schedule) -> Instruction:
    """The outermost fusion around an instruction; else the instruction, or the reduction that applies it."""
    kernel = instruction
    for outer in schedule.around(instruction)[1:]:
        if outer.opcode in _CONTROL:
            break
        kernel = outer
    return kernel


def limit(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if no user of a member is in the member's fusion, unless the user has the key too."""
    inside = dict.fromkeys(i for member in members for i in member.instructions)
    crossed = []
    for instruction in inside:
        if _kernel(instruction, schedule) is not instruction:
            users = [i for i in instruction.computation.instructions if instruction.id in i.operand_ids]
            crossed += [user for user in users if user not in inside and not _is_cast(user)]
    facts = frozenset(work for user in crossed for work in schedule.work(user))
    if crossed:
        kernels = dict.fromkeys(_kernel(user, schedule) for user in crossed)
        return Seen(facts, f"{names(crossed)} fused across it, in {names(kernels)}", is_done=False)
    kernels = dict.fromkeys(kernel for i in inside if (kernel := _kernel(i, schedule)) is not i)
    where = f"at the end of {names(kernels)}" if kernels else "in no fusion"
    return Seen(facts, f"{names(inside)} {where}")


def _is_cast(instruction: Instruction) -> bool:
    """Whether an instruction only changes the form of the value."""
    return instruction.opcode in ("bitcast", "convert", "copy", "tuple")


def inlineable(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if a call is inlined ("true") or kept ("false"). "auto" leaves the choice to XLA."""
    if value == "auto":
        return "auto leaves it to XLA"
    found = _left(members, "call", ("call", "async-start"))
    if value != "false":
        return found._replace(is_done=not found.facts)
    return found._replace(reason="" if found.is_done else "XLA inlined the call, or nothing used its result")


def kept_loop(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if a loop that runs once stays a loop."""
    return _left(members, "while", ("while",)) if value == "true" else "only true asks for something"


def _left(members: Sequence[Member], op: str, opcodes: Sequence[str]) -> Seen:
    """Which of the calls or loops are left. The start of an asynchronous collective in a function is no call of the function."""
    left = {
        member.op.id: [i for i in member.instructions if i.opcode in opcodes and not collective_of(i)]
        for member in members
        if member.op.name.rpartition(".")[2] == op
    }
    found = [i for instructions in left.values() for i in instructions]
    wrapped = {called.id for i in found for called in i.called}  # An asynchronous call has the call in it.
    found = [i for i in found if i.computation.id not in wrapped]
    evidence = f"{names(found)} {f'is a {op}' if len(found) == 1 else f'are {op}s'}" if found else f"no {op}"
    return Seen(frozenset(number for number, instructions in left.items() if instructions), evidence, bool(found))
