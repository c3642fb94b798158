# SPDX-License-Identifier: Apache-2.0
"""When the instructions of a compiled module run, on which thread, and where their values lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hlotag.hlo import HloModule
from hlotag.hlo.module import Computation, Instruction
from hlotag.hlo.opcodes import Kind, kind_of

HOST_MEMORY = 5  # XLA's `Layout::kHostMemorySpace`.

# What calls a computation to run it once, as a part of the instruction itself.
_WRAPPERS = {"fusion", "call", "custom-call", "async-start", "async-update", "async-done"}
# They take no time of their own, or are copies that the compiler moves into gaps.
_PASSIVE = {
    *("add-dependency", "after-all", "bitcast", "constant", "copy-done", "copy-start", "get-tuple-element", "parameter"),
    *("partition-id", "replica-id", "slice-done", "slice-start", "tuple"),
}


class Schedule:
    """The schedule of a compiled module.

    Args:
        module: With a schedule; without one, instructions count as scheduled in the order of the module.

    Attributes:
        by_name: The instructions by name.
    """

    def __init__(self, module: HloModule) -> None:
        self.by_name: dict[str, Instruction] = {}
        self._callers: dict[int, list[Instruction]] = {}
        self._users: dict[Instruction, list[Instruction]] = {}
        for instruction in module.instructions():
            self.by_name[instruction.name] = instruction
            for called in instruction.called_ids:
                self._callers.setdefault(called, []).append(instruction)
            for operand in instruction.operands:
                self._users.setdefault(operand, []).append(instruction)
        self._sequences = {s.computation_id: list(s.sequence.instruction_ids) for s in module.proto.schedule.sequences}
        if not self._sequences:
            fused = {c for i in module.instructions() if i.opcode == "fusion" for c in i.called_ids}
            self._sequences = {c.id: [i.id for i in c.instructions] for c in module.computations.values() if c.id not in fused}
        self._computations = module.computations
        self._ordered: dict[int, list[Instruction]] = {}
        self._positions: dict[int, dict[Instruction, int]] = {}
        self._ends: dict[Instruction, Instruction] = {}

    def sequence(self, computation: int) -> list[Instruction]:
        """The instructions of a scheduled computation in the order in which they begin."""
        if computation not in self._ordered:
            by_id = self._computations[computation].by_id
            ordered = self._ordered[computation] = [by_id[number] for number in self._sequences[computation]]
            self._positions[computation] = {instruction: place for place, instruction in enumerate(ordered)}
            self._ends.update((begin, i) for i in ordered if i.opcode.endswith("-done") for begin in i.operands)
        return self._ordered[computation]

    def scheduled(self) -> Iterator[Instruction]:
        """All instructions that are in a schedule: those inside fusions are not."""
        for computation in self._sequences:
            yield from self.sequence(computation)

    def position(self, instruction: Instruction) -> int:
        """The place of a scheduled instruction in its computation."""
        self.sequence(instruction.computation.id)
        return self._positions[instruction.computation.id][instruction]

    def next_to(self, instruction: Instruction, *, before: bool) -> dict[Instruction, None]:
        """The instruction, and those that make its operands, or use its result, glue between them left out."""
        found: dict[Instruction, None] = {instruction: None}
        for at in found_while_growing(found):
            if at is instruction or is_glue(at) or at.opcode == "async-done":
                found.update(dict.fromkeys(at.operands if before else self._users.get(at, ())))
        return found

    def around(self, instruction: Instruction) -> list[Instruction]:
        """The instruction and those that run it, innermost first: fusions, calls, asynchronous pairs, loops."""
        found: dict[Instruction, None] = {instruction: None}
        for inner in found_while_growing(found):
            found.update(dict.fromkeys(self._callers.get(inner.computation.id, ())))
        return list(found)

    def runners(self, instruction: Instruction) -> list[Instruction]:
        """Those of `around` that are part of the instruction's own run: loops and conditionals are left out."""
        found: dict[Instruction, None] = {instruction: None}
        for inner in found_while_growing(found):
            found.update((i, None) for i in self._callers.get(inner.computation.id, ()) if i.opcode in _WRAPPERS)
        return list(found)

    def together(self, members: Sequence[Sequence[Instruction]]) -> list[list[Instruction]]:
        """For each member, the scheduled instructions that run it, all of one computation: the innermost that runs all members.

        The end of something asynchronous goes with its beginning.

        Args:
            members: The instructions of each.

        Returns:
            The instructions of each, in the order of the schedule; nothing where no computation runs all.
        """
        chains = [self._by_computation(instructions) for instructions in members]
        for computation in chains[0] if chains else ():
            if all(computation in chain for chain in chains):
                return [self._complete(chain[computation]) for chain in chains]
        return []

    def end_of(self, begin: Instruction) -> Instruction:
        """What waits for something asynchronous; itself if nothing does."""
        self.sequence(begin.computation.id)
        return self._ends.get(begin, begin) if begin.opcode.endswith("-start") else begin

    def _complete(self, runs: Sequence[Instruction]) -> list[Instruction]:
        found = [i for i in runs if not is_passive(i)]
        return sorted({*found, *map(self.end_of, found)}, key=self.position)

    def _by_computation(self, instructions: Iterable[Instruction]) -> dict[int, list[Instruction]]:
        found: dict[int, dict[Instruction, None]] = {}
        for instruction in instructions:
            for outer in self.around(instruction):
                if outer.computation.id in self._sequences:
                    found.setdefault(outer.computation.id, {})[outer] = None
        return {computation: list(runs) for computation, runs in found.items()}


def found_while_growing(found: dict[Instruction, None]) -> Iterator[Instruction]:
    """The keys of a dictionary, those added meanwhile included."""
    done = 0
    while done < len(found):
        todo = list(found)[done:]
        done += len(todo)
        yield from todo


def is_passive(instruction: Instruction) -> bool:
    """Whether nothing is computed: glue, or a copy that the compiler itself begins early."""
    return instruction.opcode in _PASSIVE


def is_glue(instruction: Instruction) -> bool:
    """Whether the instruction only hands values on, copies included."""
    return is_passive(instruction) or (kind_of(instruction.opcode) == Kind.GLUE and not instruction.called_ids)


def thread(computation: Computation) -> str:
    """The thread that a computation runs on: "main", "host", or one of a TPU's further cores."""
    return computation.proto.execution_thread or "main"


def memory_spaces(shape: Any) -> set[int]:
    """The memory spaces of the arrays of a shape."""
    if shape.tuple_shapes:
        return set().union(*(memory_spaces(inner) for inner in shape.tuple_shapes))
    return {shape.layout.memory_space} if shape.dimensions else set()


def destination(instruction: Instruction) -> Any:
    """The shape of what an instruction writes; of one that begins something asynchronous, of the result."""
    shape = instruction.proto.shape
    place = {"copy-start": 0, "async-start": 1}.get(instruction.opcode)
    return shape if place is None or place >= len(shape.tuple_shapes) else shape.tuple_shapes[place]
