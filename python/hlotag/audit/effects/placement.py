# SPDX-License-Identifier: Apache-2.0
"""Where do operations run, and where are values stored? Judges `_xla_compute_type` and `_xla_buffer_placement`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag._util.text import count, listed
from hlotag.audit.effects.schedule import HOST_MEMORY, Schedule, destination, memory_spaces, thread
from hlotag.audit.effects.verdict import Member, Verdict, gone, names, present
from hlotag.hlo.module import Instruction

# Instructions that may copy from one memory space to another; on GPU, fusions do.
_MOVES = {"async-start", "copy", "copy-start", "custom-call", "dynamic-slice", "dynamic-update-slice", "fusion"}
_LISTED = 4
_TO_HOST = ("pinned_host", "unpinned_host")
_THREADS = {"host": "host", "sparse": "sparsecore", "sparseoffload": "sparsecore", "dense": "main"}


def compute_type(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if the members run on the thread that the value names: in a computation that the main thread only starts."""
    left = present(members)
    if not left:
        return gone(members)
    wanted = _THREADS.get(value, value)
    found = {i: _threads(i) for member in left for i in member.instructions}
    elsewhere = [i for i, threads in found.items() if wanted not in threads]
    if elsewhere:
        return Verdict(False, f"{names(elsewhere)} on the thread {', '.join(sorted(found[elsewhere[0]]))}", "XLA left it there")
    if wanted == "main":
        return Verdict(True, f"{names(found)} on the device")
    starts = [r for i in found for r in schedule.runners(i) if thread(r.computation) == "main"]
    inner = [i for i in found if thread(i.computation) == wanted]
    return Verdict(True, f"{names(inner)} on the {value}, run by {names(starts)}" if inner else f"{names(starts)} on the {value}")


def _threads(instruction: Instruction) -> set[str]:
    """The threads that an instruction runs on: its own, and those of the computations that it starts."""
    start = instruction.operands[0] if instruction.opcode == "async-done" else instruction
    return {thread(instruction.computation), *map(thread, start.called)}


def buffer(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if the module moves each member's value into, or out of, host memory.

    A move belongs to a member if it is next to an instruction of the member or of a neighbour. A move that belongs to no member
    counts for any of them.
    """
    to_host = value in _TO_HOST
    moves = [i for i in schedule.scheduled() if i.opcode in _MOVES and _crosses(i, to_host) and schedule.runners(i) == [i]]
    next_to = {move: schedule.next_to(move, before=to_host) for move in moves}
    owners: dict[Instruction, list[Member]] = {}
    without = []
    for member in members:
        runners = {runner for i in (*member.instructions, *member.neighbours) for runner in schedule.runners(i)}
        own = [move for move in moves if not runners.isdisjoint(next_to[move])]
        owners.update((move, [*owners.get(move, ()), member]) for move in own)
        without += [] if own else [member]
    where = f"{'into' if to_host else 'out of'} the host's memory (S({HOST_MEMORY}))"
    if without and len(owners) == len(moves):
        places = dict.fromkeys(member.tag.op.source or member.tag.op.name for member in without)
        why = "the value was already there, or XLA simplified the move away"
        return Verdict(False, f"no move {where} for {count(len(without), 'operation')}: {', '.join(places)}", why)
    described = listed([_described(move, owners.get(move, ())) for move in moves], _LISTED)
    return Verdict(True, f"{count(len(moves), 'move')} {where} for {count(len(members), 'operation')}: {described}")


def _described(move: Instruction, owners: Sequence[Member]) -> str:
    """`copy-start.4 (step.py:60)`."""
    places = dict.fromkeys(member.tag.op.source for member in owners if member.tag.op.source)
    return f"{move.name} ({', '.join(places)})" if places else move.name


def _crosses(instruction: Instruction, to_host: bool) -> bool:
    """Whether an instruction copies from device memory to host memory, or the other way."""
    written = HOST_MEMORY in memory_spaces(destination(instruction))
    read = {space for operand in instruction.operands for space in memory_spaces(operand.proto.shape)}
    return (written and bool(read - {HOST_MEMORY})) if to_host else (not written and HOST_MEMORY in read)
