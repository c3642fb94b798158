# SPDX-License-Identifier: Apache-2.0
"""What an instruction reads: the operations that its operands come from, past moves, fusions, calls and loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.opcodes import MOVES

# The result of an instruction, or one element of its tuple.
_Value = tuple[Instruction, int | None]

# Limits: of callers of a computation, and of operations behind one value.
_MAX_CALLERS = 16
_MAX_SOURCES = 32
_PASSED = MOVES | {"async-done", "async-start", "call", "copy-done", "copy-start", "fusion"}
# These pass a tuple on as it is.
_PASSES_TUPLE = {"async-done", "copy", "opt-barrier"}
# What these call gets elements of their operands.
_APPLIES = {
    "all-reduce",
    "all-reduce-start",
    "reduce",
    "reduce-scatter",
    "reduce-window",
    "scatter",
    "select-and-scatter",
    "sort",
}
_NONE: frozenset[int] = frozenset()


class Flow:
    """The operations behind the values of a module.

    Args:
        module: The module.
        named: By instruction, the operations that it may be. Read when a value is first asked for.
    """

    def __init__(self, module: HloModule, named: Mapping[Instruction, Sequence[int]]) -> None:
        self._named, self._entry = named, module.entry.id
        self._known: dict[_Value, frozenset[int] | None] = {}
        # By computation, what calls it, each with the index of the operand that is the first parameter.
        self._callers: dict[int, list[tuple[Instruction, int]]] = {}
        for instruction in module.instructions():
            for number, called in enumerate(instruction.called_ids):
                first = number + 1 if instruction.opcode == "conditional" else 0
                self._callers.setdefault(called, []).append((instruction, first))

    def inputs(self, instruction: Instruction) -> frozenset[int]:
        """The operations that an instruction reads. An argument of the program counts as one, with a number below zero."""
        found = [self._of((operand, None)) for operand in instruction.operands]
        return _join(each for each in found if each is not None) or _NONE

    def _of(self, value: _Value) -> frozenset[int] | None:
        """The operations that a value comes from; None if they are too many."""
        if value not in self._known:
            self._search(value)
        return self._known[value]

    def _search(self, start: _Value) -> None:
        """Finds the operations behind a value, and behind all values on the way. Linear in these, but for nested loops."""
        sources: dict[_Value, list[_Value]] = {}  # Those behind a value come before it.
        behind: dict[_Value, list[_Value]] = {}
        pending = [start]
        while pending:
            value = pending.pop()
            if value in behind:
                sources.setdefault(value, behind[value])
            elif value not in self._known:
                self._known[value], behind[value] = self._look_behind(*value)
                pending += [value, *behind[value]]
        is_changed = True
        while is_changed:  # A loop hands values on to itself.
            is_changed = False
            for value, before in sources.items():
                joined = _join((self._known[value], *map(self._known.__getitem__, before)))
                is_changed = is_changed or joined != self._known[value]
                self._known[value] = joined

    def _look_behind(self, at: Instruction, element: int | None) -> tuple[frozenset[int], list[_Value]]:
        """The operations that a value, or one element of a tuple, is the result of, and the values that it is the same as."""
        if at.opcode == "parameter":
            return self._look_behind_argument(at, element)
        if at.opcode == "get-tuple-element":
            return _NONE, [(operand, at.proto.tuple_index) for operand in at.operands]
        if at.opcode == "tuple" and element is not None:
            return _NONE, [(operand, None) for operand in at.operands[element : element + 1]]
        if at.opcode in ("async-start", "call", "fusion") and at.called_ids:
            return _NONE, [(at.called[0].root, element)]
        if at.opcode not in _PASSED and (named := self._named.get(at)):
            return frozenset(named), []
        element = element if at.opcode in _PASSES_TUPLE else None
        return _NONE, [(operand, element) for operand in at.operands]

    def _look_behind_argument(self, at: Instruction, element: int | None) -> tuple[frozenset[int], list[_Value]]:
        number: int = at.proto.parameter_number
        if at.computation.id == self._entry:
            return frozenset([-1 - number]), []
        callers = self._callers.get(at.computation.id, ())[:_MAX_CALLERS]
        applied = [self._named.get(caller, ()) for caller, _ in callers if caller.opcode in _APPLIES]
        passed = [
            (caller.operands[first + number], element)
            for caller, first in callers
            if caller.opcode not in _APPLIES and first + number < len(caller.operand_ids)
        ]
        return _NONE.union(*applied), passed


def _join(found: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    """The union of sets of operations; None if they are too many, or one of the sets was."""
    joined: set[int] = set()
    for operations in found:
        if operations is None or len(joined := joined | operations) > _MAX_SOURCES:
            return None
    return frozenset(joined)
