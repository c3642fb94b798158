# SPDX-License-Identifier: Apache-2.0
"""Which operations share a fusion? Judges `MUST_FUSE` and `FUSE_LIMIT`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag._text import count
from hlotag.audits.effects.schedule import Schedule, is_passive
from hlotag.audits.effects.verdict import Member, Seen, names
from hlotag.hlo.module import Instruction


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
    """The outermost fusion around an instruction; the instruction itself if there is none."""
    return next((i for i in reversed(schedule.runners(instruction)) if i.opcode == "fusion"), instruction)


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
