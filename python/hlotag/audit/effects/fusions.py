# SPDX-License-Identifier: Apache-2.0
"""Which operations share a fusion? Judges `MUST_FUSE` and `FUSE_LIMIT`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag._util.text import count
from hlotag.audit.effects.schedule import Schedule, is_passive
from hlotag.audit.effects.verdict import Member, Verdict, gone, names, present
from hlotag.hlo.module import Instruction


def must_fuse(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if one fusion computes all members with the id."""
    left = present(members)
    if not left:
        return gone(members)
    kernels = dict.fromkeys(_kernel(i, schedule) for member in left for i in member.instructions if not is_passive(i))
    if len(kernels) == 1:
        return Verdict(True, f"{count(len(left), 'operation')} in {names(kernels)}")
    alone = [kernel for kernel in kernels if kernel.opcode != "fusion"]
    why = f"{names(alone)} not fused" if alone else "fused with others, or among themselves, for other reasons"
    return Verdict(False, f"{count(len(left), 'operation')} in {count(len(kernels), 'instruction')}: {names(kernels)}", why)


def _kernel(instruction: Instruction, schedule: Schedule) -> Instruction:
    """The outermost fusion around an instruction; the instruction itself if there is none."""
    return next((i for i in reversed(schedule.runners(instruction)) if i.opcode == "fusion"), instruction)


def limit(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if no user of a member is in the member's fusion, unless the user has the key too."""
    left = present(members)
    if not left:
        return gone(members)
    inside = dict.fromkeys(i for member in left for i in member.instructions)
    crossed = []
    for instruction in inside:
        if _kernel(instruction, schedule) is not instruction:
            users = [i for i in instruction.computation.instructions if instruction.id in i.operand_ids]
            crossed += [user for user in users if user not in inside and not _is_cast(user)]
    if crossed:
        kernels = dict.fromkeys(_kernel(user, schedule) for user in crossed)
        return Verdict(False, f"{names(crossed)} fused across it, in {names(kernels)}", "XLA expected the fusion to be faster")
    kernels = dict.fromkeys(kernel for i in inside if (kernel := _kernel(i, schedule)) is not i)
    where = f"at the end of {names(kernels)}" if kernels else "in no fusion"
    return Verdict(True, f"{names(inside)} {where}")


def _is_cast(instruction: Instruction) -> bool:
    """Whether an instruction only changes the form of the value."""
    return instruction.opcode in ("bitcast", "convert", "copy", "tuple")
