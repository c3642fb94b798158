# SPDX-License-Identifier: Apache-2.0
"""What became of each tag: is its operation computed, and is the tag on the instructions that compute it?

`Computing` looks that up in the compiled module, joined to the operations. If XLA wrote its module after each pass, `History`
says which pass removed what is missing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hlotag._util.groups import group
from hlotag.audits.joined import Joined
from hlotag.audits.rows import describe_instructions
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import Kind, Role, kind_of, may_be, opcode_of, role_of
from hlotag.hlo.work import is_glue_call
from hlotag.results.tags import CONVERSION, Op, OpTags, Tag, TagState, sum_work
from hlotag.tagging import keys

# These passes schedule groups, run products inside collectives, run calls on their own streams or on the host, and move values
# between memories. Their output lacks the key.
TAKERS = (
    "async-collective-fusion",
    "legalize-scheduling-annotations",
    "explicit-stream-annotation-async-wrapper",
    "convert-memory-placement-to-internal-annotations",
    "hlo_host_device_type_call_wrapper",
)
MERGER = "dot-merger"
"""Makes one product of several with one operand."""
_CSE = "cse"
# By pass, why it removes an operation. Other passes rewrite for several reasons.
_REASONS = {_CSE: "equal to another", "constant_folding": "computed at compile time", "dce": "not needed"}
_CARRIERS = {"bitcast", "broadcast", "copy"}  # XLA makes them to move any result.
# These compute no operation of the program: what is in a fusion does.
_ONLY_THEMSELVES = {"constant", "fusion", "parameter"}


class Computing:
    """The instructions that compute each operation.

    Args:
        ops: The operations.
        tags: By operation, its tags.
        found: The module.
    """

    def __init__(self, ops: Sequence[Op], tags: Mapping[int, OpTags], found: Joined) -> None:
        self._ops, self._tags, self._found = ops, tags, found
        self._whole: dict[int, list[Instruction]] = {}
        self._parts: dict[int, list[Instruction]] = {}
        self._carriers: dict[int, list[Instruction]] = {}
        self._ops_of: dict[Instruction, list[int]] = {}
        for instruction, numbers in found.joined.items():
            if numbers and not is_glue_call(instruction):
                self._add(instruction, [n for n in numbers if self._is_known(instruction, n)])
        for instruction, numbers in found.inserted.items():
            for number in numbers:
                self._whole.setdefault(number, []).append(instruction)
            self._ops_of.setdefault(instruction, []).extend(numbers)

    def _is_known(self, instruction: Instruction, number: int) -> bool:
        """Whether an instruction is one of an operation, rather than a nameless helper that XLA made where it folded that."""
        if instruction.opcode in _ONLY_THEMSELVES:
            return self._ops[number].name == instruction.opcode  # In an audit of HLO alone.
        opcode, named = instruction.opcode, self._found.named[instruction]
        if number in named and opcode in _CARRIERS and opcode != opcode_of(self._ops[number].name):
            # It moves the result of the operation that its name begins with. Others were merged into that.
            return role_of(self._ops[named[0]].name, opcode) is Role.COMPUTES
        if number in named or kind_of(opcode) == Kind.HEAVY:
            return True
        # The HLO pass also tags helpers.
        return any(self._found.has_left(instruction, key, value) for key, value in self._tags.get(number, ()))

    def _add(self, instruction: Instruction, numbers: Sequence[int]) -> None:
        roles = [role_of(self._ops[number].name, instruction.opcode) for number in numbers]
        # What computes one operation as a whole absorbed light ones: a multiply may have a negation in it.
        is_whole = Role.COMPUTES in roles and kind_of(instruction.opcode) != Kind.HEAVY
        for number, role in zip(numbers, roles, strict=True):
            is_part = role is Role.PART and not is_whole and may_be(self._ops[number].name, instruction.opcode)
            if role is Role.COMPUTES or is_part:
                (self._whole if role is Role.COMPUTES else self._parts).setdefault(number, []).append(instruction)
                self._ops_of.setdefault(instruction, []).append(number)
            elif role is Role.CARRIES:
                self._carriers.setdefault(number, []).append(instruction)

    def of(self, number: int) -> list[Instruction]:
        """The instructions that compute an operation as a whole; without any, those that compute it together."""
        return self._whole.get(number) or self._parts.get(number, [])

    def add_merged(self, merged: Mapping[int, set[int]]) -> None:
        """Adds the products that XLA made one product of with another, by that."""
        for product, others in merged.items():
            for number in others - self._whole.keys():
                if product in self._whole:
                    self._whole[number] = self._whole[product]
                    for instruction in self._whole[product]:
                        self._ops_of[instruction].append(number)

    def by_op(self) -> dict[int, list[Instruction]]:
        """By operation that is computed, its instructions."""
        return self._parts | self._whole

    def others(self, instructions: Sequence[Instruction], number: int) -> tuple[int, ...]:
        """The other operations that instructions compute."""
        if len(instructions) == 1 and len(self._ops_of[instructions[0]]) == 1:
            return ()
        return tuple(dict.fromkeys(n for i in instructions for n in self._ops_of[i] if n != number))

    def carrier(self, number: int, key: str, value: str) -> str:
        """The name of an instruction that moves an operation's result and has a tag; empty if there is none."""
        return next((self._found.name_of(i) for i in self._carriers.get(number, ()) if self._found.has(i, key, value)), "")

    def find_untagged_copies(self, number: int, tagged: Sequence[Instruction]) -> list[Instruction]:
        """The instructions without a tag that compute an operation once more; `tagged` are those with the tag.

        Instructions of the operation's own kind tell how often it is computed. Equal ones are copies, others are helpers.
        """
        whole = self._whole.get(number, [])
        if len(whole) < 2:
            return []
        own = opcode_of(self._ops[number].name)
        size = max((math.prod(i.dimensions) for i in whole), default=0)
        is_own = any(i.opcode == own and math.prod(i.dimensions) == size for i in whole)
        same = [i for i in whole if i.opcode == own or not is_own]
        left = [i for i in same if i not in tagged]
        return left if left and _count_copies(same) > _count_copies([i for i in same if i in tagged]) else []


