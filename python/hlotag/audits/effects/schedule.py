# SPDX-License-Identifier: Apache-2.0
"""The schedule that judges see: when each instruction runs, on which thread, and in which memory its value is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hlotag._text import list_some
from hlotag._util.groups import group
from hlotag.hlo import HloModule
from hlotag.hlo.module import Computation, Instruction, MemoryUse
from hlotag.hlo.opcodes import Kind, kind_of
from hlotag.hlo.work import is_glue_call
from hlotag.results.tags import Op

HOST_MEMORY = 5  # XLA's `Layout::kHostMemorySpace`.

# Opcodes that run a called computation once, as part of the instruction.
_WRAPPERS = {"fusion", "call", "custom-call", "async-start", "async-update"}
# Opcodes that take no time, and copies that the compiler moves into gaps.
_PASSIVE = {
    *("add-dependency", "after-all", "bitcast", "constant", "copy-done", "copy-start", "get-tuple-element", "parameter"),
    *("partition-id", "replica-id", "slice-done", "slice-start", "tuple"),
}
_LISTED = 4  # instructions in texts


class Member(NamedTuple):
    """An operation with the tag, in one compiled module.

    Attributes:
        op: The operation.
        instructions: The instructions of the operation; empty if none is left.
        neighbours: The instructions of the operations that define its operands or use its result.
    """

    op: Op
    instructions: Sequence[Instruction]
    neighbours: Sequence[Instruction]


class Seen(NamedTuple):
    """What a judge sees in one compiled module.

    Attributes:
        facts: What the key is about, by operations: equal for two modules that do the same.
        evidence: The instructions that show it.
        is_done: Whether the module does what the key asks for.
        reason: Why not; or what to know about it.
    """

    facts: Hashable
    evidence: str
    is_done: bool = True
    reason: str = ""


class Schedule:
    """The schedule of a compiled module, and the operations that its instructions compute.

    Args:
        module: The module. If it has no schedule, the order of its instructions counts as one.
        computed: By operation, the instructions that compute it.
        inlined: By call, the instructions that were inlined from it.
        memory: What the program reserves; None if unknown.

    Attributes:
        instructions: All instructions of the module.
        memory: As given.
    """

    def __init__(
        self,
        module: HloModule,
        computed: Mapping[int, Sequence[Instruction]],
        inlined: Mapping[int, Sequence[Instruction]] | None = None,
        memory: MemoryUse | None = None,
    ) -> None:
        self.memory = memory
        self._instructions = {**(inlined or {}), **computed}
        self._ops = group((instruction, op) for op, instructions in computed.items() for instruction in instructions)
        by_name = {instruction.name: instruction for instruction in module.instructions()}
        self._callers = module.callers
        self._users = group((operand, i) for i in module.instructions() for operand in i.operands)
        self._sequences = module.sequences
        self._positions = {i: position for sequence in self._sequences.values() for position, i in enumerate(sequence)}
        # Asynchronous pairs. On TPU, two fusions with such names may be the halves of a collective.
        self._ends = {begin: i for i in self._positions if i.opcode.endswith("-done") for begin in i.operands}
        for begin in [i for i in self._positions if i.opcode == "fusion" and "-start" in i.name]:
            end = by_name.get(begin.name.replace("-start", "-done"))
            if end in self._positions and end.computation is begin.computation:
                self._ends[begin] = end
        self.instructions: Iterable[Instruction] = by_name.values()
        self._computes: dict[Instruction, bool] = {}

    def of(self, *ops: int) -> list[Instruction]:
        """The instructions of operations."""
        return [instruction for op in ops for instruction in self._instructions.get(op, ())]

    def _inside(self, instruction: Instruction) -> Iterable[Instruction]:
        """The instruction and those that it runs: in its fusion, call or loop."""
        return closure([instruction], lambda outer: (i for computation in outer.called for i in computation.instructions))

    def computes(self, instruction: Instruction) -> bool:
        """Whether an instruction computes something; not a move, the end of an asynchronous pair, or glue."""
        if instruction not in self._computes:
            found = any(kind_of(i.opcode) >= Kind.POINTWISE and not is_glue_call(i) for i in self._inside(instruction))
            self._computes[instruction] = found and not instruction.opcode.endswith("-done")
        return self._computes[instruction]

    def work(self, instruction: Instruction) -> frozenset[int | str]:
        """The heaviest operations that an instruction computes; its opcode if it computes none of the program."""
        inside = list(self._inside(instruction))
        heaviest = max(kind_of(i.opcode) for i in inside)
        found = [self._ops.get(i, ()) for i in inside if kind_of(i.opcode) == heaviest]
        return frozenset(op for ops in found for op in ops) or frozenset({instruction.opcode})

    def beside(self, begin: Instruction) -> list[Instruction]:
        """What computes between the halves of an asynchronous pair; nothing beside a synchronous instruction."""
        first, last = self.position(begin), self.position(self.end_of(begin))
        return [i for i in self.sequence_of(begin)[first + 1 : last] if self.computes(i)]

    def find_overlapping(self, begin: Instruction) -> list[Instruction]:
        """As `beside`, with the asynchronous instructions that are under way when this one begins."""
        here = self.position(begin)
        pairs = [(i, end) for i, end in self._ends.items() if i.computation is begin.computation and self.computes(i)]
        return [i for i, end in pairs if self.position(i) < here < self.position(end)] + self.beside(begin)

    def sequence_of(self, instruction: Instruction) -> list[Instruction]:
        """The scheduled instructions of an instruction's computation, in order."""
        return self._sequences[instruction.computation.id]

    def scheduled(self) -> Iterable[Instruction]:
        """All scheduled instructions."""
        return self._positions

    def position(self, instruction: Instruction) -> int:
        """The index of a scheduled instruction in its computation's sequence."""
        return self._positions[instruction]

    def next_to(self, instruction: Instruction, *, before: bool) -> dict[Instruction, None]:
        """The instruction with its operands, or with its users if not `before`. Looks through glue."""

        def step(at: Instruction) -> Iterable[Instruction]:
            if at is not instruction and not is_glue(at) and at.opcode != "async-done":
                return ()
            return at.operands if before else self._users.get(at, ())

        return closure([instruction], step)

    def around(self, instruction: Instruction) -> list[Instruction]:
        """The instruction and those that run it, innermost first: fusions, calls, asynchronous pairs, loops."""
        return list(closure([instruction], lambda inner: self._callers.get(inner.computation.id, ())))

    def runners(self, instruction: Instruction) -> list[Instruction]:
        """As `around`, without loops and conditionals, which run an instruction several times or not at all."""
        callers = self._callers
        return list(closure([instruction], lambda at: (i for i in callers.get(at.computation.id, ()) if i.opcode in _WRAPPERS)))

    def together(self, members: Sequence[Sequence[Instruction]]) -> list[list[Instruction]]:
        """For each member, the instructions that run it in the innermost scheduled computation that runs all members.

        They are in schedule order; empty if no computation runs all members. The `-done` of an asynchronous instruction goes with
        its `-start`.
        """
        chains = [self._by_computation(instructions) for instructions in members]
        for computation in chains[0] if chains else ():
            if all(computation in chain for chain in chains):
                return [self._complete(chain[computation]) for chain in chains]
        return []

    def end_of(self, begin: Instruction) -> Instruction:
        """The end of an asynchronous pair; other instructions end with themselves."""
        return self._ends.get(begin, begin)

    def _complete(self, runs: Sequence[Instruction]) -> list[Instruction]:
        found = [i for i in runs if not is_passive(i)]
        return sorted({*found, *map(self.end_of, found)}, key=self.position)

    def _by_computation(self, instructions: Iterable[Instruction]) -> dict[int, list[Instruction]]:
        found: dict[int, dict[Instruction, None]] = {}
        for instruction in instructions:
            for outer in self.around(instruction):
                if outer in self._positions:
                    found.setdefault(outer.computation.id, {})[outer] = None
        return {computation: list(runs) for computation, runs in found.items()}


