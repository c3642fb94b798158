# SPDX-License-Identifier: Apache-2.0
"""The effect of each key and value. Judges compare the compiled module with that of the program without the tags."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

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
    judged = _list_judged(tags)
    finder = _Finder(tagged, untagged, platform, _find_neighbours(judged, ops))
    return tuple(finder.effect(key, value, found) for (key, value), found in judged.items())


def _list_judged(tags: Sequence[Tag]) -> dict[tuple[keys.Key, str], list[Op]]:
    """The operations of each key and value that some compiler reads, or that no compiler gets."""
    judged: dict[tuple[keys.Key, str], list[Op]] = {}
    lookup = functools.cache(keys.lookup)
    for tag in tags:
        key = lookup(tag.key)
        if key is not None and not key.reserved and (key.consumer != "registered" or key.compiler is False):
            judged.setdefault((key, tag.value), []).append(tag.op)
    return judged


def _find_neighbours(judged: Mapping[tuple[keys.Key, str], Sequence[Op]], ops: Sequence[Op]) -> dict[int, list[int]]:
    """By operation with a tag, its operands and users."""
    neighbours = {op.id: list(op.operands) for tagged in judged.values() for op in tagged}
    for op in ops if neighbours else ():
        for operand in neighbours.keys() & set(op.operands):
            neighbours[operand].append(op.id)
    return neighbours


class _Finder(NamedTuple):
    """Finds effects: `tagged`, `untagged` and `platform` as for `find`, and by operation its operands and users."""

    tagged: Schedule | None
    untagged: Schedule | None
    platform: str
    neighbours: Mapping[int, Sequence[int]]

    def effect(self, key: keys.Key, value: str, ops: Sequence[Op]) -> Effect:
        """The effect of a key's value on its operations."""
        if why := _why_unread(key, keys.backend_of(self.platform)):
            return Effect(key.name, value, Verdict.UNREAD, reason=why)
        if key.name not in JUDGES or self.tagged is None:
            return Effect(key.name, value, Verdict.OPEN, reason=_NOT_SHOWN)
        with_tags = self._look(key.name, value, ops, self.tagged)
        without = self._look(key.name, value, ops, self.untagged) if self.untagged else None
        made = Effect(key.name, value, *_compare(JUDGES[key.name][0], with_tags, without))
        if key.name == placement.KEY and self.untagged is not None:
            return placement.add_saving(made, self.tagged, self.untagged)
        return made

    def _look(self, name: str, value: str, ops: Sequence[Op], schedule: Schedule) -> Seen | str:
        """What a compiled module shows of a key's value."""
        members = [Member(op, schedule.of(op.id), schedule.of(*self.neighbours[op.id])) for op in ops]
        if name not in _OF_ALL:
            members = [member for member in members if not all(map(is_passive, member.instructions))]
        return JUDGES[name][1](members, schedule, value) if members else "no instruction is left of its operations"


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
    """The tags. A lost one is called consumed if its effect shows that the compiler read and took the key."""
    read = {(e.key, e.value) for e in effects if e.verdict == Verdict.CHANGED and keys.is_taken(e.key)}
    return [_as_consumed(tag) if tag.state == TagState.LOST and (tag.key, tag.value) in read else tag for tag in tags]


def _as_consumed(tag: Tag) -> Tag:
    return tag._replace(state=TagState.CONSUMED, why="its effect shows that XLA read it", carrier="")
