# SPDX-License-Identifier: Apache-2.0
"""Which instructions of one HLO module an operation became.

The join by names comes first. Where a name and what the instruction does cannot both be true, the operation is looked for among
the neighbours of the named one: XLA takes names over when it folds an operation into the next.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hlotag.audit.model import Op
from hlotag.audit.opcodes import RELABELLING, Kind, kind_of, may_be, opcode_of

Keys = Sequence[tuple[str, str]]


class Matching:
    """The instructions of one module by operation.

    Args:
        ops: The operations.
        shapes: The dimensions of their results; empty where they are not known.
        tags: Keys and values by operation.
        module: An `HloModule`.
        joined: The operations that each instruction is named after.

    Attributes:
        main: By operation, the instructions that compute it.
        glue: By operation, the instructions that are named after it, and only carry what it computes.
        owners: By instruction, the operations in whose `main` or `glue` it is.
    """

    def __init__(
        self,
        ops: Sequence[Op],
        shapes: Sequence[tuple[int, ...]],
        tags: Mapping[int, Keys],
        module: Any,
        joined: Mapping[Any, Sequence[int]],
    ) -> None:
        self._ops, self._shapes, self._tags = ops, shapes, tags
        self.main: dict[int, list[Any]] = {}
        self.glue: dict[int, list[Any]] = {}
        self.owners: dict[Any, list[int]] = {}
        self._users: dict[int, list[int]] | None = None
        misnamed: list[tuple[Any, int]] = []
        for instruction, named in joined.items():
            for number in named:
                if may_be(ops[number].name, instruction.opcode):
                    self._add(self.main, number, instruction)
                elif self._is_part(number, instruction):
                    self._add(self.glue, number, instruction)
                else:
                    misnamed.append((instruction, number))
        # Only now it is known which operations have no instruction under their own name.
        for instruction, number in misnamed:
            if not self.owners.get(instruction):
                found = self._orphan_near(number, instruction)
                self._add(self.glue if found is None else self.main, number if found is None else found, instruction)
        self._match_nameless(module)
        if shapes:
            self._match_relabelling(joined)

    def _add(self, where: dict[int, list[Any]], number: int, instruction: Any) -> None:
        where.setdefault(number, []).append(instruction)
        self.owners.setdefault(instruction, []).append(number)

    def _is_part(self, number: int, instruction: Any) -> bool:
        """Whether the instruction is a by-product of a larger operation: the broadcast in front of a sum."""
        kind = kind_of(instruction.opcode)
        return kind == Kind.GLUE or kind < kind_of(opcode_of(self._ops[number].name))

    def _orphan_near(self, number: int, instruction: Any) -> int | None:
        """The operation next to the named one that has no instruction and may be this one."""
        return next(
            (n for n in self.near(number, 2) if n not in self.main and may_be(self._ops[n].name, instruction.opcode)), None
        )

    def _match_nameless(self, module: Any) -> None:
        """Some rewrites leave no name on what they make; what is around it in both modules tells which operation it is."""
        nameless = [i for i in module.instructions() if kind_of(i.opcode) == Kind.HEAVY and not i.op_name]
        if not nameless:
            return
        orphans = [op.id for op in self._ops if op.id not in self.main and kind_of(opcode_of(op.name)) == Kind.HEAVY]
        dataflow = Dataflow(module)
        for instruction in nameless:
            size = math.prod(instruction.dimensions)
            candidates = [
                n
                for n in orphans
                if n not in self.main
                and may_be(self._ops[n].name, instruction.opcode)
                and (not self._shapes or math.prod(self._shapes[n]) == size)
            ]
            if len(candidates) > 1:
                around = [n for i in dataflow.around(instruction) for n in self.owners.get(i, ())]
                votes = Counter(n for number in around for n in (number, *self.near(number, 2)))
                candidates = sorted((n for n in candidates if votes[n]), key=lambda n: -votes[n])
            if candidates:
                self._add(self.main, candidates[0], instruction)

    def _match_relabelling(self, joined: Mapping[Any, Sequence[int]]) -> None:
        """A bitcast is named after its operand, though it may be all that is left of the reshape of it."""
        gone: dict[tuple[str, str], list[int]] | None = None
        for instruction, named in joined.items():
            if instruction.opcode not in ("bitcast", "reshape"):
                continue
            if len(named) == 1:
                if opcode_of(self._ops[named[0]].name) not in RELABELLING and instruction.attributes:
                    # Two steps, for the result may be handed to a function first.
                    candidates = self.near(named[0], 2)
                    self._adopt(instruction, [n for n in candidates if self._shapes[n] != self._shapes[named[0]]])
            elif not named and instruction.attributes:  # After an argument. Then only its tag can tell whose it is.
                gone = self._gone_by_tag() if gone is None else gone
                self._adopt(instruction, [n for entry in instruction.attributes.items() for n in gone.get(entry, ())])

    def _gone_by_tag(self) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for number, entries in self._tags.items():
            if number not in self.main:
                for entry in entries:
                    found.setdefault(entry, []).append(number)
        return found

    def _adopt(self, instruction: Any, candidates: Sequence[int]) -> None:
        """Gives an instruction to the first operation that it can be, judged by its shape and by what it bears."""
        borne = instruction.attributes
        for number in candidates:
            bears = any(borne.get(key) == value for key, value in self._tags.get(number, ()))
            if bears and opcode_of(self._ops[number].name) in RELABELLING and instruction.dimensions == self._shapes[number]:
                self._add(self.main, number, instruction)
                return

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


class Dataflow:
    """What an instruction reads, and what reads it, across the boundaries of fused computations.

    Args:
        module: An `HloModule`.
    """

    def __init__(self, module: Any) -> None:
        self._next: dict[Any, list[Any]] = {}
        self._before: dict[Any, list[Any]] = {}
        for instruction in module.instructions():
            inside = instruction.called[0] if instruction.opcode == "fusion" else None
            parameters = {i.proto.parameter_number: i for i in inside.instructions if i.opcode == "parameter"} if inside else {}
            for number, operand in enumerate(instruction.operands):
                self._connect(operand, parameters.get(number, instruction))
            if inside is not None:
                self._connect(inside.root, instruction)

    def _connect(self, producer: Any, reader: Any) -> None:
        self._next.setdefault(producer, []).append(reader)
        self._before.setdefault(reader, []).append(producer)

    def around(self, instruction: Any) -> list[Any]:
        """The instructions that are not glue nearest to one, and the glue that is between.

        Args:
            instruction: Which.

        Returns:
            Those that read its result, then those whose results it reads.
        """
        return [*self._reach(instruction, self._next), *self.read_by(instruction)]

    def read_by(self, instruction: Any) -> list[Any]:
        """The instructions that are not glue nearest to one among those that it reads, and the glue that is between.

        Args:
            instruction: Which.

        Returns:
            They.
        """
        return self._reach(instruction, self._before)

    @staticmethod
    def _reach(instruction: Any, edges: Mapping[Any, list[Any]]) -> list[Any]:
        found: dict[Any, None] = {}
        todo = [instruction]
        while todo:
            for other in edges.get(todo.pop(), ()):
                if other not in found:
                    found[other] = None
                    if kind_of(other.opcode) == Kind.GLUE and other.opcode != "tuple":
                        todo.append(other)
        return list(found)