def _count_copies(instructions: Sequence[Instruction]) -> int:
    return max(Counter((i.opcode, i.dimensions) for i in instructions).values(), default=0)


@dataclass
class _Seen:
    """What a module has: operations, their keys on some instruction and not on another, and what passes take (`_held`)."""

    present: set[int] = field(default_factory=set)
    tagged: set[tuple[int, str]] = field(default_factory=set)
    lacking: set[tuple[int, str]] = field(default_factory=set)
    held: set[tuple[int, str, str]] = field(default_factory=set)


class History:
    """What XLA's passes removed. Takes its modules one after the other, in order, and keeps none.

    Attributes:
        is_known: Whether there are modules.
        is_whole: Whether there is one after every pass. Else it is not known which pass removed an instruction or tag.
        gone: By operation that no instruction stands for, the pass that removed the last one.
        lost: By operation and key that an instruction of the operation lacks, the pass after which that was so.
        taken: By operation and key, the pass that read the key and removed it.
        merged: By product, the others that XLA made one product of with it.
    """

    def __init__(self, ops: Sequence[Op], tags: Mapping[int, OpTags]) -> None:
        self._names = [op.name for op in ops]
        # XLA's first modules lack what it inserts.
        self._tags = {number: found for number, found in tags.items() if not ops[number].inserted}
        self._present: set[int] = set()
        self._on_all: set[tuple[int, str]] = set()
        self._takeable: Mapping[int, Sequence[str]] = {}
        self._held: set[tuple[int, str, str]] = set()  # Operations, opcodes and keys that passes take.
        self.is_known, self.is_whole = False, True
        self.gone: dict[int, str] = {}
        self.lost: dict[tuple[int, str], str] = {}
        self.taken: dict[tuple[int, str], str] = {}
        self.merged: Mapping[int, set[int]] = {}

    def _begin(self) -> None:
        self._present = set(self._tags)
        self._on_all = {(number, key) for number, found in self._tags.items() for key, _ in found}
        self._takeable = group((number, key) for number, key in self._on_all if keys.is_taken(key))

    def add(self, by: str, named: Iterable[tuple[str, Sequence[int], Mapping[str, str]]]) -> None:
        """Adds the module after a pass: the opcode, operations and entries of each named instruction.

        The first module is that which XLA was given.
        """
        if not self.is_known:
            self._begin()
        seen = _Seen()
        for opcode, numbers, entries in named:
            for number in numbers:
                if number in self._tags:
                    self._look(seen, opcode, number, entries)
        by = by if self.is_known else CONVERSION
        named_by = by if self.is_whole or not self.is_known else ""
        on_all = seen.tagged - seen.lacking
        self.gone.update(dict.fromkeys(self._present - seen.present, named_by))
        self.lost.update(dict.fromkeys(self._on_all - on_all, named_by))
        if by in TAKERS:
            self.taken.update(((number, key), by) for number, _, key in self._held - seen.held)
        for number in seen.present & self.gone.keys():
            del self.gone[number]
        self._present, self._held, self._on_all, self.is_known = seen.present, seen.held, on_all, True

    def _look(self, seen: _Seen, opcode: str, number: int, entries: Mapping[str, str]) -> None:
        """Notes what an instruction of an operation has of the operation's tags."""
        name = self._names[number]
        seen.held.update((number, opcode, key) for key in self._takeable.get(number, ()) if key in entries)
        if role_of(name, opcode) is Role.CARRIES:
            # When XLA rewrites a product, it gives the name to the reshape around the new one.
            if opcode in ("bitcast", "reshape") and opcode_of(name) == "dot":
                seen.present.add(number)
            return
        seen.present.add(number)
        for key, value in self._tags[number]:
            left = entries.get(key)
            has_tag = left is not None and (left == value or value in left.split(","))
            (seen.tagged if has_tag else seen.lacking).add((number, key))


