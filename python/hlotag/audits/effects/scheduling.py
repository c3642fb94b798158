# SPDX-License-Identifier: Apache-2.0
"""Judges of `_scheduling_group_id` and `_xla_stream_annotation`: which operations run together or in parallel."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from hlotag.audits.effects.collectives import is_collective
from hlotag.audits.effects.schedule import Member, Schedule, Seen, names
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import kind_of

_LISTED = 3  # instructions that others overlap


def group(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if nothing else computes between the members, and a member overlaps each collective of the group."""
    if value == "noop":
        return "noop asks for nothing"
    runs_of = schedule.together([_heaviest(member.instructions) for member in members])
    if not runs_of:
        return Seen("apart", "its members are in computations that no other runs together", is_done=False)
    order = sorted({instruction for found in runs_of for instruction in found}, key=schedule.position)
    runs = _runs(order, schedule)
    longest = max(runs, key=len)
    collectives = [i for i in order if is_collective(i, schedule)]
    begins = collectives or [i for i in order if i.opcode == "async-start"]
    beside = {begin: schedule.find_overlapping(begin) for begin in begins}
    facts = (
        frozenset(
            frozenset(m.op.id for m, of in zip(members, runs_of, strict=True) if not run.isdisjoint(of)) for run in map(set, runs)
        ),
        frozenset((schedule.work(begin), _work(found, schedule) - schedule.work(begin)) for begin, found in beside.items()),
    )
    texts = (
        [f"{names(order)} contiguous" if len(runs) == 1 else _in_runs(runs_of, longest)] if len(order) > 1 or not begins else []
    )
    texts += _in_words(beside)
    alone = [begin for begin, found in beside.items() if found and set(found).isdisjoint(order)]
    is_parallel = all(beside.values()) if collectives else any(beside.values()) or not begins
    is_done = len(runs) == 1 and is_parallel and not alone
    return Seen(facts, "; ".join(texts), is_done, _reason(members, alone))


def _heaviest(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The instructions of the heaviest kind: an operation's casts of operands may be scheduled with the operands."""
    heaviest = max(kind_of(i.opcode) for i in instructions)
    return [i for i in instructions if kind_of(i.opcode) == heaviest]


def _runs(order: Sequence[Instruction], schedule: Schedule) -> list[list[Instruction]]:
    """Splits instructions into runs: within a run, nothing else computes in between."""
    sequence = schedule.sequence_of(order[0])
    runs = [[order[0]]]
    for before, after in itertools.pairwise(order):
        between = sequence[schedule.position(before) + 1 : schedule.position(after)]
        if any(map(schedule.computes, between)):
            runs.append([after])
        else:
            runs[-1].append(after)
    return runs


def _in_runs(runs_of: Sequence[Sequence[Instruction]], longest: Sequence[Instruction]) -> str:
    inside = [of for of in runs_of if set(of) <= set(longest)]
    return f"{len(inside)} of {len(runs_of)} contiguous ({names(longest)})"


def _reason(members: Sequence[Member], alone: Sequence[Instruction]) -> str:
    if len(members) == 1:
        return "a group of one has nothing to run with"
    if len({member.op.phase in ("backward", "recomputed") for member in members}) > 1:
        return "forward and backward operations share the id; give derived ones another by grad="
    return f"nothing of the group runs during {names(alone)}" if alone else ""


def stream(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if the members are in asynchronous pairs, and something overlaps them."""
    beside: dict[Instruction, list[Instruction]] = {}
    facts, outside = set(), []
    for member in members:
        runners = [r for i in member.instructions for r in schedule.runners(i)]
        begins = {r: schedule.find_overlapping(r) for r in runners if r.opcode == "async-start"}
        beside |= begins
        facts |= {(member.op.id, work) for found in begins.values() for work in _work(found, schedule)}
        outside += [] if begins else member.instructions
    if halves := [i for i in outside if i.opcode.endswith(("-start", "-done"))]:
        return f"{names(halves)} asynchronous; the module does not name the streams of collectives"
    if outside:
        why = "XLA for gpu needs a call that it does not inline: hlotag.xla_metadata_call(..., inlineable='false')"
        computing = [i for i in outside if schedule.computes(i)] or outside
        return Seen(frozenset(facts), f"{names(computing)} not in an asynchronous pair", is_done=False, reason=why)
    return Seen(frozenset(facts), f"{'; '.join(_in_words(beside))} on stream {value}", is_done=any(beside.values()))


def _in_words(beside: Mapping[Instruction, Sequence[Instruction]]) -> list[str]:
    """What overlaps each instruction, the first few of them; then those that nothing overlaps."""
    busy = [f"{names(found)} during {begin.name}" for begin, found in beside.items() if found]
    idle = [begin for begin, found in beside.items() if not found]
    more = [f"something during {len(busy) - _LISTED} more"] if len(busy) > _LISTED else []
    return [*busy[:_LISTED], *more, *([f"nothing during {names(idle)}"] if idle else [])]


def _work(instructions: Iterable[Instruction], schedule: Schedule) -> frozenset[int | str]:
    return frozenset(work for instruction in instructions for work in schedule.work(instruction))
