# SPDX-License-Identifier: Apache-2.0
"""The fate of each tag, from the instructions of each operation in each form of the program."""

from __future__ import annotations

import gc
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

from hlotag._text import list_some
from hlotag.audits import cost, model
from hlotag.audits.evidence import Evidence, Named, Passes
from hlotag.audits.matching import CARRIERS, Matching
from hlotag.audits.model import Form, Op, Step, Stray, Tag, TagState, TagSteps, default_phase
from hlotag.hlo import HloModule
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import MOVES, RELABELLING, Kind, collective_of, kind_of, may_be, opcode_of
from hlotag.hlo.origins import place_of
from hlotag.hlo.work import Caller, Roles, find_callers, find_roles, measure
from hlotag.tagging import keys

_GONE = (TagState.FOLDED, TagState.DEAD, TagState.CSED)
_UNCHANGED = (TagState.KEPT, TagState.RESTORED, TagState.USED)
_MISSING = (*_GONE, TagState.LOST, TagState.MOVED)
# Glue whose tags are no evidence. A fusion has the tags of its root, which counts itself.
_NO_EVIDENCE = {"constant", "fusion", "parameter"}
# Operations whose tags cannot have moved: constants lose theirs before HLO, and inlined instructions copy those of calls.
_NEVER_MOVED_FROM = {"stablehlo.constant", "func.call"}
# What is never an event of its own.
_NEVER_RUN = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}
_NO_ROLES = Roles()
# The `by` of tags that are missing in XLA's first module already.
CONVERSION = "conversion to HLO"
# Limit of dataflow steps from a stray tag to the operation that lacks it.
_MAX_DISTANCE = 3