# The fields of a `Tag` from its state on, without its origin.
_Fate = tuple[TagState, tuple[str, ...], tuple[int, ...], str, str, str]


class States:
    """The states of tags.

    Args:
        ops: The operations.
        tags: By operation, its tags.
        found: The compiled module.

    Attributes:
        computing: The instructions of each operation.
        history: What XLA's passes removed; empty until its modules are added.
        instructions: The instructions of the module.
        ops: The operations, with their instructions and work.
    """

    def __init__(self, ops: Sequence[Op], tags: Mapping[int, OpTags], found: Joined) -> None:
        self._tags, self._found = tags, found
        self._equal = {number for numbers in found.equal.values() for number in numbers}
        self.computing = Computing(ops, tags, found)
        self.history = History(ops, tags)
        self.instructions = describe_instructions(found, ops)
        self.ops = self._with_work(ops)

    def _with_work(self, ops: Sequence[Op]) -> list[Op]:
        computed, work, fusions = self.computing.by_op(), sum_work(self.instructions), self._found.module.fusions
        made = list(ops)
        for number, op in enumerate(ops):
            instructions = computed.get(number, ())
            if instructions or number in work:
                around = dict.fromkeys(fusions[i.computation.id].name for i in instructions if i.computation.id in fusions)
                names = tuple(map(self._found.name_of, instructions))
                flops, size = work[number][1:3] if number in work else (0, 0)
                made[number] = op._replace(instructions=names, flops=flops, bytes=size, fusions=tuple(around))
        return made

    def find(self) -> list[Tag]:
        """Finds the state of every tag."""
        self.computing.add_merged(self.history.merged)
        result = []
        for number, of_op in self._tags.items():
            op, instructions = self.ops[number], self.computing.of(number)
            # Data flow cannot tell equal operations apart.
            if self.history.gone.get(number) == _CSE and all(number not in self._found.named[i] for i in instructions):
                instructions = []
            for (key, value), origin in of_op.items():
                of = self._of_computed if instructions else self._of_gone
                result.append(Tag(key, value, op, *of(key, value, op, instructions), origin))
        return result

    def _of_gone(self, key: str, _value: str, op: Op, _instructions: Sequence[Instruction]) -> _Fate:
        by = self.history.gone.get(op.id, "")
        if taken_by := self.history.taken.get((op.id, key)):
            return TagState.CONSUMED, (), (), taken_by, "", ""
        is_equal = op.id in self._equal and not self.history.is_known
        return TagState.ELIMINATED, (), (), by, _REASONS.get(by, _REASONS[_CSE] if is_equal else ""), ""

    def _of_computed(self, key: str, value: str, op: Op, instructions: list[Instruction]) -> _Fate:
        found = self._found
        by = "" if key in found.hidden else self.history.lost.get((op.id, key), "")  # No pass of XLA's saw a hidden key.
        tagged = [i for i in instructions if found.has(i, key, value) or self._has_of_call(i, key, value)]
        lacking = self.computing.find_untagged_copies(op.id, tagged) if tagged else instructions
        shown = lacking or tagged
        names, shared = tuple(map(found.name_of, shown)), self.computing.others(shown, op.id)
        if not lacking:
            is_restored = found.restored and key not in found.hidden
            if is_restored and all(i.entries.get(key) != found.value_of(i, key) for i in tagged):
                return TagState.RESTORED, names, shared, by, "", ""
            return TagState.KEPT, names, shared, "", "", ""
        # The HLO pass gives inserted collectives their tags before the compiler takes any.
        if (taken_by := self.history.taken.get((op.id, key))) or (op.inserted and keys.is_taken(key)):
            return TagState.CONSUMED, names, shared, taken_by or "", "", ""
        if tagged:
            why = f"the tag is on {len(tagged)} of {len(instructions)} instructions"
            return TagState.LOST, names, shared, by, why, ""
        return TagState.LOST, names, shared, by, self._instead(lacking, key), self.computing.carrier(op.id, key, value)

    def _has_of_call(self, instruction: Instruction, key: str, value: str) -> bool:
        """Whether an instruction has a value that XLA gave to a call with a tag, and to what it inlined from that."""
        calls = self._found.callers.get(instruction, ())
        if not calls or not keys.is_of_xla(key) or (written := self._found.value_of(instruction, key)) is None:
            return False
        own = self._found.joined.get(instruction, ())
        return any((key, value) in self._tags.get(call, ()) for call in calls) and not any(
            (key, written) in self._tags.get(number, ()) for number in own
        )

    def _instead(self, instructions: Sequence[Instruction], key: str) -> str:
        """The value of another operation that instructions have for a key; empty if they have none."""
        values = {self._found.value_of(i, key) for i in instructions}
        return f"the instruction has {key}={values.pop()}" if len(values) == 1 and None not in values else ""
