# SPDX-License-Identifier: Apache-2.0
"""What an instruction reads: the operations that its operands come from, past moves, fusions, calls and loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.opcodes import MOVES

# Limits: of instructions passed on the way to an operation, of callers of a computation, and of operations behind one value.
_MAX_STEPS = 40
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
        self._known: dict[tuple[Instruction, int | None], frozenset[int]] = {}
        # By computation, what calls it, each with the index of the operand that is the first parameter.
        self._callers: dict[int, list[tuple[Instruction, int]]] = {}
        for instruction in module.instructions():
            for number, called in enumerate(instruction.called_ids):
                first = number + 1 if instruction.opcode == "conditional" else 0
                self._callers.setdefault(called, []).append((instruction, first))

    def inputs(self, instruction: Instruction) -> frozenset[int]:
        """The operations that an instruction reads. An argument of the program counts as one, with a number below zero."""
        return _join(self._of(operand) for operand in instruction.operands)

    def _of(self, at: Instruction, element: int | None = None, steps: int = 0) -> frozenset[int]:
        """The operations that a value, or one element of a tuple, comes from."""
        if (at, element) not in self._known:
            self._known[at, element] = _NONE  # A function may hand its argument on to itself.
            self._known[at, element] = self._find(at, element, steps + 1) if steps < _MAX_STEPS else _NONE
        return self._known[at, element]

    def _find(self, at: Instruction, element: int | None, steps: int) -> frozenset[int]:
        if at.opcode == "parameter":
            return self._find_argument(at, element, steps)
        if at.opcode == "get-tuple-element":
            return _join(self._of(operand, at.proto.tuple_index, steps) for operand in at.operands)
        if at.opcode == "tuple" and element is not None:
            return _join(self._of(operand, None, steps) for operand in at.operands[element : element + 1])
        if at.opcode in ("async-start", "call", "fusion") and at.called_ids:
            return self._of(at.called[0].root, element, steps)
        if at.opcode not in _PASSED and (named := self._named.get(at)):
            return frozenset(named)
        element = element if at.opcode in _PASSES_TUPLE else None
        return _join(self._of(operand, element, steps) for operand in at.operands)

    def _find_argument(self, at: Instruction, element: int | None, steps: int) -> frozenset[int]:
        number: int = at.proto.parameter_number
        if at.computation.id == self._entry:
            return frozenset([-1 - number])
        found: list[frozenset[int]] = []
        for caller, first in self._callers.get(at.computation.id, ())[:_MAX_CALLERS]:
            if caller.opcode in _APPLIES:
                found.append(frozenset(self._named.get(caller, ())))
            elif first + number < len(caller.operand_ids):
                found.append(self._of(caller.operands[first + number], element, steps))
        return _join(found)


def _join(found: Iterable[frozenset[int]]) -> frozenset[int]:
    joined = _NONE.union(*found)
    return joined if len(joined) <= _MAX_SOURCES else _NONE
