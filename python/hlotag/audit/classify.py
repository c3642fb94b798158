# SPDX-License-Identifier: Apache-2.0
"""What became of each tag: by the identity of operations, never by how often a tag occurs."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlotag.audit import cost
from hlotag.audit.cse import Eliminated
from hlotag.audit.matching import Matching
from hlotag.audit.model import Op, Stage, Step, Stray, Tag, TagState, Ways
from hlotag.hlo.opcodes import MOVES, RELABELLING, Kind, kind_of, may_be, opcode_of
from hlotag.tagging import keys

_THERE = (TagState.KEPT, TagState.DUPLICATED, TagState.MERGED, TagState.RESTORED)
# A fusion is as its root, which is looked at itself; arguments and constants are nobody's.
_NO_EVIDENCE = {"constant", "fusion", "parameter"}
# Constants lose their entries before there is HLO; those of calls are copied to what is inlined.
_HAND_ON_NOTHING = {"stablehlo.constant", "func.call"}
# What tags that XLA's first module lacks went by.
CONVERSION = "conversion to HLO"
# By operation and key, the pass that took a tag away.
Taken = Mapping[tuple[int, str], str]
# How far from where it belongs a tag that moved is looked for.
_NEAR = 3


@dataclass
class Capture:
    """A module at one stage.

    Attributes:
        stage: Which.
        module: An `HloModule`.
        named: The operations that its instructions are named after.
        joined: The operations that they came from.
        callers: By instruction, the calls that it was inlined from.
        stands_for: By instruction, the operations whose tags the HLO stage gave it, those that merely compute the same included.
        restored: Keys by instruction name that the HLO stage put back.
        compiled: What XLA made of `module` after the HLO stage, if that was on.
    """

    stage: Stage
    module: Any
    named: Mapping[Any, Sequence[int]]
    joined: Mapping[Any, Sequence[int]]
    callers: Mapping[Any, Sequence[int]] = field(default_factory=dict)
    stands_for: Mapping[Any, Sequence[int]] = field(default_factory=dict)
    restored: Mapping[str, set[str]] = field(default_factory=dict)
    compiled: Any = None

    @property
    def modules(self) -> list[Any]:
        """The module at its last, and as the HLO stage had it."""
        return [module for module in (self.compiled, self.module) if module is not None]


@dataclass
class Findings:
    """What `classify` found.

    Attributes:
        tags: Every tag with all of its steps.
        strays: Tags of the last module that are on a wrong instruction.
        main: By operation, the instructions of the last module that compute it.
    """

    tags: list[Tag]
    strays: list[Stray]
    main: Mapping[int, Sequence[Any]]


def classify(
    ops: Sequence[Op],
    tags: Mapping[int, Ways],
    captures: Sequence[Capture],
    live: Callable[[], set[int]],
    eliminated: Callable[[], Eliminated],
    *,
    taken: Callable[[], Taken],
    has_program: bool = True,
) -> Findings:
    """Follows every tag through the captures.

    Args:
        ops: The operations.
        tags: Keys and values by operation, each with how it came; what became of it is appended.
        captures: The HLO modules, in the order in which XLA had them.
        live: Finds the operations that the program needs; called if some tagged one is gone.
        eliminated: Finds those that were equal to others; called if one that the program needs is gone.
        taken: Finds the tags that passes of XLA's read and took away; called if one is missing that they take.
        has_program: Whether the tags are those of a program; if not, the first capture is where they are.

    Returns:
        What became of the tags.
    """
    findings = Findings([], [], {})
    live, eliminated = functools.cache(live), functools.cache(eliminated)
    for capture in captures if has_program else captures[1:]:
        joined = _computed(capture, eliminated) if capture.stage == Stage.OPTIMIZED else capture.joined
        equals = eliminated if capture.stage == Stage.OPTIMIZED else set
        view = _View(ops, capture, Matching(ops, capture.named, joined), tags, equals)
        _follow(view, tags, live, eliminated, taken)
        findings.strays, findings.main = view.strays(ops), view.matching.main
    findings.tags = [
        Tag(key, value, ops[number], tuple(way)) for number, ways in tags.items() for (key, value), way in ways.items()
    ]
    return findings


def _computed(capture: Capture, eliminated: Callable[[], Eliminated]) -> Mapping[Any, Sequence[int]]:
    """The operations that instructions came from: of what XLA found equal, the one that it left.

    Data flow alone cannot tell equal operations apart.
    """
    present = {number for numbers in capture.named.values() for number in numbers}

    def left(instruction: Any, number: int) -> int | None:
        if number in present or number not in eliminated():
            return number
        # Others without the operation's name are pieces of what it was expanded to.
        computes = kind_of(instruction.opcode) == Kind.HEAVY or instruction.opcode in MOVES
        return eliminated().survivor_of(number) if computes else None

    return {
        i: tuple(dict.fromkeys(found for n in numbers if (found := left(i, n)) is not None))
        for i, numbers in capture.joined.items()
    }


def _follow(
    view: _View,
    tags: Mapping[int, Ways],
    live: Callable[[], set[int]],
    eliminated: Callable[[], Eliminated],
    taken: Callable[[], Taken],
) -> None:
    """Appends to each tag's way what became of it in a view."""
    for number, ways in tags.items():
        for (key, value), way in ways.items():
            # What is part of another where XLA begins may be an instruction in the end.
            if way[-1].state in _GONE and not view.is_back(number, key, value):
                continue
            step = view.step(number, key, value, live, eliminated)
            if step.state in (TagState.LOST, TagState.FOLDED) and keys.is_taken(key) and (by := taken().get((number, key))):
                step = Step(view.stage, TagState.USED, by)
            way.append(step)


