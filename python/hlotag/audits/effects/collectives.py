# SPDX-License-Identifier: Apache-2.0
"""Judges of `combiner_key` and `collective_group_key`: which collectives were combined or launched together."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag._text import count
from hlotag._util.groups import group
from hlotag.audits.effects.schedule import Member, Schedule, Seen, names
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import COLLECTIVES, base


def combiner_key(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if collectives with the key are combined only with each other."""
    ops = {member.op.id for member in members}
    found = {i: schedule.work(i) for i in _collectives_of(members)}
    if not found:
        return "no collective is left of its operations"
    joined = [i for i, work in found.items() if not work <= ops]
    evidence = f"{names(joined)} combined with others" if joined else f"{names(found)} combined with none but its own"
    return Seen(frozenset(found.values()), evidence, not joined)


def launch_group(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if one asynchronous pair launches all collectives with the key, or XLA combined them into one."""
    collectives = _collectives_of(members)
    if not collectives:
        return "no collective is left of its operations"
    launches = group((next((r for r in schedule.runners(i) if r.opcode == "async-start"), i), i) for i in collectives)
    facts = frozenset(frozenset(map(schedule.work, found)) for found in launches.values())
    if len(launches) == 1 and collectives[0] not in launches:
        return Seen(facts, f"{names(collectives)} launched by {names(launches)}")
    if len(collectives) == 1 and len(members) > 1:
        return Seen(facts, f"{names(collectives)} combined from {count(len(members), 'operation')}: one launch")
    reason = "XLA did not launch them together" if len(members) > 1 else "a group of one has nothing to be launched with"
    return Seen(facts, f"{names(collectives)} launched one by one", is_done=False, reason=reason)


def _collectives_of(members: Sequence[Member]) -> list[Instruction]:
    return list(dict.fromkeys(i for m in members for i in m.instructions if base(i.opcode) in COLLECTIVES and _begins(i)))


def is_collective(instruction: Instruction, schedule: Schedule) -> bool:
    """Whether a scheduled instruction is or begins a collective. On TPU, it may be the first of two fusions."""
    is_half = instruction.opcode == "fusion" and schedule.end_of(instruction) is not instruction
    return is_half or (base(instruction.opcode) in COLLECTIVES and _begins(instruction))


def _begins(instruction: Instruction) -> bool:
    return not instruction.opcode.endswith("-done")
