# SPDX-License-Identifier: Apache-2.0
"""Which instructions read the value of which, by the module that ran?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from hlotag._util.groups import group
from hlotag.hlo import HloModule
from hlotag.hlo.module import Computation, Instruction

# These only name values.
_NAMES_ONLY = {"bitcast", "get-tuple-element", "tuple"}
_RUNS_OTHERS = {"call", "conditional", "while"}


def find_readers(module: HloModule) -> dict[str, frozenset[str]]:
    """Finds, by the name of an instruction, those that cannot start before its value is there.

    They read the value, or run in a loop, a branch or a call that reads it. What is in a fusion is the fusion. In a loop, an
    instruction runs again only after it has ended, so it is one of its own readers. The end of an asynchronous pair waits for the
    start: those that read the end's value are readers of both.
    """
    return _Readers(module).find()


class Independence:
    """Which instructions depend on each other? `readers` are those of `find_readers`."""

    def __init__(self, readers: Mapping[str, Collection[str]]) -> None:
        self._readers = readers
        self._makers = group((reader, name) for name, found in readers.items() for reader in found)

    def find(self, start: str, others: Iterable[str]) -> list[str]:
        """The others that neither need the value of `start`, nor make one that it needs."""
        dependent = _reach(start, self._readers) | _reach(start, self._makers)
        return [name for name in others if name not in dependent]


def _reach(start: str, edges: Mapping[str, Collection[str]]) -> set[str]:
    reached, pending = {start}, [start]
    while pending:
        further = set(edges.get(pending.pop(), ())) - reached
        reached |= further
        pending += further
    return reached


class _Readers:
    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._found: dict[str, set[str]] = {}
        self._within: dict[Instruction, frozenset[str]] = {}

    def find(self) -> dict[str, frozenset[str]]:
        for computation in self._module.computations.values():
            if computation.id in self._module.fusions:
                continue
            for instruction in computation.instructions:
                if instruction.opcode not in _NAMES_ONLY:
                    self._add(instruction)
        return {name: frozenset({name, *readers}) for name, readers in self._found.items()}

    def _add(self, instruction: Instruction) -> None:
        if instruction.opcode.endswith("-done"):
            return
        readers = {instruction.name, *self._names_in(instruction)}
        for producer in dict.fromkeys(p for operand in instruction.operands for p in _producers(operand)):
            # A loop may only carry a pair that is under way.
            if not (producer.opcode.endswith("-start") and instruction.opcode in _RUNS_OTHERS):
                self._found.setdefault(producer.name, set()).update(readers)

    def _names_in(self, instruction: Instruction) -> frozenset[str]:
        """The names of what a loop, a branch or a call runs. Callees come first in a module, so theirs are known."""
        if instruction.opcode not in _RUNS_OTHERS:
            return frozenset()
        if instruction not in self._within:
            names = {name for called in instruction.called for each in called.instructions for name in self._with_inner(each)}
            self._within[instruction] = frozenset(names)
        return self._within[instruction]

    def _with_inner(self, instruction: Instruction) -> Iterator[str]:
        if instruction.opcode not in _NAMES_ONLY:
            yield instruction.name
        yield from self._names_in(instruction)


def _producers(value: Instruction) -> Iterator[Instruction]:
    """The instructions that compute a value, or the elements of a tuple; what a call runs for its result, too."""
    pending: list[tuple[Instruction, int | None]] = [(value, None)]
    seen: set[tuple[Instruction, int | None]] = set()
    while pending:
        at, element = place = pending.pop()
        if place in seen:
            continue
        seen.add(place)
        if at.opcode == "get-tuple-element":
            pending.append((at.operands[0], at.proto.tuple_index))
        elif at.opcode == "tuple":
            pending += [(each, None) for n, each in enumerate(at.operands) if element in (None, n)]
        elif at.opcode == "bitcast":
            pending += [(each, element) for each in at.operands]
        else:
            yield at
            if at.opcode.endswith("-done"):
                pending += [(each, None) for each in at.operands]
            if at.opcode in ("call", "while"):
                pending.append((_body(at).root, element))


def _body(instruction: Instruction) -> Computation:
    """The computation whose result is the instruction's: a call's, or the body of a loop, which comes before its condition."""
    return instruction.called[0]
