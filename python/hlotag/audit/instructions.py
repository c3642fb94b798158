# SPDX-License-Identifier: Apache-2.0
"""HLO modules without the program they came from: instructions of the first one take the place of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hlotag.audit.model import Op, Stage, Step, TagState
from hlotag.audit.opcodes import Kind, kind_of
from hlotag.hlo.restore import tags_of


class Instructions:
    """The instructions of a module, as operations.

    Args:
        module: An `HloModule`.

    Attributes:
        ops: One for each instruction that is more than glue or has tags.
        tags: Keys, values and how they came, by operation.
    """

    def __init__(self, module: Any) -> None:
        from hlotag import _core

        self._ids: dict[Any, int] = {}
        self.ops: list[Op] = []
        self.tags: dict[int, list[tuple[str, str, Step]]] = {}
        places: dict[str, tuple[str, str]] = {}
        for instruction in module.instructions():
            tags = tags_of(instruction.attributes) if instruction.proto.HasField("frontend_attributes") else {}
            if kind_of(instruction.opcode) == Kind.GLUE and not tags:
                continue
            name = instruction.op_name
            if name not in places:
                scopes, backward = _core.name_path(name)
                places[name] = "/".join(scopes), "backward" if backward else "forward"
            scope, phase = places[name]
            file, line = instruction.source or ("", 0)
            number = self._ids[instruction] = len(self.ops)
            operands = tuple(self._ids[o] for o in instruction.operands if o in self._ids)
            self.ops.append(
                Op(
                    number,
                    instruction.opcode,
                    scope,
                    instruction.computation.name,
                    phase,
                    file,
                    line,
                    operands,
                    (instruction.name,),
                )
            )
            if tags:
                step = Step(Stage.UNOPTIMIZED, TagState.ATTACHED, instructions=(instruction.name,))
                self.tags[number] = [(key, value, step) for key, value in tags.items()]

    def __getitem__(self, instruction: Any) -> int | None:
        return self._ids.get(instruction)


class Lineage:
    """Follows instructions from module to module, by what XLA leaves them: their names, else their OpMetadata.

    Args:
        module: The first module.
        ids: Its instructions' operations.

    Attributes:
        joined: By instruction of the last module seen, the operations that it stands for.
        ambiguous: How many instructions of the last module could be of several operations, and were given to none.
    """

    def __init__(self, module: Any, ids: Instructions) -> None:
        self.joined: dict[Any, tuple[int, ...]] = {i: () if (n := ids[i]) is None else (n,) for i in module.instructions()}
        self.ambiguous = 0

    def follow(self, module: Any) -> Mapping[Any, Sequence[int]]:
        """Goes on to the next module.

        Args:
            module: As a later pass left it.

        Returns:
            The new `joined`.
        """
        by_name = {i.name: (i, numbers) for i, numbers in self.joined.items()}
        by_metadata: dict[str, dict[int, str]] = {}
        for instruction, numbers in self.joined.items():
            for number in numbers if instruction.op_name else ():
                by_metadata.setdefault(instruction.op_name, {})[number] = instruction.opcode
        self.ambiguous = 0
        joined: dict[Any, tuple[int, ...]] = {}
        for instruction in module.instructions():
            same, numbers = by_name.get(instruction.name, (None, ()))
            if same is not None and same.opcode == instruction.opcode:
                joined[instruction] = numbers
            else:
                joined[instruction] = self._by_metadata(instruction, by_metadata)
        self.joined = joined
        return joined

    def _by_metadata(self, instruction: Any, known: Mapping[str, Mapping[int, str]]) -> tuple[int, ...]:
        candidates = known.get(instruction.op_name, {})
        alike = [number for number, opcode in candidates.items() if opcode == instruction.opcode]
        found = alike or list(candidates)
        if len(found) > 1:
            self.ambiguous += kind_of(instruction.opcode) != Kind.GLUE
            return ()
        return tuple(found)
