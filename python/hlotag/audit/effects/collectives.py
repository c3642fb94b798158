# SPDX-License-Identifier: Apache-2.0
"""Which collectives were combined or launched together? Judges `combiner_key` and `collective_group_key`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag.audit.effects.schedule import Schedule
from hlotag.audit.effects.verdict import Member, Verdict, gone, names, present
from hlotag.hlo.module import Instruction

_COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "reduce-scatter")


def combiner_key(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if collectives with the key are combined only with each other."""
    collectives = [i for member in present(members) for i in member.instructions if _is_collective(i)]
    if not collectives:
        return gone(members)
    mixed = [i for i in collectives if "," in i.attributes.get("combiner_key", value)]
    own = {i: len([m for m in members if i in m.instructions and _is_collective(i)]) for i in collectives}
    joined = [i for i in collectives if len(i.operand_ids) > own[i]]
    if mixed or joined:
        return Verdict(False, f"{names([*mixed, *joined])} combined with others", "XLA combined them without looking at the key")
    return Verdict(True, f"{names(collectives)} combined with none but its own")


def launch_group(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if one asynchronous pair launches all collectives with the key."""
    collectives = [i for member in present(members) for i in member.instructions if _is_collective(i)]
    if not collectives:
        return gone(members)
    launches = {begin for i in collectives for begin in schedule.runners(i) if begin.opcode == "async-start"}
    loose = [i for i in collectives if not any(r.opcode == "async-start" for r in schedule.runners(i))]
    if len(launches) == 1 and not loose:
        return Verdict(True, f"{names(collectives)} launched by {names(launches)}")
    return Verdict(False, f"{names(collectives)} launched one by one", "XLA formed no group")


def _is_collective(instruction: Instruction) -> bool:
    return instruction.opcode.removesuffix("-start") in _COLLECTIVES
