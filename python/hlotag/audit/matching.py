# SPDX-License-Identifier: Apache-2.0
"""Which instructions of one HLO module are evidence of what became of an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hlotag.audit.model import Op
from hlotag.hlo.opcodes import Kind, kind_of, may_be, opcode_of

# By opcode, the other one that XLA writes as it where an operand is a constant.
_WRITTEN_AS = {"add": "subtract", "multiply": "divide"}


class Matching:
    """The instructions of one module by operation.

    Args:
        ops: The operations.
        named: The operations that each instruction is named after.
        joined: The operations that each instruction came from.

    Attributes:
        main: By operation, the instructions that compute it.
        glue: By operation, the instructions that only carry what it computes.
        owners: By instruction, the operations in whose `main` or `glue` it is.
    """

    def __init__(self, ops: Sequence[Op], named: Mapping[Any, Sequence[int]], joined: Mapping[Any, Sequence[int]]) -> None:
        self._ops = ops
        self.main: dict[int, list[Any]] = {}
        self.glue: dict[int, list[Any]] = {}
        self.owners: dict[Any, list[int]] = {}
        self._users: dict[int, list[int]] | None = None
        for instruction, numbers in joined.items():
            if instruction.opcode == "constant":
                continue
            computed = self._computed(numbers, instruction.opcode)
            for number in numbers:
                # XLA makes nameless constants and moves for operations that it folded; these are no trace of them.
                if number in named[instruction] or kind_of(instruction.opcode) == Kind.HEAVY or instruction.attributes:
                    if number in computed:
                        where = self.main
                    elif kind_of(instruction.opcode) < Kind.POINTWISE:
                        where = self.glue
                    else:  # It computes another operation, which this one was merged into.
                        continue
                    where.setdefault(number, []).append(instruction)
                    self.owners.setdefault(instruction, []).append(number)

    def _computed(self, numbers: Sequence[int], opcode: str) -> list[int]:
        """Of the operations that an instruction came from, those that it computes."""
        found = [n for n in numbers if may_be(self._ops[n].name, opcode)]
        if len(found) < 2 or kind_of(opcode) != Kind.POINTWISE:
            return found
        # A negation that was merged into a product is no product.
        own = [n for n in found if opcode_of(self._ops[n].name) in (opcode, _WRITTEN_AS.get(opcode))]
        return own or found

    def users(self, number: int) -> list[int]:
        """The operations that use the result of one.

        Args:
            number: Its id.

        Returns:
            Their ids.
        """
        if self._users is None:
            self._users = {}
            for op in self._ops:
                for operand in op.operands:
                    self._users.setdefault(operand, []).append(op.id)
        return self._users.get(number, [])

    def near(self, number: int, distance: int) -> list[int]:
        """The operations around one, users first.

        Args:
            number: Its id.
            distance: How many steps away.

        Returns:
            Their ids, the nearest first.
        """
        seen, ring = {number: None}, [number]
        for _ in range(distance):
            ring = [n for o in ring for n in (*self.users(o), *self._ops[o].operands) if n not in seen]
            seen.update(dict.fromkeys(ring))
        return list(seen)[1:]
