# SPDX-License-Identifier: Apache-2.0
"""The audit of HLO modules without their program. Instructions of the first module stand for operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from hlotag import _core
from hlotag.audits.model import Op, OpTags, default_phase
from hlotag.hlo.join import program_of
from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.opcodes import Kind, kind_of, may_be
from hlotag.hlo.origins import place_of, without_numbers
from hlotag.hlo.restore import tags_of

# Limit of call paths recorded for one computation.
_MAX_PATHS = 64


class Instructions:
    """The instructions of an `HloModule`, as operations.

    Attributes:
        ops: One operation for each instruction that is more than glue or has tags.
        tags: By operation, its tags. In a fusion, it also has those of the fusion, which instructions need not repeat.
        paths: By computation, the names of the calls that lead to it, as XLA prefixes them to names when it inlines the calls.
    """

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._ids: dict[Instruction, int] = {}
        self.ops: list[Op] = []
        self.tags: dict[int, OpTags] = {}
        self.paths = _paths(module)
        path = {computation: paths[0] for computation, paths in self.paths.items()}
        names = {path[i.computation.id] + i.op_name for i in module.instructions()}
        default = default_phase(phase for _, phase in map(place_of, names))
        for computation in module.computations.values():
            self._add(computation, path[computation.id], default)

    def _add(self, computation: Computation, path: str, default: str) -> None:
        numbers: dict[int, int] = {}  # By the instruction's id.
        fusion = self._module.fusions.get(computation.id)
        of_fusion = tags_of(fusion.entries) if fusion else {}
        for instruction in computation.instructions:
            own = tags_of(instruction.entries)
            if not own and kind_of(instruction.opcode) == Kind.GLUE:
                continue
            tags = of_fusion | own
            scope, phase = place_of(path + instruction.op_name)
            file, line = instruction.source or ("", 0)
            number = numbers[instruction.id] = self._ids[instruction] = len(self.ops)
            operands = tuple([numbers[o] for o in instruction.operand_ids if o in numbers])
            place = scope, computation.name, phase or default, file, line
            self.ops.append(Op(number, instruction.opcode, *place, operands))
            if tags:
                self.tags[number] = dict.fromkeys(tags.items())

    @cached_property
    def program(self) -> _core.Program:
        """The operations and their dataflow."""
        return program_of(self._module, [self._ids.get(i, -1) for i in self._module.instructions()])

    def __getitem__(self, instruction: Instruction) -> int | None:
        return self._ids.get(instruction)


class Lineage:
    """Follows instructions from a first module to later ones by instruction name, else by `op_name`.

    Attributes:
        named: By instruction of the latest module, the operations that it is named after.
        ambiguous: By instruction of the latest module, the operations that it may be named after, if several.
        unsure: Operations that shared an ambiguous name with a computing instruction of any module.
        unsure_if_gone: Operations that shared an ambiguous name with glue, which may carry their value.
    """

    def __init__(self, module: HloModule, ids: Instructions) -> None:
        self.named: dict[Instruction, tuple[int, ...]] = {i: () if (n := ids[i]) is None else (n,) for i in module.instructions()}
        self.ambiguous: dict[Instruction, tuple[int, ...]] = {}
        self.unsure: set[int] = set()
        self.unsure_if_gone: set[int] = set()
        self._module, self._ids = module, ids
        self._by_name = _by_full_name(module, ids)

    @cached_property
    def _first(self) -> dict[int, Instruction]:
        """The instructions of the first module by operation."""
        return {n: i for i in self._module.instructions() if (n := self._ids[i]) is not None}

    def follow(self, module: HloModule) -> Mapping[Instruction, tuple[int, ...]]:
        """Follows the instructions into the module after a later pass; returns the new `named`."""
        before = {(i.name, i.opcode): self.ambiguous.get(i, found) for i, found in self.named.items()}
        self.named, self.ambiguous = {}, {}
        for instruction in module.instructions():
            candidates = self._candidates(instruction)
            same = before.get((instruction.name, instruction.opcode), ())
            if same and not (candidates and set(same).isdisjoint(candidates)):
                candidates = same
            if len(candidates) > 1:
                self.ambiguous[instruction] = candidates
                (self.unsure if kind_of(instruction.opcode) > Kind.GLUE else self.unsure_if_gone).update(candidates)
            self.named[instruction] = () if len(candidates) > 1 else candidates
        return self.named

    def _candidates(self, instruction: Instruction) -> tuple[int, ...]:
        """The operations that an instruction may be named after, narrowed by opcode, source line and tags."""
        found = self._by_name.get(instruction.op_name, ())
        if len(found) > 1:
            found = tuple([n for n in found if may_be(self._first[n].opcode, instruction.opcode)]) or found
        if len(found) > 1:
            found = tuple([n for n in found if self._first[n].source == instruction.source]) or found
        if len(found) > 1 and (tags := tags_of(instruction.entries)):
            found = tuple([n for n in found if self._ids.tags.get(n, {}).keys() == tags.items()]) or found
        return found


def _paths(module: HloModule) -> dict[int, list[str]]:
    found: dict[int, dict[str, None]] = {computation: {} for computation in module.computations}
    found[module.entry.id][""] = None
    for computation in reversed(module.computations.values()):  # Callers first.
        paths = list(found[computation.id])[:_MAX_PATHS] or [""]
        for instruction in computation.instructions:
            call = f"{instruction.op_name}/" if instruction.opcode == "call" and instruction.op_name else ""
            for called in instruction.called_ids:
                found[called].update(dict.fromkeys(path + call for path in paths))
    return {computation: list(paths)[:_MAX_PATHS] or [""] for computation, paths in found.items()}


def _by_full_name(module: HloModule, ids: Instructions) -> dict[str, tuple[int, ...]]:
    """The operations by `op_name`, before and after XLA inlines calls, with and without the HLO stage's prefixes."""
    found: dict[str, dict[int, None]] = {}
    for computation in module.computations.values():
        paths = ["", *filter(None, ids.paths[computation.id])]
        for instruction in computation.instructions:
            if (number := ids[instruction]) is None or not (own := instruction.op_name):
                continue
            for path in paths:
                name = path + own
                found.setdefault(name, {})[number] = None
                if (plain := without_numbers(name)) != name:
                    found.setdefault(plain, {})[number] = None
    return {name: tuple(numbers) for name, numbers in found.items()}
