# SPDX-License-Identifier: Apache-2.0
"""Whether the compiler did what tags ask for: per key and value, judged by the instructions that the operations became."""

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
        tags: Of an audit.
        ops: Of the audit, by id.
        instructions: By operation, the instructions that it became, or that are named as these are.
        modules: The optimized module; the first is looked at that has all of the instructions, else the last.
        platform: What it was compiled for, as JAX calls it.

    Returns:
        One for each key of the catalogue and value, in the order in which the program has them.
    """
    backend = keys.backend_of(platform)
    by_tag: dict[tuple[keys.Key, str], list[Tag]] = {}
    for tag in tags:
        key = keys.lookup(tag.key)
        if key is not None and not key.reserved and key.consumer != "registered":
            by_tag.setdefault((key, tag.value), []).append(tag)
    if not by_tag:
        return ()
    near = {tag.op.id: list(tag.op.operands) for found in by_tag.values() for tag in found}
    for op in ops:
        for operand in near.keys() & set(op.operands):
            near[operand].append(op.id)
    schedule = _first_with({i.name for op in near for i in instructions.get(op, ())}, modules)

    def became(*found: int) -> list[Instruction]:
        names = [i.name for op in found for i in instructions.get(op, ())]
        return [schedule.by_name[name] for name in names if name in schedule.by_name]

    return tuple(
        _effect(key, value, [Member(tag, became(tag.op.id), became(*near[tag.op.id])) for tag in found], schedule, backend)
        for (key, value), found in by_tag.items()
    )


def _first_with(names: set[str], modules: Sequence[HloModule]) -> Schedule:
    # After the HLO stage, XLA renames what it makes synchronous again.
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
    if not backend or backend in key.seen:
        return Effect(key.name, value, *found)
    # What happens without being asked for is no obedience.
    reads = "was not seen to read it" if backend in key.readers else "does not read it"
    readers = f"read by {', '.join(key.seen)}" if key.seen else "no compiler was seen to"
    return Effect(key.name, value, None, found.evidence, f"XLA for {backend} {reads}; {readers}")
