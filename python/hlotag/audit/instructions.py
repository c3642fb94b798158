# SPDX-License-Identifier: Apache-2.0
"""HLO modules without the program they came from: instructions of the first one take the place of operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from hlotag import _core
from hlotag.audit.model import Op, Stage, Step, TagState, Ways
from hlotag.hlo.join import program_of
from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.opcodes import Kind, kind_of
from hlotag.hlo.restore import tags_of


class Instructions:
    """The instructions of a module, as operations.

    Args:
        module: An `HloModule`.

    Attributes:
        ops: One for each instruction that is more than glue or has tags.
        tags: Keys and values with how they came, by operation.
    """

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._ids: dict[Instruction, int] = {}
        self.ops: list[Op] = []
        self.tags: dict[int, Ways] = {}
        self._places: dict[str, tuple[str, str]] = {}
        for computation in module.computations.values():
            self._add(computation)

    def _add(self, computation: Computation) -> None:
        numbers: dict[int, int] = {}  # By the instruction's id.
        for instruction in computation.instructions:
            tags = tags_of(instruction.attributes)
            if not tags and kind_of(instruction.opcode) == Kind.GLUE:
                continue
            name = instruction.op_name
            if name not in self._places:
                scope, backward = _core.name_path(name)
                self._places[name] = scope, "backward" if backward else "forward"
            scope, phase = self._places[name]
            file, line = instruction.source or ("", 0)
            number = numbers[instruction.id] = self._ids[instruction] = len(self.ops)
            operands = tuple([numbers[o] for o in instruction.operand_ids if o in numbers])
            names = (instruction.name,)
            self.ops.append(Op(number, instruction.opcode, scope, computation.name, phase, file, line, operands, names))
            if tags:
                step = Step(Stage.UNOPTIMIZED, TagState.ATTACHED, instructions=names)
                self.tags[number] = {entry: [step] for entry in tags.items()}

    @cached_property
    def program(self) -> _core.Program:
        """They, with who computes what."""
        return program_of(self._module, [self._ids.get(i, -1) for i in self._module.instructions()])

    def __getitem__(self, instruction: Instruction) -> int | None:
        return self._ids.get(instruction)


class Lineage:
    """Follows instructions from module to module, by what XLA leaves them: their names, else their OpMetadata.

    Args:
        module: The first module.
        ids: Its instructions' operations.

    Attributes:
        named: By instruction of the last module seen, the operations that it is named after.
        ambiguous: The instructions of the last module that could be of several operations.
    """

    def __init__(self, module: Any, ids: Instructions) -> None:
        self.named: dict[Any, tuple[int, ...]] = {i: () if (n := ids[i]) is None else (n,) for i in module.instructions()}
        self.ambiguous: list[Any] = []

    def follow(self, module: Any) -> Mapping[Any, tuple[int, ...]]:
        """Goes on to the next module.

        Args:
            module: As a later pass left it.

        Returns:
            The new `named`.
        """
        by_name = {i.name: i for i in self.named}
        named: dict[Any, tuple[int, ...]] = {}
        renamed = []
        for instruction in module.instructions():
            same = by_name.get(instruction.name)
            if same is not None and same.opcode == instruction.opcode:
                named[instruction] = self.named[same]
            else:
                named[instruction] = ()
                renamed.append(instruction)
        by_metadata: dict[str, dict[int, str]] = {i.op_name: {} for i in renamed if i.op_name}
        for instruction, numbers in self.named.items() if by_metadata else ():
            for number in numbers if instruction.op_name in by_metadata else ():
                by_metadata[instruction.op_name][number] = instruction.opcode
        self.ambiguous = []
        for instruction in renamed:
            named[instruction] = self._by_metadata(instruction, by_metadata)
        self.named = named
        return named

    def _by_metadata(self, instruction: Any, known: Mapping[str, Mapping[int, str]]) -> tuple[int, ...]:
        candidates = known.get(instruction.op_name, {})
        alike = [number for number, opcode in candidates.items() if opcode == instruction.opcode]
        found = alike or list(candidates)
        if len(found) > 1:
            if kind_of(instruction.opcode) != Kind.GLUE:
                self.ambiguous.append(instruction)
            return ()
        return tuple(found)