def with_passes(
    tags: Sequence[Tag], passes: Sequence[tuple[str, Mapping[Any, Sequence[int]]]], *, only_attention: bool = False
) -> list[Tag]:
    """Names the pass that gave each tag its last state.

    Args:
        tags: With all of their steps.
        passes: In order: a pass, and the operations that the instructions of the module it left are named after.
        only_attention: Whether to name it only for tags that need attention.

    Returns:
        The tags; the last step of those that a pass changed names it.
    """
    if len(passes) < 2:
        return list(tags)
    plain = (TagState.KEPT, TagState.RESTORED, TagState.USED)
    wanted = [tag for tag in tags if (tag.state.needs_attention if only_attention else tag.state not in plain)]
    open_: dict[int, list[Tag]] = {}
    for tag in wanted:
        open_.setdefault(tag.op.id, []).append(tag)
    counts = [_counted(named, open_) for _, named in passes]

    def after_last(holds: Callable[[int], object]) -> str:
        """The pass after the last module of which something holds; none if it holds of none, or of the last one."""
        last = next((place for place in reversed(range(len(passes))) if holds(place)), len(passes))
        return passes[last + 1][0] if last + 1 < len(passes) else ""

    def by(tag: Tag) -> str:
        if any(step.stage == Stage.UNOPTIMIZED and step.state in _NOT_THERE for step in tag.steps):
            return CONVERSION
        pairs = [(found[tag.op.id, tag.key], missing[tag.op.id, tag.key]) for found, missing in counts]
        if tag.state in (TagState.DUPLICATED, TagState.MERGED):
            return next((passes[n][0] for n in range(1, len(passes)) if sum(pairs[n]) != sum(pairs[n - 1])), "")
        if tag.state != TagState.LOST:  # The operation is gone, with the tag or without it.
            return after_last(lambda place: sum(pairs[place]))
        is_partial = bool(tag.steps[-1].instructions)
        return after_last(lambda place: pairs[place][0] and not (is_partial and pairs[place][1]))

    names = {id(tag): by(tag) for tag in wanted}
    return [
        tag._replace(steps=(*tag.steps[:-1], tag.steps[-1]._replace(by=name))) if (name := names.get(id(tag))) else tag
        for tag in tags
    ]


def _counted(named: Mapping[Any, Sequence[int]], tags: Mapping[int, Sequence[Tag]]) -> tuple[Counter, Counter]:
    """By operation and key, how many instructions that may compute the operation have the tag, and how many lack it.

    Args:
        named: The operations that the instructions of a module are named after.
        tags: By operation, those to look for.
    """
    found, missing = Counter(), Counter()
    for instruction, numbers in named.items():
        for number in numbers:
            for tag in tags.get(number, ()):
                if may_be(tag.op.name, instruction.opcode):
                    count = found if instruction.attributes.get(tag.key) == tag.value else missing
                    count[number, tag.key] += 1
    return found, missing


_GONE = (TagState.FOLDED, TagState.DEAD, TagState.CSED)
_NOT_THERE = (*_GONE, TagState.LOST, TagState.MOVED)


