# SPDX-License-Identifier: Apache-2.0
"""Judges of `_xla_compute_type` and `_xla_buffer_placement`: where operations run, and where values are stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hlotag._text import count, in_bytes, list_some
from hlotag.audits.effects.schedule import (
    HOST_MEMORY,
    Member,
    Schedule,
    Seen,
    destination,
    is_passive,
    memory_spaces,
    names,
    thread,
)
from hlotag.hlo.module import Instruction, MemoryUse
from hlotag.hlo.opcodes import Kind, kind_of
from hlotag.results.tags import Effect, Verdict

# Instructions that may copy from one memory space to another; on GPU, fusions do.
_MOVES = {"async-start", "copy", "copy-start", "custom-call", "dynamic-slice", "dynamic-update-slice", "fusion"}
_LISTED = 4
# By number of XLA's `PrimitiveType`, the size of an element, if that is not a byte.
_BYTES = {3: 2, 4: 4, 5: 8, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 8, 16: 2, 18: 16}
KEY = "_xla_buffer_placement"
_TO_HOST = ("pinned_host", "unpinned_host")
_THREADS = {"host": "host", "sparse": "sparsecore", "sparseoffload": "sparsecore", "dense": "main"}


def compute_type(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if the members run on the thread that the value names: in a computation that the main thread only starts."""
    wanted = _THREADS.get(value, value)
    active = [i for member in members for i in member.instructions if not (is_passive(i) or i.opcode.endswith("-done"))]
    computing = [i for i in active if kind_of(i.opcode) >= Kind.POINTWISE]
    found = {i: _threads(i) for i in computing or active}
    facts = frozenset((member.op.id, thread) for member in members for i in member.instructions for thread in found.get(i, ()))
    elsewhere = [i for i, threads in found.items() if wanted not in threads]
    if elsewhere:
        return Seen(facts, f"{names(elsewhere)} on the thread {', '.join(sorted(found[elsewhere[0]]))}", is_done=False)
    if wanted == "main":
        return Seen(facts, f"{names(found)} on the device")
    starts = [r for i in found for r in schedule.runners(i) if thread(r.computation) == "main"]
    inner = [i for i in found if thread(i.computation) == wanted]
    return Seen(facts, f"{names(inner)} on the {value}, run by {names(starts)}" if inner else f"{names(starts)} on the {value}")


def _threads(instruction: Instruction) -> set[str]:
    """The threads that an instruction runs on: its own, and those of the computations that it starts."""
    return {thread(instruction.computation), *map(thread, instruction.called)}


def buffer(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if the module moves each member's value into, or out of, host memory.

    A move belongs to a member if it is next to an instruction of the member or of a neighbour. A move that belongs to no member
    counts for any of them.
    """
    if value == "vmem":
        return "the compiled module does not show its effect"
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
    memory = f"; {_describe_memory(schedule.memory)}" if schedule.memory else ""
    if not moves:
        return Seen(0, f"no move {where}{memory}", is_done=False)
    described = list_some([_describe(move, owners.get(move, ())) for move in moves], _LISTED)
    size = in_bytes(sum(map(_count_moved_bytes, moves)))
    evidence = f"{count(len(moves), 'move')} of {size} {where} for {count(len(members), 'operation')}: {described}{memory}"
    if without and len(owners) == len(moves):
        places = dict.fromkeys(member.op.source or member.op.name for member in without)
        return Seen(len(moves), evidence, is_done=False, reason=f"no move for {', '.join(places)}")
    return Seen(len(moves), evidence, reason=_returns(moves, schedule) if to_host else "")


def _describe_memory(memory: MemoryUse) -> str:
    """`1.4 GiB of temporary memory on the device, 128.0 MiB on the host`."""
    return f"{in_bytes(memory.device)} of temporary memory on the device, {in_bytes(memory.host)} on the host"


def add_saving(effect: Effect, tagged: Schedule, untagged: Schedule) -> Effect:
    """Says of an offload that worked, and saved no memory of the device, that it saved none."""
    memory, without = tagged.memory, untagged.memory
    if effect.verdict != Verdict.CHANGED or effect.value not in _TO_HOST or not (memory and without):
        return effect
    if memory.device < without.device:
        return effect
    more = memory.device - without.device
    saved = (
        f"the device needs {in_bytes(more)} more than without the tags" if more else "the device needs as much without the tags"
    )
    return effect._replace(reason="; ".join(filter(None, (saved, effect.reason))))


def _returns(moves: Sequence[Instruction], schedule: Schedule) -> str:
    """How long values stay in host memory. A value that comes back at once saved no memory of the device."""
    stays: list[tuple[int, int, str, str]] = []
    for move in moves:
        end = schedule.end_of(move)
        users = [i for i in schedule.next_to(end, before=False) if i.opcode in _MOVES and _crosses(i, to_host=False)]
        back = min((i for i in users if i.computation is move.computation), key=schedule.position, default=None)
        if back is not None:
            between = schedule.sequence_of(move)[schedule.position(end) + 1 : schedule.position(back)]
            stays.append((sum(map(schedule.computes, between)), _count_moved_bytes(move), end.name, back.name))
    if not stays:
        return ""
    at_once = [stay for stay in stays if not stay[0]]
    if not at_once:
        shortest, longest = min(stays), max(stays)
        return (
            f"back after {shortest[0]} to {longest[0]} instructions that compute; {shortest[2]} to {shortest[3]} is the shortest"
        )
    _, _, end_name, back_name = at_once[0]
    size = in_bytes(sum(stay[1] for stay in at_once))
    come = "comes" if len(at_once) == 1 else "come"
    return (
        f"{len(at_once)} of {count(len(moves), 'value')} ({size}) {come} back at once: nothing computes between {end_name} and "
        f"{back_name}, so the device kept the value until then"
    )


def _count_moved_bytes(move: Instruction) -> int:
    """How many bytes a move copies. It may write to a part of a buffer, or read a part."""
    written = destination(move)
    is_host = HOST_MEMORY in memory_spaces(written)
    read = [o.proto.shape for o in move.operands if (HOST_MEMORY in memory_spaces(o.proto.shape)) != is_host]
    return min(_bytes(written), sum(map(_bytes, read)))


def _bytes(shape: Any) -> int:
    return math.prod(shape.dimensions) * _BYTES.get(shape.element_type, 1)


def _describe(move: Instruction, owners: Sequence[Member]) -> str:
    """`copy-start.4 (step.py:60)`."""
    places = dict.fromkeys(member.op.source for member in owners if member.op.source)
    return f"{move.name} ({', '.join(places)})" if places else move.name


def _crosses(instruction: Instruction, to_host: bool) -> bool:
    """Whether an instruction copies from device memory to host memory, or the other way."""
    written = HOST_MEMORY in memory_spaces(destination(instruction))
    read = {space for operand in instruction.operands for space in memory_spaces(operand.proto.shape)}
    return (written and bool(read - {HOST_MEMORY})) if to_host else (not written and HOST_MEMORY in read)
