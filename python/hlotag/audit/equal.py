# SPDX-License-Identifier: Apache-2.0
"""Which instructions of an HLO module compute the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hlotag.hlo.opcodes import Kind, kind_of

# What two equal instructions may differ in.
_OWN = ("name", "id", "metadata", "frontend_attributes", "operand_ids", "called_computation_ids")
_NEVER = frozenset({"parameter", "custom-call", "rng", "rng-bit-generator", "infeed", "outfeed", "send", "recv", "all-reduce"})


class Classes:
    """The values of a module, numbered as an elimination of common subexpressions does.

    Called functions are looked into as if they were inlined, since XLA inlines them before.

    Args:
        module: An `HloModule`.
    """

    def __init__(self, module: Any) -> None:
        self._bodies: dict[int, int] = {}  # Equal where computations do the same; callees come first.
        known_bodies: dict[tuple, int] = {}
        for computation in module.computations.values():
            if computation is not module.entry:
                self._bodies[computation.id] = known_bodies.setdefault(self._body(computation), len(known_bodies))
        self._classes: dict[Any, set[int]] = {}
        self._members: dict[int, list[Any]] = {}
        called = {i.called_ids[0] for i in module.instructions() if i.opcode == "call"}
        # One table for all: what a loop's body computes of constants is moved out of it, and is then equal to others.
        known: dict[tuple, int] = {}
        for computation in module.computations.values():
            if computation.id not in called:
                self._number(computation, None, known)

    def equal_to(self, instruction: Any) -> list[Any]:
        """The other instructions that compute what one does.

        Args:
            instruction: Which.

        Returns:
            They.
        """
        found = dict.fromkeys(i for number in self._classes.get(instruction, ()) for i in self._members[number])
        found.pop(instruction, None)
        return list(found)

    def _number(self, computation: Any, arguments: tuple[int, ...] | None, known: dict[tuple, int]) -> int:
        """Numbers a computation's values; `known` are those before it."""
        numbers: dict[int, int] = {}  # by the instruction's id
        for instruction in computation.instructions:
            operands = tuple(numbers[i] for i in instruction.operand_ids)
            if instruction.opcode == "parameter" and arguments is not None:
                number = arguments[instruction.proto.parameter_number]
            elif instruction.opcode == "call":
                number = self._number(instruction.called[0], operands, known)
            else:
                number = known.setdefault(self._key(instruction, operands), len(self._members))
                self._members.setdefault(number, []).append(instruction)
                self._classes.setdefault(instruction, set()).add(number)
                if _only_adds_ones(instruction):
                    number = operands[0]
            numbers[instruction.id] = number
        return numbers[computation.root.id]

    def _body(self, computation: Any) -> tuple:
        """What a computation does, comparable: its instructions by their places."""
        places = {instruction.id: place for place, instruction in enumerate(computation.instructions)}
        return tuple((_essence(i), tuple(places[o] for o in i.operand_ids), self._called(i)) for i in computation.instructions)

    def _called(self, instruction: Any) -> tuple[int, ...]:
        # XLA writes callees first; in a file where one comes later, it is like no other.
        called: Iterable[int] = instruction.called_ids
        return tuple(self._bodies.get(i, ~i) for i in called)

    def _key(self, instruction: Any, operands: tuple[int, ...]) -> tuple:
        if instruction.opcode in _NEVER:
            return (instruction, len(self._members))
        return (instruction.opcode, operands, self._called(instruction), _essence(instruction))


def _only_adds_ones(instruction: Any) -> bool:
    """Whether a value differs from its operand's only in dimensions of size one, which XLA moves past what computes with it."""
    if instruction.opcode not in ("reshape", "broadcast"):
        return False
    (operand,) = instruction.operands
    return _sizes(operand) == _sizes(instruction)


def _sizes(instruction: Any) -> list[int]:
    return [size for size in instruction.dimensions if size != 1]


def _essence(instruction: Any) -> bytes:
    """All that the instruction is beside its names and operands: shape, dimensions, literal, ..."""
    copy = type(instruction.proto)()
    copy.CopyFrom(instruction.proto)
    for field in _OWN:
        copy.ClearField(field)
    fills = instruction.opcode == "broadcast" and not instruction.operands[0].dimensions
    if fills or kind_of(instruction.opcode) == Kind.POINTWISE:
        kind = copy.shape.element_type
        copy.ClearField("shape")
        copy.shape.element_type = kind
        copy.shape.dimensions.extend(_sizes(instruction))
    return copy.SerializeToString(deterministic=True)
