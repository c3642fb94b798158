# SPDX-License-Identifier: Apache-2.0
"""The instructions of an HLO module that compute an operation, and those that only carry its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from hlotag._util.groups import group
from hlotag.audits.evidence import Named
from hlotag.audits.model import Op
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import RELABELLING, REWRITTEN_FROM, Kind, kind_of, may_be, opcode_of
from hlotag.hlo.work import is_glue_call

# Opcodes of instructions that XLA makes to move the result of any operation.
CARRIERS = ("bitcast", "broadcast", "copy")


class Matching:
    """The instructions of one module by operation. The arguments are as in `Capture`.

    Attributes:
        main: By operation, the instructions that compute it.
        glue: By operation, the instructions that only carry its result.
        owners: By instruction, the operations whose `main` or `glue` has it.
    """

    def __init__(
        self,
        ops: Sequence[Op],
        named: Named,
        joined: Named,
        fusions: Mapping[int, Instruction],
    ) -> None:
        self._ops = ops
        self.main: dict[int, list[Instruction]] = {}
        self.glue: dict[int, list[Instruction]] = {}
        self.owners: dict[Instruction, list[int]] = {}
        for instruction, numbers in joined.items():
            if instruction.opcode == "constant" or is_glue_call(instruction):
                continue
            computed = self._find_computed(numbers, named[instruction], instruction.opcode)
            kind = kind_of(instruction.opcode)
            for number in numbers:
                # XLA makes nameless constants and moves for operations that it folded. These do not count.
                is_tagged = instruction.entries or instruction.computation.id in fusions
                if number not in named[instruction] and kind != Kind.HEAVY and not is_tagged:
                    continue
                # A computing instruction of another operation means that this operation was merged into that one.
                if number in computed or kind < Kind.POINTWISE:
                    instructions = self.main if number in computed else self.glue
                    instructions.setdefault(number, []).append(instruction)
                    self.owners.setdefault(instruction, []).append(number)

    def _find_computed(self, numbers: Sequence[int], names: Sequence[int], opcode: str) -> list[int]:
        """The operations that an instruction computes, among those that it came from. `names` are those it is named after."""
        found = [n for n in numbers if may_be(self._ops[n].name, opcode) and not _is_part(self._ops[n].name, opcode)]
        if opcode in CARRIERS and not set(names[:1]) & set(found):
            # The name begins with the operation whose result is moved. XLA merged the other named operations into that one.
            return [n for n in found if n not in names or opcode_of(self._ops[n].name) == opcode]
        if len(found) < 2 or kind_of(opcode) != Kind.POINTWISE:
            return found
        # XLA may merge a negation into a multiply: the instruction then computes the multiply only.
        own = [n for n in found if opcode_of(self._ops[n].name) in (opcode, REWRITTEN_FROM.get(opcode))]
        return own or found

    def users(self, number: int) -> list[int]:
        """The operations that use an operation's result."""
        return self._users.get(number, [])

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        return group((operand, op.id) for op in self._ops for operand in op.operands)

    def near(self, number: int, distance: int) -> list[int]:
        """The neighbours of an operation in the dataflow up to a distance, nearest first, users before operands."""
        seen, ring = {number: None}, [number]
        for _ in range(distance):
            ring = [n for o in ring for n in (*self.users(o), *self._ops[o].operands) if n not in seen]
            seen.update(dict.fromkeys(ring))
        return list(seen)[1:]


def _is_part(name: str, opcode: str) -> bool:
    """Whether an instruction takes a part of a value, and the operation only relabels its elements."""
    return opcode == "slice" and opcode_of(name) in RELABELLING
