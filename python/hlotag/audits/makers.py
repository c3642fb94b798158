# SPDX-License-Identifier: Apache-2.0
"""Which instruction makes a value? Followed through fusions, calls, branches, the state of loops, and what scans store."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import without_numbers

# Limit of instructions followed from a value to what makes it.
_MOST_STEPS = 64
# Limit of loops and branches around each other that a value is followed into.
_MOST_NESTED = 32
_MOVES = {"bitcast", "convert", "copy", "reshape", "transpose"}
_RUNS = {"call", "fusion"}
_CALLERS = _RUNS | {"async-start", "conditional"}
# The names of what a scan does around its body: it slices its inputs, and stores what it returns.
_OF_SCAN = re.compile(r"/while/body/(jit\(\w+\)(/\w+)?|\w+)$")


class Made(NamedTuple):
    """What makes a value.

    Attributes:
        makers: The instructions that may make it, the best first. For a value that a loop stores, such as for the backward
            pass, the first one computes it.
        values: How many of the maker's values it has room for: more than one in an array that a loop fills.
    """

    makers: tuple[Instruction, ...]
    values: int = 1

    @property
    def is_fill(self) -> bool:
        """Whether all elements are one value or none: what a loop gets to fill, or a branch returns for what another keeps."""
        return bool(self.makers) and _is_fill(self.makers[0])


class _Value(NamedTuple):
    """The value of an instruction, or an element of its tuple; `around` has the fusions, calls and branches followed into."""

    at: Instruction
    element: int = -1
    around: tuple[Instruction, ...] = ()


class Makers:
    """The instructions that make the values of a module.

    Args:
        module: The module.
        known: The names of the instructions that belong to operations: moves among them make values of their own, but for
            those of a scan itself.
    """

    def __init__(self, module: HloModule, known: Container[str]) -> None:
        self._known = known
        runs = {called: [i for i in callers if i.opcode in _CALLERS] for called, callers in module.callers.items()}
        self._callers = {called: callers[0] for called, callers in runs.items() if len(callers) == 1}
        loops = {called: [i for i in callers if i.opcode == "while"] for called, callers in module.callers.items()}
        # By their bodies and conditions, which have one state.
        self._loops = {called: callers[-1] for called, callers in loops.items() if callers}
        self._found: dict[_Value, Made] = {}
        self._nested = 0

    def find(self, instruction: Instruction, element: int) -> Made:
        """Returns what makes an element of a value; an `element` of -1 is the value itself."""
        return self._find(_Value(instruction, element), through_moves=False)

    def _find(self, value: _Value, *, through_moves: bool = True) -> Made:
        value = self._follow(value, through_moves=through_moves)
        if value in self._found or self._nested == _MOST_NESTED:
            return self._found.get(value, Made((value.at,)))
        self._found[value] = Made((value.at,))  # For a loop that stores what it reads from the same array.
        self._nested += 1
        self._found[value] = self._look_behind(value)
        self._nested -= 1
        return self._found[value]

    def _look_behind(self, value: _Value) -> Made:
        """What makes the value of an instruction that a scan may have for its own purposes."""
        at, _, around = value
        if at.opcode == "dynamic-update-slice" and self._loop_around(value) is not None:
            stored = self._find(_Value(at.operands[1], -1, around))
            return Made((*stored.makers, at), stored.values * _ratio(at, at.operands[1]))
        if at.opcode in ("dynamic-slice", "slice") and self._is_of_scan(value):
            stack = self._find(_Value(at.operands[0], -1, around))
            values = max(1, stack.values // _ratio(at.operands[0], at))
            return Made((*stack.makers, at), values) if stack.values > 1 else Made((at,))
        if at.opcode == "concatenate" and self._is_of_scan(value):  # Of a scan with `unroll=`.
            return _join(at, [self._find(_Value(each, -1, around)) for each in at.operands])
        if at.opcode == "conditional":
            branches = [self._find(_Value(each.root, value.element, (*around, at))) for each in at.called]
            computed = [each for each in branches if each.makers[0] is not at and not each.is_fill]
            return computed[0]._replace(makers=(*computed[0].makers, at)) if len(computed) == 1 else Made((at,))
        return Made((at,))

    def _loop_around(self, value: _Value) -> Instruction | None:
        """The innermost loop that runs the instruction."""
        runs, around = value.at, value.around
        while runs is not None:
            if loop := self._loops.get(runs.computation.id):
                return loop
            runs, around = (around[-1], around[:-1]) if around else (self._callers.get(runs.computation.id), around)
        return None

    def _is_of_scan(self, value: _Value) -> bool:
        """Whether a scan has the instruction around its body: it has the line of the loop, and a name outside of the body."""
        loop = self._loop_around(value)
        return loop is not None and bool(_OF_SCAN.search(_name_of(value.at))) and value.at.source == loop.source

    def _follow(self, value: _Value, *, through_moves: bool) -> _Value:
        for _ in range(_MOST_STEPS):
            before = self._before(value, through_moves=through_moves)
            if before is None:
                break
            value = before
        return value

    def _before(self, value: _Value, *, through_moves: bool) -> _Value | None:
        """The value that an instruction passes on; None if it makes one."""
        at, element, around = value
        if at.opcode == "while":
            return _Value(at.called[0].root, element, around) if at.called[0].root.opcode == "tuple" else None
        runs = at.operands[0] if at.opcode == "async-done" else at
        if at.opcode in _RUNS | {"async-done"} and runs.called_ids:
            return _Value(runs.called[0].root, element, (*around, runs))
        if at.opcode == "parameter":
            return self._argument(value)
        if at.opcode == "tuple" and 0 <= element < len(at.operand_ids):
            return _Value(at.operands[element], -1, around)
        is_element = at.opcode == "get-tuple-element" and element < 0
        if is_element or self._is_move(value, through_moves=through_moves):
            return _Value(at.operands[0], at.proto.tuple_index if is_element else -1, around)
        return None

    def _is_move(self, value: _Value, *, through_moves: bool) -> bool:
        """Whether an instruction passes an array on in another form."""
        at = value.at
        if at.opcode not in _MOVES and not _only_adds_dimensions(at):
            return False
        return (through_moves and at.opcode != "convert") or at.name not in self._known or self._is_of_scan(value)

    def _argument(self, value: _Value) -> _Value | None:
        """The operand that a parameter stands for; of a loop's state, what the body makes, or the first value if it is kept."""
        at, element, around = value
        if loop := self._loops.get(at.computation.id):
            return _state(loop, value)
        runs, around = (around[-1], around[:-1]) if around else (self._callers.get(at.computation.id), around)
        if runs is None:
            return None
        is_branch = runs.opcode == "conditional"  # Its first operand is the predicate, then each branch has one.
        number = runs.called_ids.index(at.computation.id) + 1 if is_branch else at.proto.parameter_number
        return _Value(runs.operands[number], element, around) if number < len(runs.operand_ids) else None


