# SPDX-License-Identifier: Apache-2.0
"""Which operations run together or in parallel? Judges `_scheduling_group_id` and `_xla_stream_annotation`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hlotag._util.text import count
from hlotag.audit.effects.schedule import Schedule, is_glue, is_passive
from hlotag.audit.effects.verdict import Member, Verdict, gone, names, present
from hlotag.audit.model import TagState
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import kind_of

_START, _DONE = "-start", "-done"


def group(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if the members follow each other in the schedule with nothing else between them."""
    if value == "noop":
        return Verdict(None, "", "noop asks for nothing")
    left = present(members)
    if not left:
        return gone(members)
    runs_of = schedule.together([_heaviest(member.instructions) for member in left])
    if not runs_of:
        return Verdict(False, "", "its members are in computations that no other runs together")
    order = sorted({instruction for found in runs_of for instruction in found}, key=schedule.position)
    if len(left) == 1:
        why = "a group of one has nothing to run with" if len(members) == 1 else f"1 of {len(members)} operations is left"
        return Verdict(None, names(order), why)
    if len(order) == 1:
        return Verdict(True, f"all {len(left)} operations run in {names(order)}")
    runs = _runs(order, schedule)
    is_one_run = len(runs) == 1
    return (
        Verdict(True, f"{names(order)} in one run{_overlapped(order)}")
        if is_one_run
        else _scattered(left, runs_of, runs, schedule)
    )


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
        if all(map(is_glue, between)):
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs


def _scattered(
    members: Sequence[Member], runs_of: Sequence[Sequence[Instruction]], runs: list[list[Instruction]], schedule: Schedule
) -> Verdict:
    """The verdict on a group in several runs: names the longest run, the farthest member, and the reason."""
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
        return Verdict(False, evidence, f"XLA removed the key from {names(taken)} before it scheduled")
    if not any(_is_half(i, ending) for found in runs_of for i in found for ending in (_START, _DONE)):
        return Verdict(False, evidence, "XLA dissolves groups without an asynchronous operation")
    return Verdict(False, evidence, "the scheduler put other instructions between them")


def _was_taken(instruction: Instruction, members: Sequence[Member], runs_of: Sequence[Sequence[Instruction]]) -> bool:
    """Whether the scheduler saw an instruction without the key. hlotag's HLO stage restores keys after the scheduler."""
    states = {member.tag.state for member, runs in zip(members, runs_of, strict=True) if instruction in runs}
    return "_scheduling_group_id" not in instruction.attributes or TagState.RESTORED in states


def _dependences(ends: Sequence[Instruction], group: set[Instruction], schedule: Schedule) -> dict[Instruction, Instruction]:
    """Finds dataflow paths between members of a group that leave the group.

    Args:
        ends: Members that the paths start or end at.
        group: All members.
        schedule: The schedule of the module.

    Returns:
        By member at the other end of such a path, the first instruction outside of the group.
    """
    sequence = schedule.sequence_of(ends[0])
    # None for a path within the group. Glue counts as inside: it connects the halves of an asynchronous pair.
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
    """Whether an instruction is that half of an asynchronous pair. On TPU, a half may be a fusion with such a name."""
    return instruction.opcode.endswith(ending) or ending in instruction.name


def _overlapped(order: Sequence[Instruction]) -> str:
    """Names the members that run between the halves of an asynchronous member; empty if there is none."""
    if not (_is_half(order[0], _START) and _is_half(order[-1], _DONE)):
        return ""
    return f"; {names(order[1:-1]) or 'nothing'} beside {order[0].name}"


def stream(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if the members are in an asynchronous pair, which runs in parallel with the instructions between its halves."""
    left = present(members)
    if not left:
        return gone(members)
    pairs: dict[Instruction, Instruction] = {}
    outside: list[Instruction] = []
    for member in left:
        runners = [r for i in member.instructions for r in schedule.runners(i)]
        begins = [r for r in runners if r.opcode == "async-start"]
        if not begins:
            outside += member.instructions
        pairs.update((begin, schedule.end_of(begin)) for begin in begins)
    if outside:
        halves = [i for i in outside if i.opcode.endswith((_START, _DONE))]
        if halves:
            return Verdict(None, f"{names(halves)} asynchronous", "the module does not name the streams of collectives")
        return Verdict(
            False,
            f"{names(outside)} not in an asynchronous pair",
            "XLA for gpu needs a call that it does not inline: hlotag.xla_metadata_call(..., inlineable='false')",
        )
    texts = [f"{begin.name} to {end.name}, {_beside(begin, end, schedule)}" for begin, end in pairs.items() if begin is not end]
    return Verdict(True, f"stream {value}: {'; '.join(texts)}")


def _beside(begin: Instruction, end: Instruction, schedule: Schedule) -> str:
    sequence = schedule.sequence_of(begin)
    active = [i for i in sequence[schedule.position(begin) + 1 : schedule.position(end)] if not is_passive(i)]
    return f"beside {names(active) or 'nothing'}"