@contextmanager
def no_collection() -> Iterator[None]:
    """Turns the collector off in a block that allocates and frees nothing: its runs over JAX's many objects double the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass
class Capture:
    """A module of one form of the program.

    Attributes:
        form: The form.
        module: An `HloModule`.
        named: By instruction, the operations that it is named after.
        joined: By instruction, the operations that it came from.
        callers: By instruction, the calls that it was inlined from.
        stands_for: By instruction, the operations whose tags the HLO stage gave it, equal operations included.
        restored: By instruction name, the keys that the HLO stage restored.
        fusions: By id of a computation, the fusion that it is part of, whose tags may not be repeated in it.
        last: The module that runs, if XLA's passes went on after `module`.
    """

    form: Form
    module: HloModule
    named: Named
    joined: Named
    callers: Named = field(default_factory=dict)
    stands_for: Named = field(default_factory=dict)
    restored: Mapping[str, set[str]] = field(default_factory=dict)
    fusions: Mapping[int, Instruction] = field(default_factory=dict)
    last: HloModule | None = None

    def origins(self, ops: Sequence[Op]) -> list[model.Instruction]:
        """The instructions that came from operations, and what else runs.

        Fusions are left out: what is in a fusion says what it computes, unless XLA made all of it.
        """
        default = default_phase(op.phase for op in ops)
        joined = {i: tuple(found) for i, found in self.joined.items() if i.opcode not in ("fusion", "parameter") and found}
        if self.stands_for:
            joined = {i: tuple(dict.fromkeys((*found, *self.stands_for.get(i, ())))) for i, found in joined.items()}
        last = self.last or self.module
        work, callers, fusions = measure(last), find_callers(last), last.fusions
        by_name = {i.name: i for i in work} if self.last else {}
        roles = find_roles(joined, [op.name for op in ops])
        # By computation, what an instruction in it has after its own fields.
        around = {number: (fusions[number].name if number in fusions else "", caller) for number, caller in callers.items()}
        outside = "", Caller()

        def instruction(i: Instruction, running: Instruction) -> model.Instruction:
            fusion, caller = around.get(running.computation.id, outside)
            place = self._place_of(i, [ops[number] for number in joined.get(i, ())], default)
            flops, size, effort = work[running]
            doing = roles.get(i, _NO_ROLES)
            return model.Instruction(i.name, i.opcode, fusion, *doing, *place, flops, size, effort, caller.runs, caller.name)

        if self.last:
            found = [instruction(i, by_name[i.name]) for i in joined if i.name in by_name]
        else:
            found = [instruction(i, i) for i in joined]
        known = {each.kernel for each in found}
        others = (i for i in work if i.computation.id not in fusions and i.opcode not in _NEVER_RUN and i.name not in known)
        return found + [instruction(i, i) for i in others]

    def _place_of(self, i: Instruction, ops: Sequence[Op], default: str) -> tuple[str, str]:
        """The scope and phase of an instruction. The name of a combined collective stands for none of its operations."""
        of_op, in_phase = (ops[0].scope, ops[0].phase) if ops else ("", "")
        # XLA joins the names of merged instructions by ";".
        is_named = i.op_name and not (len(ops) > 1 and collective_of(i))
        scope, phase = place_of(i.op_name.partition(";")[0]) if is_named else (of_op, "")
        return scope, phase or in_phase or default


@dataclass
class Classified:
    """The result of `classify`.

    Attributes:
        tags: Every tag with all of its steps.
        strays: Tags of the last module that are on a wrong instruction.
        main: By operation, the instructions of the last module that compute it.
    """

    tags: list[Tag]
    strays: list[Stray]
    main: Mapping[int, Sequence[Instruction]]


def classify(
    ops: Sequence[Op],
    tags: Mapping[int, TagSteps],
    captures: Sequence[Capture],
    evidence: Evidence,
    *,
    has_program: bool = True,
) -> Classified:
    """Follows every tag through the captures, which are in XLA's order, and appends its steps to `tags`.

    Without `has_program`, the tags are those of the first capture.
    """
    found = Classified([], [], {})
    for capture in captures if has_program else captures[1:]:
        joined = capture.joined
        if capture.form == Form.OPTIMIZED:
            joined = _add_merged(_leave_out_eliminated(capture, evidence), ops, tags, evidence)
        view = _View(ops, capture, Matching(ops, capture.named, joined, capture.fusions), tags, evidence)
        for number, steps_of in tags.items():
            for (key, value), steps in steps_of.items():
                # An operation that was part of another in XLA's first module may be an instruction in the last one.
                if steps[-1].state not in _GONE or view.is_back(number, key, value):
                    steps.append(view.step(number, key, value))
        found.strays, found.main = view.strays(), view.matching.main
    found.tags = [
        Tag(key, value, ops[number], tuple(steps))
        for number, steps_of in tags.items()
        for (key, value), steps in steps_of.items()
    ]
    return found


def _leave_out_eliminated(capture: Capture, evidence: Evidence) -> Named:
    """The capture's `joined`, in which the survivor stands for each operation that CSE removed.

    Data flow alone cannot tell equal operations apart.
    """
    present = {number for numbers in capture.named.values() for number in numbers}
    if present.issuperset(itertools.chain.from_iterable(capture.joined.values())):
        return capture.joined

    def survivor(instruction: Instruction, number: int) -> int | None:
        if number in present or number not in evidence.eliminated:
            return number
        # Other instructions without the operation's name are parts of its expansion.
        computes = kind_of(instruction.opcode) == Kind.HEAVY or instruction.opcode in MOVES
        return evidence.survivor_of(number) if computes else None

    return {
        i: tuple(dict.fromkeys(found for n in numbers if (found := survivor(i, n)) is not None))
        for i, numbers in capture.joined.items()
    }


def _add_merged(joined: Named, ops: Sequence[Op], tags: Iterable[int], evidence: Evidence) -> Named:
    """`joined`, in which a merged product stands for all products that XLA merged into it."""
    products = {i: numbers for i, numbers in joined.items() if kind_of(i.opcode) == Kind.HEAVY}
    computed = {number for numbers in products.values() for number in numbers}
    # Looking at XLA's passes is slow, and few programs lack a product.
    if not any(opcode_of(ops[n].name) == "dot" and n not in computed and n in evidence.live for n in tags):
        return joined
    merged = evidence.merged
    more = {i: [other for n in numbers for other in sorted(merged.get(n, ()))] for i, numbers in products.items()}
    return {i: tuple(dict.fromkeys((*numbers, *more.get(i, ())))) for i, numbers in joined.items()} if merged else joined


def with_passes(tags: Sequence[Tag], passes: Passes, *, only_attention: bool = False) -> list[Tag]:
    """The tags, whose last step names the pass that gave the state; with `only_attention`, for tags that need it."""
    if len(passes) < 2:
        return list(tags)
    names = [name for name, _ in passes]
    by_op: dict[int, list[Tag]] = {}
    for tag in tags:
        if tag.state.needs_attention if only_attention else tag.state not in _UNCHANGED:
            by_op.setdefault(tag.op.id, []).append(tag)
    counts = [_count(named, by_op) for _, named in passes]

    def with_pass(tag: Tag) -> Tag:
        if tag not in by_op.get(tag.op.id, ()):
            return tag
        entry = tag.op.id, tag.key
        by = _pass_of(tag, names, [(found[entry], missing[entry]) for found, missing in counts])
        return tag._replace(steps=(*tag.steps[:-1], tag.steps[-1]._replace(by=by))) if by else tag

    return list(map(with_pass, tags))


def _pass_of(tag: Tag, names: Sequence[str], counts: Sequence[tuple[int, int]]) -> str:
    """The pass that gave a tag its last state; empty if none of the passes did.

    `counts` has, after each pass, how many instructions of the operation have the tag, and how many lack it.
    """
    if any(step.form == Form.UNOPTIMIZED and step.state in _MISSING for step in tag.steps):
        return CONVERSION
    totals = [sum(pair) for pair in counts]
    if tag.state in (TagState.DUPLICATED, TagState.MERGED):
        changes = (name for name, (before, after) in zip(names[1:], pairwise(totals), strict=True) if before != after)
        return next(changes, "")
    if tag.state != TagState.LOST:  # The operation is gone, with the tag or without it.
        holds = totals
    elif tag.steps[-1].instructions:  # The tag is left on some instructions.
        holds = [found and not missing for found, missing in counts]
    else:
        holds = [found for found, _ in counts]
    last = max((place for place, held in enumerate(holds) if held), default=len(names))
    return names[last + 1] if last + 1 < len(names) else ""


def _count(named: Named, tags: Mapping[int, Sequence[Tag]]) -> tuple[Counter, Counter]:
    """By operation and key, how many instructions that may compute the operation have the tag, and how many lack it."""
    found, missing = Counter(), Counter()
    for instruction, numbers in named.items():
        for number in numbers:
            for tag in tags.get(number, ()):
                if may_be(tag.op.name, instruction.opcode):
                    count = found if instruction.entries.get(tag.key) == tag.value else missing
                    count[number, tag.key] += 1
    return found, missing


class _View:
    """The tags and instructions of one capture. The tags are by operation."""

    def __init__(
        self, ops: Sequence[Op], capture: Capture, matching: Matching, tags: Mapping[int, TagSteps], evidence: Evidence
    ) -> None:
        self._ops, self._capture, self._tags, self._evidence = ops, capture, tags, evidence
        self.matching = matching
        self._attributes = {i: self._as_written(i) for i in capture.module.instructions() if i.entries}
        self._strays = self._find_strays()
        self._moved = self._find_moved()

    @cached_property
    def _by_name(self) -> set[int]:
        """The operations after which one of their instructions is named."""
        return {n for n, main in self.matching.main.items() if any(n in self._capture.named[i] for i in main)}

    def _as_written(self, instruction: Instruction) -> Mapping[str, str]:
        """The attributes, with the program's values for keys that XLA set at a call and copied when it inlined the call."""
        attributes, calls = instruction.entries, self._capture.callers.get(instruction, ())
        given = {entry for call in calls for entry in self._tags.get(call, ()) if keys.is_of_xla(entry[0])}
        if not given:
            return attributes
        own = {entry for number in self._capture.joined.get(instruction, ()) for entry in self._tags.get(number, ())}
        new = {key: value for key, value in given if key in attributes and (key, attributes[key]) not in own}
        return {**attributes, **new}

    def _has(self, instruction: Instruction, key: str, value: str) -> bool:
        """Whether an instruction has a tag. XLA joins the values of combined instructions with commas."""
        found = self._attributes.get(instruction, {}).get(key, self._of_fusion(instruction).get(key))
        return found is not None and (found == value or value in found.split(","))

    def _of_fusion(self, instruction: Instruction) -> Mapping[str, str]:
        """The attributes that an instruction in a fusion may share with it, where the HLO stage does not repeat them."""
        fusion = self._capture.fusions.get(instruction.computation.id)
        return fusion.entries if fusion is not None else {}

    def is_back(self, number: int, key: str, value: str) -> bool:
        """Whether this module has a tag that was gone before, or an instruction named after the operation."""
        return number in self._by_name or (number, key, value) in self._moved

    def step(self, number: int, key: str, value: str) -> Step:
        """What became of an operation's tag in this form."""
        step = self._step(number, key, value)
        may_be_used = step.state in (TagState.LOST, TagState.FOLDED) and keys.is_taken(key)
        by = self._evidence.consumed.get((number, key)) if may_be_used else None
        return Step(step.form, TagState.USED, by) if by else step

    def _step(self, number: int, key: str, value: str) -> Step:
        main = self.matching.main.get(number, [])
        tagged = [i for i in main if self._has(i, key, value) and not self._is_borrowed(i, number, key, value)]
        if tagged:
            return self._judge_tagged(number, key, main, tagged)
        if main := [i for i in main if not self._is_named_after_another(i, number)]:
            return Step(self._capture.form, TagState.LOST, detail=self._why_lost(main, key))
        glue = [i for i in self.matching.glue.get(number, ()) if i.opcode not in _NO_EVIDENCE and self._has(i, key, value)]
        if glue:
            return Step(self._capture.form, TagState.KEPT, detail="on glue that carries its result", instructions=_each(glue))
        if stray := self._moved.get((number, key, value)):
            detail = f"on {stray.opcode} {stray.name}, which is another operation's"
            return Step(self._capture.form, TagState.MOVED, detail=detail, instructions=(stray.name,))
        return self._gone(number)

    def _judge_tagged(self, number: int, key: str, main: list[Instruction], tagged: list[Instruction]) -> Step:
        """The state of a tag that at least one instruction of the operation has."""
        state, by, detail = TagState.KEPT, "", ""
        restored = self._capture.restored
        left = [i for i in tagged if key not in restored.get(i.name, ())] if restored else tagged
        if not left or (len(left) < len(tagged) and self._are_too_few(number, left, main)):
            state, by = TagState.RESTORED, "hlotag's HLO stage"
        elif self._are_too_few(number, tagged, main):
            state, detail = TagState.LOST, f"on {len(tagged)} of {len(main)} instructions"
        elif shared := {owner for i in tagged for owner in self._find_other_owners(i, number)}:
            state, detail = TagState.MERGED, f"with {len(shared)} more"
        elif len(tagged) > 1 and (copies := self._copies(number, tagged, main)) > 1:
            state, detail = TagState.DUPLICATED, f"{copies} times"
        return Step(self._capture.form, state, by, detail, instructions=_each(tagged))

    def _are_too_few(self, number: int, tagged: list[Instruction], main: list[Instruction]) -> bool:
        """Whether an operation is lost although some of its instructions have the tag: it is computed more often."""
        return len(tagged) < len(main) and self._copies(number, tagged, main) < self._copies(number, main, main)

    def _find_other_owners(self, instruction: Instruction, number: int) -> list[int]:
        """The other operations that an instruction computes. Data flow alone is no proof: it may be a helper of several."""
        return [
            owner
            for owner in self.matching.owners.get(instruction, ())
            if owner != number
            and instruction in self.matching.main.get(owner, ())
            and (owner in self._capture.named[instruction] or kind_of(instruction.opcode) == Kind.HEAVY)
        ]

    def _why_lost(self, main: Sequence[Instruction], key: str) -> str:
        """What the instructions have for the key: nothing, or the value of another operation."""
        values = {self._attributes.get(i, {}).get(key) for i in main}
        instead = f"{key}={values.pop()} instead" if len(values) == 1 and None not in values else f"no {key}"
        names = list_some([f"{i.opcode} {i.name}" for i in main])
        return f"{names} {'has' if len(main) == 1 else 'have'} {instead}"

    def _is_named_after_another(self, instruction: Instruction, number: int) -> bool:
        """Whether an instruction moves a value and is named after another operation. It may belong to either."""
        named = self._capture.named[instruction]
        return instruction.opcode in CARRIERS and bool(named) and number not in named

    def _is_borrowed(self, instruction: Instruction, number: int, key: str, value: str) -> bool:
        """Whether an instruction moves a value, and has the name and the tag of another operation.

        An instruction of the operation's shape may still be this operation, unless it is a broadcast.
        """
        if not self._is_named_after_another(instruction, number):
            return False
        shape = cost.shape_of(self._ops[number])  # None in an audit of dumps.
        if instruction.opcode != "broadcast" and shape in (None, instruction.dimensions):
            return False
        return any((key, value) in self._tags.get(n, ()) for n in self._capture.named[instruction])

    def _copies(self, number: int, instructions: list[Instruction], main: list[Instruction]) -> int:
        """How many times an operation is computed by some of its `main`: the number of instructions with equal opcode and shape.

        Counts the largest group among instructions with the operation's own opcode. If the operation became other opcodes, it
        needs one instruction of each group, so the smallest group counts. An instruction smaller than the rest is a helper,
        such as the reciprocal in a division by a broadcast.
        """
        own = opcode_of(self._ops[number].name)
        largest = max((math.prod(i.dimensions) for i in main), default=0)
        has_own = any(i.opcode == own and math.prod(i.dimensions) == largest for i in main)
        groups = Counter(
            (i.opcode, i.dimensions) for i in instructions if i.opcode != "fusion" and (i.opcode == own or not has_own)
        )
        return (max if has_own else min)(groups.values(), default=0)

    def _gone(self, number: int) -> Step:
        """Why no instruction is left of an operation."""
        form = self._capture.form
        if number not in self._evidence.live:
            return Step(form, TagState.DEAD)
        if number not in self._evidence.eliminated:
            return Step(form, TagState.FOLDED)
        instead = self._evidence.instead_of(number)
        return Step(form, TagState.CSED, detail=f"equal to {instead.opcode} {instead.name}" if instead else "")

    def _find_strays(self) -> list[tuple[Instruction, str, str]]:
        """Instructions with a tag that none of their operations has, each with key and value."""
        tagged = {entry for steps_of in self._tags.values() for entry in steps_of}
        relations = [found for found in (self.matching.owners, self._capture.callers, self._capture.stands_for) if found]
        strays = []
        for instruction, attributes in self._attributes.items():
            if kind_of(instruction.opcode) == Kind.GLUE or instruction.opcode in RELABELLING:
                continue
            owners = [owner for related in relations for owner in related.get(instruction, ())]
            own = {entry for owner in owners for entry in self._tags.get(owner, ())}
            if owners:
                strays += [(instruction, *entry) for entry in attributes.items() if entry in tagged and entry not in own]
        return strays

    def _find_moved(self) -> dict[tuple[int, str, str], Instruction]:
        """By operation and tag that the operation lacks, the instruction that the tag strayed to."""
        moved: dict[tuple[int, str, str], Instruction] = {}
        for instruction, key, value in self._strays:
            if (source := self._source_of(instruction, (key, value))) is not None:
                moved.setdefault((source, key, value), instruction)
        return moved

    def _source_of(self, instruction: Instruction, entry: tuple[str, str]) -> int | None:
        """The operation that a stray tag was taken from, None if no nearby operation lacks the tag."""
        named = self._capture.named.get(instruction, ())
        distance = partial(self._unlikeliness, instruction, entry)
        number = min((n for n in self._candidates(named, entry) if self._lacks(n, entry)), key=distance, default=None)
        source = number
        # If XLA folded operations one into the next, the instruction has the tag of the last one.
        while number is not None:
            source = number
            users = self.matching.users(number) if number not in named else ()
            number = next((user for user in users if self._lacks(user, entry) and distance(user) <= distance(source)), None)
        return source

    def _candidates(self, named: Sequence[int], entry: tuple[str, str]) -> Iterable[int]:
        """The operations that a stray tag may come from, likeliest first.

        The instruction is usually named after that operation, or after its operand, because XLA folds operations into operands.
        """
        if named and entry in self._tags.get(named[0], ()):
            return named[:1]
        users = [user for number in named for user in self.matching.users(number)]
        users += [further for user in users if user not in self.matching.main for further in self.matching.users(user)]
        return *named[:1], *users, *named[1:], *(n for number in named for n in self.matching.near(number, _MAX_DISTANCE))

    def _lacks(self, number: int, entry: tuple[str, str]) -> bool:
        """Whether an operation should have a tag, and has neither an instruction nor an equal operation that survived CSE."""
        if entry not in self._tags.get(number, ()) or number in self.matching.main:
            return False
        if self._ops[number].name in _NEVER_MOVED_FROM:
            return False
        return self._capture.form != Form.OPTIMIZED or number not in self._evidence.eliminated

    def _unlikeliness(self, instruction: Instruction, entry: tuple[str, str], number: int) -> tuple[bool, bool, bool]:
        """How unlikely an instruction replaced an operation: another shape, another size, no such move in an earlier form."""
        shape = cost.shape_of(self._ops[number])  # None in an audit of dumps.
        same_size = shape is None or math.prod(shape) == math.prod(instruction.dimensions)
        was_moved = self._tags[number][entry][-1].state == TagState.MOVED
        return shape not in (None, instruction.dimensions), not same_size, not was_moved

    def strays(self) -> list[Stray]:
        """The strays, each with the operation that it was taken from."""
        source = {(instruction, key, value): self._ops[n] for (n, key, value), instruction in self._moved.items()}
        return [Stray(key, value, i.name, i.opcode, source.get((i, key, value))) for i, key, value in self._strays]


def _each(instructions: Sequence[Instruction]) -> tuple[str, ...]:
    return tuple([i.name for i in instructions])
