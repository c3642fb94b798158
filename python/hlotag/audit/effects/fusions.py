# SPDX-License-Identifier: Apache-2.0
"""What is fused with what: `MUST_FUSE`, `FUSE_LIMIT`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag._util.text import count
from hlotag.audit.effects.schedule import Schedule, is_passive
from hlotag.audit.effects.verdict import Member, Verdict, gone, names, present
from hlotag.hlo.module import Instruction


def must_fuse(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Members with one id: one fusion is to compute them all."""
    there = present(members)
    if not there:
        return gone(members)
    kernels: dict[Instruction, int] = {}
    for member in there:
        for kernel in dict.fromkeys(_kernel(i, schedule) for i in member.instructions if not is_passive(i)):
            kernels[kernel] = kernels.get(kernel, 0) + 1
    if len(kernels) == 1:
        return Verdict(True, f"{count(len(there), 'operation')} in {names(kernels)}")
    alone = [kernel for kernel in kernels if kernel.opcode != "fusion"]
    why = f"{names(alone)} not fused" if alone else "fused with others, or among themselves, for other reasons"
    return Verdict(False, f"{count(len(there), 'operation')} in {count(len(kernels), 'instruction')}: {names(kernels)}", why)


def _kernel(instruction: Instruction, schedule: Schedule) -> Instruction:
    """The outermost fusion around an instruction; itself if there is none."""
    return next((i for i in reversed(schedule.runners(instruction)) if i.opcode == "fusion"), instruction)


def limit(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """A limit: a member's users are not to be in its fusion, unless they have the key too."""
    there = present(members)
    if not there:
        return gone(members)
    inside = dict.fromkeys(i for member in there for i in member.instructions)
    crossed = []
    for instruction in inside:
        if _kernel(instruction, schedule) is not instruction:
            users = [i for i in instruction.computation.instructions if instruction.id in i.operand_ids]
            crossed += [user for user in users if user not in inside and not _is_cast(user)]
    if crossed:
        kernels = dict.fromkeys(_kernel(user, schedule) for user in crossed)
        return Verdict(False, f"{names(crossed)} fused across it, in {names(kernels)}", "XLA fused what it found worth fusing")
    kernels = dict.fromkeys(kernel for i in inside if (kernel := _kernel(i, schedule)) is not i)
    where = f"at the end of {names(kernels)}" if kernels else "in no fusion"
    return Verdict(True, f"{names(inside)} {where}")


def _is_cast(instruction: Instruction) -> bool:
    """Whether it gives the value another form within the same fusion."""
    return instruction.opcode in ("bitcast", "convert", "copy", "tuple")
