# SPDX-License-Identifier: Apache-2.0
"""Which instruction makes a value? Followed through fusions, calls, the state of loops, and what a loop stores."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from hlotag.hlo.module import HloModule, Instruction

# Limit of instructions followed from a value to what makes it.
_MOST_STEPS = 64
_MOVES = {"bitcast", "convert", "copy", "reshape", "transpose"}
_RUNS = {"call", "fusion"}


class _Value(NamedTuple):
    """The value of an instruction, or an element of its tuple; `around` are the fusions and calls that it is followed into."""

    at: Instruction
    element: int = -1
    around: tuple[Instruction, ...] = ()


class Makers:
    """The instructions that make the values of a module.

    Args:
        module: The module.
        known: The names of the instructions that belong to operations: moves among them make values of their own.
    """

    def __init__(self, module: HloModule, known: Container[str]) -> None:
        self._known = known
        self._loops = {i.called_ids[0]: i for i in module.instructions() if i.opcode == "while"}

    def find(self, instruction: Instruction, element: int) -> list[Instruction]:
        """The instructions that may make an element of a value, the best first; an `element` of -1 is the value itself.

        If a loop stores a value in each trip, such as for the backward pass, the first one computes the stored value, and the
        second one stores it.
        """
        made = self._follow(_Value(instruction, element))
        if made.at.opcode != "dynamic-update-slice" or not self._is_in_loop(made):
            return [made.at]
        stored = self._follow(_Value(made.at.operands[1], -1, made.around), through_moves=True)
        return [stored.at, made.at]

    def _is_in_loop(self, value: _Value) -> bool:
        outermost = value.around[0] if value.around else value.at
        return outermost.computation.id in self._loops

    def _follow(self, value: _Value, *, through_moves: bool = False) -> _Value:
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
        if at.opcode in _RUNS and at.called_ids:
            return _Value(at.called[0].root, element, (*around, at))
        if at.opcode == "parameter":
            return self._argument(value)
        if at.opcode == "tuple" and 0 <= element < len(at.operand_ids):
            return _Value(at.operands[element], -1, around)
        if at.opcode == "get-tuple-element" and element < 0:
            return _Value(at.operands[0], at.proto.tuple_index, around)
        is_move = at.opcode in _MOVES or (through_moves and _only_adds_dimensions(at))
        return _Value(at.operands[0], -1, around) if is_move and (through_moves or at.name not in self._known) else None

    def _argument(self, value: _Value) -> _Value | None:
        """The operand that a parameter stands for; of a loop's state, what the body makes, or the first value if it is kept."""
        at, element, around = value
        if around:
            number: int = at.proto.parameter_number
            return _Value(around[-1].operands[number], element, around[:-1]) if number < len(around[-1].operand_ids) else None
        root = at.computation.root
        if element < 0 or root.opcode != "tuple" or element >= len(root.operand_ids):
            return None
        following, loop = root.operands[element], self._loops.get(at.computation.id)
        is_kept = following.opcode == "get-tuple-element" and following.proto.tuple_index == element
        if loop is not None and is_kept and following.operands[0].opcode == "parameter":
            return _Value(loop.operands[0], element)
        return _Value(following)


def _only_adds_dimensions(at: Instruction) -> bool:
    """Whether a broadcast repeats nothing."""
    sizes = [size for size in at.dimensions if size != 1]
    return at.opcode == "broadcast" and [size for size in at.operands[0].dimensions if size != 1] == sizes
