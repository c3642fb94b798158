# SPDX-License-Identifier: Apache-2.0
"""The audit of HLO modules without their program. Instructions of the first module stand for operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from hlotag import _core
from hlotag.audits.flow import Flow
from hlotag.hlo.join import program_of
from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.opcodes import MOVES, Kind, kind_of, may_be
from hlotag.hlo.origins import place_of, without_numbers
from hlotag.hlo.restore import tags_of
from hlotag.results.tags import Op, OpTags, default_phase

# Limit of call paths recorded for one computation.
_MAX_PATHS = 64
# Limit of operations passed between what an instruction reads and what its operation does.
_MAX_PASSED = 6


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
        self._list: list[Instruction] = []  # By id.
        self.ops: list[Op] = []
        self.tags: dict[int, OpTags] = {}
        self.paths = _paths(module)
        places = {i: place_of(self.paths[i.computation.id][0] + i.op_name) for i in module.instructions()}
        default = default_phase(phase for _, phase in places.values())
        for computation in module.computations.values():
            self._add(computation, places, default)

    def _add(self, computation: Computation, places: Mapping[Instruction, tuple[str, str]], default: str) -> None:
        numbers: dict[int, int] = {}  # By the instruction's id.
        fusion = self._module.fusions.get(computation.id)
        of_fusion = tags_of(fusion.entries) if fusion else {}
        for instruction in computation.instructions:
            own = tags_of(instruction.entries)
            if not own and kind_of(instruction.opcode) == Kind.GLUE:
                continue
            tags = of_fusion | own
            scope, phase = places[instruction]
            file, line = instruction.source or ("", 0)
            number = numbers[instruction.id] = self._ids[instruction] = len(self.ops)
            self._list.append(instruction)
            operands = tuple([numbers[o] for o in instruction.operand_ids if o in numbers])
            op = Op(number, instruction.opcode, scope, computation.name, phase or default, file, line, operands)
            self.ops.append(op)
            if tags:
                self.tags[number] = dict.fromkeys(tags.items())

    @cached_property
    def program(self) -> _core.Program:
        """The operations and their dataflow."""
        return program_of(self._module, [self._ids.get(i, -1) for i in self._module.instructions()])

    def place_in(self, instruction: Instruction, number: int) -> tuple[str, str]:
        """The scope and phase of an operation under the calls that an instruction was inlined from."""
        op, own = self.ops[number], self._list[number]
        name = without_numbers(instruction.op_name)
        paths = [path for path in map(without_numbers, self.paths[own.computation.id]) if path and name.startswith(path)]
        scope, phase = place_of(max(paths, key=len) + own.op_name) if paths else (op.scope, op.phase)
        return scope, phase or op.phase

    def __getitem__(self, instruction: Instruction) -> int | None:
        return self._ids.get(instruction)


class Lineage:
    """Follows instructions from a first module to later ones by instruction name, else by `op_name` and what they read.

    Attributes:
        named: By instruction of the latest module, the operations that it is named after.
        ambiguous: By instruction of the latest module, the operations that it may be named after, if several.
        unsure: Operations that an ambiguous instruction of the latest module may compute.
        unsure_if_gone: Operations for which an instruction of some module was a candidate, and that got none there.
    """

    def __init__(self, module: HloModule, ids: Instructions) -> None:
        self.named: dict[Instruction, tuple[int, ...]] = {i: () if (n := ids[i]) is None else (n,) for i in module.instructions()}
        self.ambiguous: dict[Instruction, tuple[int, ...]] = {}
        self.unsure: set[int] = set()
        self.unsure_if_gone: set[int] = set()
        self._first = {numbers[0]: i for i, numbers in self.named.items() if numbers}
        self._ids = ids
        self._by_name = _by_full_name(module, ids)
        self._flow = Flow(module, self.named)

    def follow(self, module: HloModule) -> Mapping[Instruction, tuple[int, ...]]:
        """Follows the instructions into the module after a later pass; returns the new `named`."""
        before = {(i.name, i.opcode): self.ambiguous.get(i, found) for i, found in self.named.items()}
        may_be: dict[Instruction, tuple[int, ...]] = {}
        for instruction in module.instructions():
            candidates = () if instruction.opcode == "parameter" else self._candidates(instruction)
            same = before.get((instruction.name, instruction.opcode), ())
            if same and not (candidates and set(same).isdisjoint(candidates)):
                candidates = same
            may_be[instruction] = candidates
        flow, left_out = Flow(module, may_be), set[int]()
        for instruction in module.list_as_run():
            if len(candidates := may_be[instruction]) > 1:
                may_be[instruction] = self._with_inputs(candidates, flow.inputs(instruction), instruction.opcode)
                left_out.update(candidates)
        self.ambiguous = {i: candidates for i, candidates in may_be.items() if len(candidates) > 1}
        self.unsure = {n for i, candidates in self.ambiguous.items() if kind_of(i.opcode) > Kind.GLUE for n in candidates}
        self.named = {i: () if i in self.ambiguous else candidates for i, candidates in may_be.items()}
        self.unsure_if_gone |= left_out.difference(*self.named.values())
        return self.named

    def _with_inputs(self, candidates: tuple[int, ...], inputs: frozenset[int], opcode: str) -> tuple[int, ...]:
        """The candidates that read most of what an instruction reads.

        XLA may have removed what is between the two: without a common input, inputs of the inputs count.
        """
        if opcode in MOVES and (moved := inputs.intersection(candidates)):
            return tuple(sorted(moved))
        reached = {n: self._inputs_of([n]) for n in candidates}
        for _ in range(_MAX_PASSED):
            shared = {n: len(inputs & found) for n, found in reached.items()}
            if most := max(shared.values()):
                return tuple([n for n in candidates if shared[n] == most])
            reached = {n: found | self._inputs_of(found) for n, found in reached.items()}
            inputs |= self._inputs_of(inputs)
        return candidates

    def _inputs_of(self, numbers: Iterable[int]) -> frozenset[int]:
        return frozenset[int]().union(*(self._flow.inputs(self._first[n]) for n in numbers if n >= 0))

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
    """The operations by `op_name`, before and after XLA inlines calls, with and without the HLO pass's prefixes."""
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
