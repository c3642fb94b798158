# SPDX-License-Identifier: Apache-2.0
"""Judges of `combiner_key` and `collective_group_key`: which collectives were combined or launched together.

TPU's compiler combines collectives only if all of their tags are equal: `kept_apart` counts what tags of people cost there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hlotag._text import count
from hlotag._util.groups import group
from hlotag.audits.effects.schedule import Member, Schedule, Seen, names
from hlotag.audits.model import Apart, Tag
from hlotag.hlo import HloModule
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import COLLECTIVES, base
from hlotag.tagging import keys

# The backends whose compilers combine collectives only if their tags are equal.
_COMPARE_TAGS = {"tpu"}


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


# --- Collectives that tags keep apart --------------------------------------------------------------------------------------


def is_peoples(name: str) -> bool:
    """Whether a key is for people: no compiler reads it."""
    key = keys.lookup(name)
    return key is None or key.consumer == "registered"


def may_be_apart(module: HloModule, platform: str) -> bool:
    """Whether tags may keep collectives of a compiled module apart: there are two of a kind, and the compiler compares tags."""
    if keys.backend_of(platform) not in _COMPARE_TAGS:
        return False
    found = Counter(base(i.opcode) for i in module.instructions() if base(i.opcode) in COLLECTIVES and _begins(i))
    return any(number > 1 for number in found.values())


def find_apart(tags: Iterable[Tag], tagged: Schedule, untagged: Schedule) -> tuple[Apart, ...]:
    """Finds the collectives that are apart in a compiled module, and combined in that of the program without the tags.

    Collectives that differ in a key which compilers read do not count.
    """
    entries: dict[int, dict[str, str]] = {}
    for tag in tags:
        entries.setdefault(tag.op.id, {})[tag.key] = tag.value
    before = _by_op(tagged)
    found: dict[tuple[tuple[str, ...], str], list[tuple[set[Instruction], set[int]]]] = {}
    for instruction, ops in _works(untagged).items():
        apart = {before[op]: op for op in ops if op in before and base(before[op].opcode) == base(instruction.opcode)}
        differing = _find_differing([entries.get(op, {}) for op in apart.values()])
        if len(apart) > 1 and differing and all(map(is_peoples, differing)):
            found.setdefault((differing, base(instruction.opcode)), []).append((set(apart), set(apart.values())))
    return tuple(
        Apart(
            names_, opcode, sum(len(a) for a, _ in groups), len(groups), tuple(sorted(set().union(*(ops for _, ops in groups))))
        )
        for (names_, opcode), groups in found.items()
    )


def _works(schedule: Schedule) -> Mapping[Instruction, frozenset[int]]:
    """By collective, its operations."""
    collectives = (i for i in schedule.instructions if base(i.opcode) in COLLECTIVES and _begins(i))
    return {i: frozenset(op for op in schedule.work(i) if isinstance(op, int)) for i in collectives}


def _by_op(schedule: Schedule) -> dict[int, Instruction]:
    return {op: instruction for instruction, ops in _works(schedule).items() for op in ops}


def _find_differing(entries: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The keys whose values differ, without those that compilers do not get."""
    names_ = dict.fromkeys(
        name for each in entries for name in each if (key := keys.lookup(name)) is None or key.compiler is not False
    )
    return tuple([name for name in names_ if len({each.get(name) for each in entries}) > 1])