def _state(loop: Instruction, value: _Value) -> _Value | None:
    """Where an element of a loop's state comes from."""
    _, element, around = value
    root = loop.called[0].root
    if element < 0 or root.opcode != "tuple" or element >= len(root.operand_ids):
        return None
    following = root.operands[element]
    is_kept = following.opcode == "get-tuple-element" and following.proto.tuple_index == element
    if is_kept and following.operands[0].opcode == "parameter":
        return _Value(loop.operands[0], element, around)
    return _Value(following, -1, around)


def _name_of(at: Instruction) -> str:
    """JAX's name of an instruction."""
    return without_numbers(at.op_name)


def _join(at: Instruction, parts: Sequence[Made]) -> Made:
    """What makes the parts of a concatenation, if that is one operation in several trips."""
    makers = {(part.makers[0].opcode, _name_of(part.makers[0]), part.makers[0].source) for part in parts}
    return Made((*parts[0].makers, at), sum(part.values for part in parts)) if len(makers) == 1 else Made((at,))


def _ratio(whole: Instruction, part: Instruction) -> int:
    """How many times a part has the elements of a whole."""
    return max(1, math.prod(whole.dimensions) // max(1, math.prod(part.dimensions)))


def _is_fill(at: Instruction) -> bool:
    if at.opcode == "custom-call":
        return at.proto.custom_call_target == "AllocateBuffer"
    return at.opcode == "constant" or (at.opcode == "broadcast" and not at.operands[0].dimensions)


def _only_adds_dimensions(at: Instruction) -> bool:
    """Whether a broadcast repeats nothing."""
    if at.opcode != "broadcast":
        return False
    sizes = [size for size in at.dimensions if size != 1]
    return [size for size in at.operands[0].dimensions if size != 1] == sizes
