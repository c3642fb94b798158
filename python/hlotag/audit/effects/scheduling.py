# SPDX-License-Identifier: Apache-2.0
"""Whether operations run together, or beside others: `_scheduling_group_id`, `_xla_stream_annotation`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from hlotag._util.text import count
from hlotag.audit.effects.schedule import Schedule, is_glue, is_passive
from hlotag.audit.effects.verdict import Member, Verdict, gone, names, present
from hlotag.audit.model import TagState
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import kind_of

_BEGINS, _ENDS = "-start", "-done"


def group(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """A scheduling group: its members are to follow each other in the schedule, with nothing else between them."""
    if value == "noop":
        return Verdict(None, "", "noop asks for nothing")
    there = present(members)
    if not there:
        return gone(members)
    runs_of = schedule.together([_own(member.instructions) for member in there])
    if not runs_of:
        return Verdict(False, "", "its members are in computations that no other runs together")
    order = sorted({instruction for found in runs_of for instruction in found}, key=schedule.position)
    if len(there) == 1:
        why = "a group of one has nothing to run with" if len(members) == 1 else f"1 of {len(members)} operations is left"
        return Verdict(None, names(order), why)
    runs = _runs(order, schedule)
    if len(order) == 1:
        return Verdict(True, f"all {len(there)} operations run in {names(order)}")
    return (
        Verdict(True, f"{names(order)} in one run" + _overlapped(order))
        if len(runs) == 1
        else _scattered(there, runs_of, runs, schedule)
    )


def _own(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Without the casts of operands that the compiler made of an operation, which it moves to where the operands are made."""
    heaviest = max(kind_of(i.opcode) for i in instructions)
    return [i for i in instructions if kind_of(i.opcode) == heaviest]


def _runs(order: Sequence[Instruction], schedule: Schedule) -> list[list[Instruction]]:
    """The members between which nothing else computes."""
    sequence = schedule.sequence(order[0].computation.id)
    runs = [[order[0]]]
    for before, after in itertools.pairwise(order):
        between = sequence[schedule.position(before) + 1 : schedule.position(after)]
        if all(map(is_glue, between)):
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs


def _scattered(
    members: Sequence[Member], runs_of: Sequence[Sequence[Instruction]], runs: list[list[Instruction]], schedule: Schedule
) -> Verdict:
    """The longest run, the member that is farthest from it, and why."""
    longest = max(runs, key=lambda run: (len({n for n, of in enumerate(runs_of) if not set(run).isdisjoint(of)}), len(run)))
    inside = [number for number, of in enumerate(runs_of) if set(of) <= set(longest)]
    first, last = schedule.position(longest[0]), schedule.position(longest[-1])

    def distance(instruction: Instruction) -> int:
        place = schedule.position(instruction)
        return max(first - place, place - last)

    outside = sorted((i for run in runs if run is not longest for i in run), key=distance, reverse=True)
    group = {*longest, *outside}
    through = _dependences(longest, group, schedule) or _dependences(outside, group, schedule)
    farthest = next((i for i in outside if i in through), outside[0])
    evidence = (
        f"{len(inside)} of {len(runs_of)} in one run ({names(longest)}); "
        f"{farthest.name} is {count(distance(farthest), 'instruction')} away"
    )
    if len({member.tag.op.phase for member in members}) > 1:
        return Verdict(False, evidence, "forward and backward operations share the id; give derived ones another by grad=")
    if farthest in through:
        return Verdict(False, evidence, f"a dependence through {through[farthest].name}")
    if taken := [i for i in outside if _was_taken(i, members, runs_of)]:
        return Verdict(False, evidence, f"XLA took the key off {names(taken)} before it scheduled")
    if not any(_is_half(i, ending) for found in runs_of for i in found for ending in (_BEGINS, _ENDS)):
        return Verdict(False, evidence, "XLA dissolves groups without an asynchronous operation")
    return Verdict(False, evidence, "the scheduler put other instructions between them")


def _was_taken(instruction: Instruction, members: Sequence[Member], runs_of: Sequence[Sequence[Instruction]]) -> bool:
    """Whether the instruction has the key no more, or has it from hlotag's HLO stage only, which runs after the scheduler."""
    states = {member.tag.state for member, runs in zip(members, runs_of, strict=True) if instruction in runs}
    return "_scheduling_group_id" not in instruction.attributes or TagState.RESTORED in states


def _dependences(ends: Sequence[Instruction], group: set[Instruction], schedule: Schedule) -> dict[Instruction, Instruction]:
    """The gaps in a group.

    Args:
        ends: Some of its members.
        group: All of them.
        schedule: Of the module.

    Returns:
        By member that depends on one of `ends`, or one of them on it, through instructions outside of the group: the first.
    """
    sequence = schedule.sequence(ends[0].computation.id)
    # None: by members only. The members of an asynchronous pair depend on each other through glue, which is no gap.
    after: dict[Instruction, Instruction | None] = dict.fromkeys(ends)
    for instruction in sequence:
        if found := [after[i] for i in instruction.operands if i in after]:
            foreign = None if instruction in group or is_glue(instruction) else instruction
            after[instruction] = next(filter(None, found), foreign)
    before: dict[Instruction, Instruction | None] = dict.fromkeys(ends)
    for instruction in reversed(sequence):
        if instruction in before:
            foreign = None if instruction in group or is_glue(instruction) else instruction
            through = foreign or before[instruction]
            before.update((i, through or before.get(i)) for i in instruction.operands)
    return {i: through for i in group if (through := after.get(i) or before.get(i))}


def _is_half(instruction: Instruction, ending: str) -> bool:
    """Whether it begins, or ends, something asynchronous; TPU's compiler writes such collectives as fusions of such names."""
    return instruction.opcode.endswith(ending) or ending in instruction.name


def _overlapped(order: Sequence[Instruction]) -> str:
    """What runs while the first member is under way, if that is asynchronous."""
    if not (_is_half(order[0], _BEGINS) and _is_half(order[-1], _ENDS)):
        return ""
    return f"; {names(order[1:-1]) or 'nothing'} beside {order[0].name}"


def stream(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """A stream: the members are to be in an asynchronous pair, which runs beside what is scheduled between its halves."""
    there = present(members)
    if not there:
        return gone(members)
    pairs: dict[Instruction, Instruction] = {}
    outside: list[Instruction] = []
    for member in there:
        runners = [r for i in member.instructions for r in schedule.runners(i)]
        begins = [r for r in runners if r.opcode == "async-start"]
        if not begins:
            outside += member.instructions
        pairs.update((begin, schedule.end_of(begin)) for begin in begins)
    if outside:
        heavy = [i for i in outside if i.opcode.endswith((_BEGINS, _ENDS))]
        if heavy:
            return Verdict(None, f"{names(heavy)} asynchronous", "the module does not name the streams of collectives")
        return Verdict(
            False,
            f"{names(outside)} not in an asynchronous pair",
            "XLA for gpu takes calls that it does not inline: hlotag.xla_metadata_call(..., inlineable='false')",
        )
    texts = [f"{begin.name} to {end.name}, {_beside(begin, end, schedule)}" for begin, end in pairs.items() if begin is not end]
    return Verdict(True, f"stream {value}: {'; '.join(texts)}")


def _beside(begin: Instruction, end: Instruction, schedule: Schedule) -> str:
    sequence = schedule.sequence(begin.computation.id)
    between: Iterable[Instruction] = sequence[schedule.position(begin) + 1 : schedule.position(end)]
    active = [i for i in between if not is_passive(i)]
    return f"beside {names(active)}" if active else "beside nothing"
