# SPDX-License-Identifier: Apache-2.0
"""Did the compiler do what each key and value asks for? Judges by the instructions of the tagged operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlotag.audit.effects import collectives, fusions, placement, scheduling, structure
from hlotag.audit.effects.schedule import Schedule
from hlotag.audit.effects.verdict import Member, Verdict
from hlotag.audit.model import Effect, Op, Tag
from hlotag.hlo import HloModule
from hlotag.hlo.module import Instruction
from hlotag.tagging import keys

Judge = Callable[[Sequence[Member], Schedule, str], Verdict]

# By key, the function that looks for its effect.
JUDGES: Mapping[str, Judge] = {
    "_scheduling_group_id": scheduling.group,
    "_xla_stream_annotation": scheduling.stream,
    "_xla_compute_type": placement.compute_type,
    "_xla_buffer_placement": placement.buffer,
    "MUST_FUSE": fusions.must_fuse,
    "FUSE_LIMIT": fusions.limit,
    "inlineable": structure.inlineable,
    "skip-simplify-while-loops_trip-count-one": structure.kept_loop,
    "combiner_key": collectives.combiner_key,
    "collective_group_key": collectives.launch_group,
}


def find(
    tags: Sequence[Tag],
    ops: Sequence[Op],
    instructions: Mapping[int, Sequence[Any]],
    modules: Sequence[HloModule],
    platform: str,
) -> tuple[Effect, ...]:
    """Looks for the effect of each key that some compiler reads.

    Args:
        tags: The tags of an audit.
        ops: The operations of the audit, by id.
        instructions: By operation, its instructions, or others with the same names.
        modules: Versions of the optimized module. The first that has all instructions is used, else the last.
        platform: JAX's name of the platform that the modules were compiled for.

    Returns:
        One effect for each value of each key of the catalogue, and of keys that compilers do not get, in program order.
    """
    backend = keys.backend_of(platform)
    by_tag: dict[tuple[keys.Key, str], list[Tag]] = {}
    for tag in tags:
        key = keys.lookup(tag.key)
        if key is not None and not key.reserved and (key.consumer != "registered" or not key.compiler):
            by_tag.setdefault((key, tag.value), []).append(tag)
    if not by_tag:
        return ()
    neighbours = {tag.op.id: list(tag.op.operands) for found in by_tag.values() for tag in found}
    for op in ops:
        for operand in neighbours.keys() & set(op.operands):
            neighbours[operand].append(op.id)
    schedule = _schedule_with({i.name for op in neighbours for i in instructions.get(op, ())}, modules)

    def instructions_of(*found: int) -> list[Instruction]:
        names = [i.name for op in found for i in instructions.get(op, ())]
        return [schedule.by_name[name] for name in names if name in schedule.by_name]

    def members(found: Sequence[Tag]) -> list[Member]:
        return [Member(tag, instructions_of(tag.op.id), instructions_of(*neighbours[tag.op.id])) for tag in found]

    return tuple(_effect(key, value, members(found), schedule, backend) for (key, value), found in by_tag.items())


def _schedule_with(names: set[str], modules: Sequence[HloModule]) -> Schedule:
    # XLA renames instructions that it makes synchronous again after the HLO stage.
    for module in modules[:-1]:
        if names <= (schedule := Schedule(module)).by_name.keys():
            return schedule
    return Schedule(modules[-1])


def _effect(key: keys.Key, value: str, members: Sequence[Member], schedule: Schedule, backend: str) -> Effect:
    judge = JUDGES.get(key.name)
    if judge is None:
        found = Verdict(None, "", "the compiled module does not show its effect")
    else:
        found = judge(members, schedule, value)
    if not key.compiler:
        withheld = "withheld from XLA: registered with compiler=False"
        return Effect(key.name, value, None, found.evidence, withheld)
    if not backend or backend in key.seen:
        return Effect(key.name, value, *found)
    # A compiler that does not read the key did not obey it, whatever the module shows.
    reads = "was not seen to read it" if backend in key.readers else "does not read it"
    readers = f"read by {', '.join(key.seen)}" if key.seen else "no compiler was seen to"
    return Effect(key.name, value, None, found.evidence, f"XLA for {backend} {reads}; {readers}")
