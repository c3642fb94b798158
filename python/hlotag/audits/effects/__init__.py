# SPDX-License-Identifier: Apache-2.0
"""The effect of each key and value. Judges compare the compiled module with that of the program without the tags."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from hlotag.audits.effects import collectives, placement, scheduling, structure
from hlotag.audits.effects.schedule import Member, Schedule, Seen, is_passive
from hlotag.results.tags import Effect, Op, Tag, TagState, Verdict
from hlotag.tagging import keys

__all__ = ["JUDGES", "find", "keys_to_judge", "without_lost"]

# Returns what the compiled module shows; or the reason, as text, why it shows nothing.
Judge = Callable[[Sequence[Member], Schedule, str], Seen | str]

# By key, the part of the compiled module that an effect is seen in, and the judge.
JUDGES: Mapping[str, tuple[str, Judge]] = {
    "_scheduling_group_id": ("schedule", scheduling.group),
    "_xla_stream_annotation": ("stream", scheduling.stream),
    "_xla_compute_type": ("thread", placement.compute_type),
    placement.KEY: ("memory space", placement.buffer),
    "MUST_FUSE": ("fusion", structure.must_fuse),
    "FUSE_LIMIT": ("fusion", structure.limit),
    "inlineable": ("kept call", structure.inlineable),
    "skip-simplify-while-loops_trip-count-one": ("kept loop", structure.kept_loop),
    "combiner_key": ("collectives", collectives.combiner_key),
    "collective_group_key": ("launch", collectives.launch_group),
}
# The keys whose judges also take operations without an instruction. Other judges take operations with a computing instruction.
_OF_ALL = {placement.KEY, "inlineable", "skip-simplify-while-loops_trip-count-one"}
_NOT_SHOWN = "the compiled module does not show its effect"
_NOT_COMPARED = "not compared with the program without the tags"


def keys_to_judge(names: Iterable[str], platform: str) -> set[str]:
    """Of some keys, those that have a judge, and that the compiler of a platform (JAX's name) reads."""
    backend = keys.backend_of(platform)
    return {name for name in names if name in JUDGES and (key := keys.lookup(name)) and not _why_unread(key, backend)}


def find(
    tags: Sequence[Tag],
    ops: Sequence[Op],
    tagged: Schedule | None,
    untagged: Schedule | None,
    platform: str,
) -> tuple[Effect, ...]:
    """Finds what each key changed that some compiler reads, or that no compiler gets, in program order.

    `tagged` is the compiled module, None without `judged_keys`; `untagged` that of the program without the tags, if there is one.
    """
    by_tag: dict[tuple[keys.Key, str], list[Op]] = {}
    known = functools.cache(keys.lookup)
    for tag in tags:
        key = known(tag.key)
        if key is not None and not key.reserved and (key.consumer != "registered" or key.compiler is False):
            by_tag.setdefault((key, tag.value), []).append(tag.op)
    if not by_tag:
        return ()
    neighbours = {op.id: list(op.operands) for found in by_tag.values() for op in found}
    for op in ops:
        for operand in neighbours.keys() & set(op.operands):
            neighbours[operand].append(op.id)

    def seen(name: str, value: str, found: Sequence[Op], schedule: Schedule) -> Seen | str:
        members = [Member(op, schedule.of(op.id), schedule.of(*neighbours[op.id])) for op in found]
        if name not in _OF_ALL:
            members = [member for member in members if not all(map(is_passive, member.instructions))]
        return JUDGES[name][1](members, schedule, value) if members else "no instruction is left of its operations"

    def effect(key: keys.Key, value: str, found: Sequence[Op]) -> Effect:
        if why := _why_unread(key, keys.backend_of(platform)):
            return Effect(key.name, value, Verdict.UNREAD, reason=why)
        if key.name not in JUDGES or tagged is None:
            return Effect(key.name, value, Verdict.OPEN, reason=_NOT_SHOWN)
        with_tags = seen(key.name, value, found, tagged)
        without = seen(key.name, value, found, untagged) if untagged else None
        made = Effect(key.name, value, *_compare(JUDGES[key.name][0], with_tags, without))
        return placement.add_saving(made, tagged, untagged) if key.name == placement.KEY and untagged else made

    return tuple(effect(key, value, found) for (key, value), found in by_tag.items())


def _compare(what: str, tagged: Seen | str, untagged: Seen | str | None) -> tuple[Verdict, str, str, str, str]:
    """The fields of an `Effect` after its value."""
    if isinstance(tagged, str):
        return Verdict.OPEN, "", "", "", tagged
    if untagged is None:
        return Verdict.OPEN, "", tagged.evidence, "", tagged.reason or _NOT_COMPARED
    if not isinstance(untagged, str) and tagged.facts == untagged.facts:
        return Verdict.SAME, what, tagged.evidence, "", tagged.reason
    verdict = Verdict.CHANGED if tagged.is_done else Verdict.REFUSED
    without = untagged if isinstance(untagged, str) else untagged.evidence
    return verdict, what, tagged.evidence, without, tagged.reason


def _why_unread(key: keys.Key, backend: str) -> str:
    """Why a compiler does not read a key; empty if it does, or the compiler is not known."""
    if key.compiler is False:
        return "hidden from XLA: registered with compiler=False"
    if not backend or backend in key.seen:
        return ""
    reads = "was not seen to read it" if backend in key.readers else "does not read it"
    readers = f"read by {', '.join(key.seen)}" if key.seen else "no compiler was seen to"
    return f"XLA for {backend} {reads}; {readers}"


def without_lost(tags: Sequence[Tag], effects: Iterable[Effect]) -> list[Tag]:
    """The tags. A lost one is called used if its effect shows that the compiler read and took the key."""
    read = {(e.key, e.value) for e in effects if e.verdict == Verdict.CHANGED and keys.is_taken(e.key)}
    return [_mark_used(tag) if tag.state == TagState.LOST and (tag.key, tag.value) in read else tag for tag in tags]


def _mark_used(tag: Tag) -> Tag:
    return tag._replace(state=TagState.CONSUMED, why="its effect shows that XLA read it", carrier="")