class _View:
    """One capture, and who bears what in it."""

    def __init__(
        self,
        ops: Sequence[Op],
        capture: Capture,
        matching: Matching,
        tags: Mapping[int, Ways],
        equals: Callable[[], Container[int]],
    ) -> None:
        self._ops, self._named = ops, capture.named
        self.stage, self.module, self.restored = capture.stage, capture.module, capture.restored
        self.matching = matching
        self._tags, self._equals = tags, equals
        self.attributes = {i: self._as_written(i, capture) for i in capture.module.instructions() if i.attributes}
        self._strays = self._find_strays(capture)
        self._taken = self._find_taken(capture.named)
        self._by_name = {n for n, main in matching.main.items() if any(n in capture.named[i] for i in main)}

    def _as_written(self, instruction: Any, capture: Capture) -> Mapping[str, str]:
        """The attributes; XLA gives some keys of calls new values, and hands them on when it inlines: these are the program's."""
        attributes, calls = instruction.attributes, capture.callers.get(instruction, ())
        given = {entry for call in calls for entry in self._tags.get(call, ()) if not keys.is_free(entry[0])}
        if not given:
            return attributes
        own = {entry for number in capture.joined.get(instruction, ()) for entry in self._tags.get(number, ())}
        new = {key: value for key, value in given if key in attributes and (key, attributes[key]) not in own}
        return {**attributes, **new}

    def bears(self, instruction: Any, key: str, value: str) -> bool:
        """Whether the tag is there; XLA joins the values of what it combines by commas."""
        attributes = self.attributes.get(instruction)
        if attributes is None or (found := attributes.get(key)) is None:
            return False
        return found == value or value in found.split(",")

    def is_back(self, number: int, key: str, value: str) -> bool:
        """Whether a tag that was gone is there, or an instruction of its operation's name."""
        return number in self._by_name or (number, key, value) in self._taken

    def step(self, number: int, key: str, value: str, live: Callable[[], set[int]], eliminated: Callable[[], Eliminated]) -> Step:
        main = self.matching.main.get(number, [])
        bearing = [i for i in main if self.bears(i, key, value) and not self._is_borrowed(i, number, key, value)]
        if bearing:
            return self._there(number, key, main, bearing)
        if main := [i for i in main if not self._is_anothers(i, number)]:
            return Step(self.stage, TagState.LOST, detail=self._why_lost(main, key))
        glue = [i for i in self.matching.glue.get(number, ()) if i.opcode not in _NO_EVIDENCE and self.bears(i, key, value)]
        if glue:
            return Step(self.stage, TagState.KEPT, detail="on what carries its result", instructions=_each(glue))
        if moved := self._moved(number, key, value):
            return moved
        return self._gone(number, live, eliminated)

    def _there(self, number: int, key: str, main: list[Any], bearing: list[Any]) -> Step:
        names = _each(bearing)
        if self.restored and any(key in self.restored.get(i.name, ()) for i in bearing):
            return Step(self.stage, TagState.RESTORED, "hlotag's HLO stage", instructions=names)
        if len(bearing) < len(main) and self._copies(number, bearing, main) < self._copies(number, main, main):
            return Step(self.stage, TagState.LOST, detail=f"on {len(bearing)} of {len(main)} instructions", instructions=names)
        shared = {
            owner
            for i in bearing
            if len(owners := self.matching.owners.get(i, ())) > 1
            for owner in owners
            if owner != number and i in self.matching.main.get(owner, ()) and self._is_proven(i, owner)
        }
        if shared:
            return Step(self.stage, TagState.MERGED, detail=f"with {len(shared)} more", instructions=names)
        if len(bearing) > 1 and (copies := self._copies(number, bearing, main)) > 1:
            return Step(self.stage, TagState.DUPLICATED, detail=f"{copies} times", instructions=names)
        return Step(self.stage, TagState.KEPT, instructions=names)

    def _why_lost(self, main: Sequence[Any], key: str) -> str:
        """What the instructions have instead: the tag of another operation that they compute, if anything."""
        instead = {self.attributes.get(i, {}).get(key) for i in main}
        what = f"{key}={instead.pop()} instead" if len(instead) == 1 and None not in instead else "it no more"
        return f"{_names(main)} {'has' if len(main) == 1 else 'have'} {what}"

    def _is_anothers(self, instruction: Any, number: int) -> bool:
        """Whether it moves a value, and is named after another operation: it may be of either, if it has its tag."""
        named = self._named[instruction]
        return instruction.opcode in ("bitcast", "broadcast", "copy") and bool(named) and number not in named

    def _is_borrowed(self, instruction: Any, number: int, key: str, value: str) -> bool:
        """Whether it moves a value, and has the name and the tag of another operation.

        What relabels a value may be this operation nonetheless, unless its shape is another.
        """
        if not self._is_anothers(instruction, number):
            return False
        shape = cost.shape_of(self._ops[number])  # A dump has none.
        if instruction.opcode != "broadcast" and shape in (None, instruction.dimensions):
            return False
        return any((key, value) in self._tags.get(n, ()) for n in self._named[instruction])

    def _is_proven(self, instruction: Any, number: int) -> bool:
        """Whether more than data flow says that it computes an operation: what only helps several is of none of them."""
        return number in self._named[instruction] or kind_of(instruction.opcode) == Kind.HEAVY

    def _copies(self, number: int, instructions: list[Any], main: list[Any]) -> int:
        """As often as one of the operation's own kind is there; where it became others, as often as all of these are.

        An instruction of its kind that is smaller than the others helps them, as the reciprocal of a division by a broadcast.

        Args:
            number: The operation.
            instructions: Those to count, of `main`.
            main: All that compute it.
        """
        own = opcode_of(self._ops[number].name)
        largest = max((math.prod(i.dimensions) for i in main), default=0)
        has_own = any(i.opcode == own and math.prod(i.dimensions) == largest for i in main)
        alike = Counter(
            (i.opcode, i.dimensions) for i in instructions if i.opcode != "fusion" and (i.opcode == own or not has_own)
        )
        return (max if has_own else min)(alike.values(), default=0)

    def _moved(self, number: int, key: str, value: str) -> Step | None:
        instruction = self._taken.get((number, key, value))
        if instruction is None:
            return None
        detail = f"on {instruction.opcode} {instruction.name}, which is another operation's"
        return Step(self.stage, TagState.MOVED, detail=detail, instructions=(instruction.name,))

    def _gone(self, number: int, live: Callable[[], set[int]], eliminated: Callable[[], Eliminated]) -> Step:
        if number not in live():
            return Step(self.stage, TagState.DEAD)
        if number not in eliminated():
            return Step(self.stage, TagState.FOLDED)
        instead = eliminated().instead_of(number)
        return Step(self.stage, TagState.CSED, detail=f"equal to {instead.opcode} {instead.name}" if instead else "")

    def _find_strays(self, capture: Capture) -> list[tuple[Any, str, str]]:
        """Tags on instructions none of whose operations has them."""
        tagged = {entry for ways in self._tags.values() for entry in ways}
        relations = [related for related in (self.matching.owners, capture.callers, capture.stands_for) if related]
        found = []
        for instruction, attributes in self.attributes.items():
            if kind_of(instruction.opcode) == Kind.GLUE or instruction.opcode in RELABELLING:
                continue
            owners = [owner for related in relations for owner in related.get(instruction, ())]
            own = {entry for owner in owners for entry in self._tags.get(owner, ())}
            for entry in attributes.items() if owners else ():
                if entry in tagged and entry not in own:
                    found.append((instruction, *entry))
        return found

    def _find_taken(self, names: Mapping[Any, Sequence[int]]) -> dict[tuple[int, str, str], Any]:
        """By operation and tag, the instruction that the tag strayed to."""
        taken = {}
        for instruction, key, value in self._strays:
            named = names.get(instruction, ())

            def misses(number: int, entry: tuple[str, str] = (key, value)) -> bool:
                is_there = number in self.matching.main or self._ops[number].name in _HAND_ON_NOTHING
                # What is equal to another goes with its entries.
                return entry in self._tags.get(number, ()) and not is_there and number not in self._equals()

            # Named after whom it was taken from, most often; else it is a neighbour's, and XLA folds into operands. What is
            # merged into it seldom hands on entries. What it took the place of had its shape.
            users = [user for number in named for user in self.matching.users(number)]
            users += [further for user in users if user not in self.matching.main for further in self.matching.users(user)]
            near = (*named[:1], *users, *named[1:], *(n for number in named for n in self.matching.near(number, _NEAR)))
            if named and (key, value) in self._tags.get(named[0], ()):
                near = named[:1]
            distance = functools.partial(self._distance, instruction, (key, value))
            taken_by = number = min(filter(misses, near), key=distance, default=None)
            # Of several that were folded one into the next, the last one's entries are written last.
            while number is not None:
                taken_by, further = number, filter(misses, self.matching.users(number) if number not in named else ())
                number = next((user for user in further if distance(user) <= distance(taken_by)), None)
            if taken_by is not None:
                taken.setdefault((taken_by, key, value), instruction)
        return taken

    def _distance(self, instruction: Any, entry: tuple[str, str], number: int) -> tuple[bool, bool, bool]:
        """How unlikely an operation was replaced by an instruction: the most if the shape is another, and the size."""
        shape = cost.shape_of(self._ops[number])  # A dump has none.
        same_size = shape is None or math.prod(shape) == math.prod(instruction.dimensions)
        was_moved = self._tags[number][entry][-1].state == TagState.MOVED
        return shape not in (None, instruction.dimensions), not same_size, not was_moved

    def strays(self, ops: Sequence[Op]) -> list[Stray]:
        """The strays, each with the operation that it was taken from."""
        source = {(instruction, key, value): ops[number] for (number, key, value), instruction in self._taken.items()}
        return [Stray(key, value, i.name, i.opcode, source.get((i, key, value))) for i, key, value in self._strays]


def _each(instructions: Sequence[Any]) -> tuple[str, ...]:
    return tuple([i.name for i in instructions])


def _names(instructions: Sequence[Any]) -> str:
    names = ", ".join(f"{i.opcode} {i.name}" for i in instructions[:3])
    return f"{names} and {len(instructions) - 3} more" if len(instructions) > 3 else names
