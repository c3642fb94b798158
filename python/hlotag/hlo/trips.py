# SPDX-License-Identifier: Apache-2.0
"""How often does a loop run its body? By XLA's own count, or by the loop's counter and condition."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

from hlotag.hlo import proto
from hlotag.hlo.module import HloModule, Instruction

_KNOWN = re.compile(rb'"known_trip_count":\{"n":"(\d+)"')
# Limits of instructions followed from a condition to a constant: moves, and sums in sums.
_MOST_STEPS, _MOST_SUMS = 64, 6
_PASSES = {"bitcast", "convert", "copy", "opt-barrier", "reshape"}
_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}


class _Term(NamedTuple):
    """An integer: a constant, or an element of a loop's state plus a constant."""

    constant: int
    element: tuple[str, int] | None = None  # The loop's name and the index in its state.


class _Value(NamedTuple):
    """The value of an instruction, or an element of its tuple; `around` are the fusions and calls that it is followed into."""

    at: Instruction
    element: int | None = None
    around: tuple[Instruction, ...] = ()


class Trips:
    """The trips of a module's loops.

    Args:
        module: The module.
    """

    def __init__(self, module: HloModule) -> None:
        self._module = module

    def of(self, loop: Instruction) -> int | None:
        """How often a `while` runs its body; None if that is unknown."""
        known = _KNOWN.search(loop.proto.backend_config)
        return int(known[1]) if known else self._count(loop)

    def _count(self, loop: Instruction) -> int | None:
        """Counts the trips of a loop such as `for (i = 0; i < 8; i += 1)`."""
        body, condition = loop.called
        compare = self._origin(_Value(condition.root))
        if compare.at.opcode != "compare":
            return None
        left, right = [self._term(compare._replace(at=each)) for each in compare.at.operands]
        direction: str = compare.at.proto.comparison_direction
        if left and left.element is None:
            left, right, direction = right, left, _MIRRORED.get(direction, "")
        if not left or not left.element or left.element[0] != loop.name or not right or right.element:
            return None
        start, following = [self._term(_Value(each, left.element[1])) for each in (loop.operands[0], body.root)]
        if not start or start.element or not following or following.element != left.element:
            return None
        return _count_steps(start.constant + left.constant, following.constant, direction, right.constant)

    def _term(self, value: _Value, depth: int = 0) -> _Term | None:
        """The value of a scalar; None if that is not known."""
        at, element, around = found = self._origin(value)
        if at.opcode == "constant":
            constant = proto.integer_of(at.proto.literal)
            return None if constant is None else _Term(constant)
        if at.opcode in ("add", "subtract") and depth < _MOST_SUMS:
            left, right = [self._term(found._replace(at=each), depth + 1) for each in at.operands]
            return _combine(at.opcode, left, right)
        loop = None if around else self._caller(at)
        if loop is None or loop.opcode != "while" or at.opcode != "parameter" or element is None:
            return None
        return _Term(0, (loop.name, element))

    def _origin(self, value: _Value) -> _Value:
        """What makes a value, past moves, tuples, fusions, calls and loops that pass it on."""
        for _ in range(_MOST_STEPS):
            before = self._before(value)
            if before is None:
                break
            value = before
        return value

    def _before(self, value: _Value) -> _Value | None:
        """The value that an instruction passes on; None for one that makes it."""
        at, element, around = value
        if at.opcode in _PASSES:
            return _Value(at.operands[0], element, around)
        if at.opcode in ("fusion", "call"):
            return _Value(at.called[0].root, element, (*around, at))
        if at.opcode == "get-tuple-element" and element is None:
            return _Value(at.operands[0], at.proto.tuple_index, around)
        if at.opcode == "tuple" and element is not None:
            return _Value(at.operands[element], None, around)
        return self._argument(value) if at.opcode == "parameter" else None

    def _argument(self, value: _Value) -> _Value | None:
        """The operand that a parameter stands for, or the initial value of a state that a loop passes on."""
        at, element, around = value
        caller, outside = (around[-1], around[:-1]) if around else (self._caller(at), ())
        if caller is None:
            return None
        if caller.opcode == "while":
            is_kept = element is not None and _passes_on(caller.called[0].root, element)
            return _Value(caller.operands[0], element) if is_kept else None
        number: int = at.proto.parameter_number
        is_call = caller.opcode in ("fusion", "call") and number < len(caller.operand_ids)
        return _Value(caller.operands[number], element, outside) if is_call else None

    def _caller(self, at: Instruction) -> Instruction | None:
        """What runs the computation of an instruction; None if several instructions do."""
        callers = set(self._module.callers.get(at.computation.id, ()))
        return callers.pop() if len(callers) == 1 else None


def _passes_on(root: Instruction, element: int) -> bool:
    """Whether the result of a loop's body has an element of its state unchanged."""
    if root.opcode != "tuple" or element >= len(root.operand_ids):
        return False
    kept = root.operands[element]
    return kept.opcode == "get-tuple-element" and kept.proto.tuple_index == element and kept.operands[0].opcode == "parameter"


def _combine(opcode: str, left: _Term | None, right: _Term | None) -> _Term | None:
    if left is None or right is None or (right.element and (left.element or opcode == "subtract")):
        return None
    change: Callable[[int, int], int] = operator.add if opcode == "add" else operator.sub
    return _Term(change(left.constant, right.constant), left.element or right.element)


def _count_steps(start: int, step: int, direction: str, bound: int) -> int | None:
    """How often a counter is changed until a comparison with its bound fails."""
    if direction in ("LE", "GE"):
        bound, direction = (bound + 1, "LT") if direction == "LE" else (bound - 1, "GT")
    distance = bound - start
    if direction == "NE" and step and distance % step == 0 and distance // step >= 0:
        return distance // step
    if (direction == "LT" and step > 0) or (direction == "GT" and step < 0):
        return max(0, -(-distance // step))
    return None