def closure(start: Iterable[Instruction], step: Callable[[Instruction], Iterable[Instruction]]) -> dict[Instruction, None]:
    """The instructions that `step` reaches from those in `start`, breadth first."""
    found = dict.fromkeys(start)
    frontier: Iterable[Instruction] = list(found)
    while frontier := dict.fromkeys(i for at in frontier for i in step(at) if i not in found):
        found.update(frontier)
    return found


def is_passive(instruction: Instruction) -> bool:
    """Whether an instruction takes no compute time: glue, or a copy that the compiler starts early."""
    return instruction.opcode in _PASSIVE or is_glue_call(instruction)


def is_glue(instruction: Instruction) -> bool:
    """Whether an instruction only passes values on. Copies count."""
    return is_passive(instruction) or (kind_of(instruction.opcode) == Kind.GLUE and not instruction.called_ids)


def thread(computation: Computation) -> str:
    """The thread that a computation runs on: "main", "host", or "sparsecore" on TPUs."""
    return computation.thread or "main"


def memory_spaces(shape: Any) -> set[int]:
    """The memory spaces of the arrays in a shape."""
    if shape.tuple_shapes:
        return set().union(*(memory_spaces(inner) for inner in shape.tuple_shapes))
    return {shape.layout.memory_space} if shape.dimensions else set()


def destination(instruction: Instruction) -> Any:
    """The shape that an instruction writes. The tuple of a `-start` has the result's shape as an element."""
    shape = instruction.proto.shape
    index = {"copy-start": 0, "async-start": 1}.get(instruction.opcode)
    return shape if index is None or index >= len(shape.tuple_shapes) else shape.tuple_shapes[index]


def names(instructions: Iterable[Instruction]) -> str:
    """The names of the first few instructions."""
    return list_some(list(dict.fromkeys(i.name for i in instructions)), _LISTED)
