# SPDX-License-Identifier: Apache-2.0
"""Which operations of the program an HLO instruction came from: by the numbers in names, and by data flow where they fail.

Names fail in few places. XLA gives an instruction that absorbs another the other's name (a dot that folds a transpose), makes
some without any (constants, expansions), and keeps one of two equal ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlotag.hlo.graph import MOVES, Flow, Program
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins

Ids = tuple[int, ...]

# An operation that becomes one of these is a step of its own to whoever wrote it: a name that says otherwise is a neighbour's.
_HEAVY = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-permute",
        "convolution",
        "dot",
        "fft",
        "gather",
        "reduce",
        "reduce-scatter",
    }
    | {"reduce-window", "scatter", "select-and-scatter", "sort"}
)
# What XLA adds for its own ends, and gives no name: it is nobody's operation.
_XLAS_OWN = frozenset({"bitcast", "copy", "get-tuple-element", "parameter", "partition-id", "replica-id", "tuple"})


def join(module: HloModule, origins: Origins, *, only_tags: bool = False) -> dict[Instruction, Ids]:
    """Joins the instructions of a module to the operations they came from.

    Args:
      module: as XLA's passes made it, with the numbers still in its names.
      origins: the numbered operations.
      only_tags: leaves out what makes no difference to any instruction's tags: an equal operation with the same ones.

    Returns:
      For every instruction, those of fused and called computations included, the numbers of its operations: its own first, then
      those that XLA merged into it. Empty for what XLA made without one: parameters, tuples, copies.
    """
    return _Join(module, origins, only_tags).run()


class _Join:
    def __init__(self, module: HloModule, origins: Origins, only_tags: bool):
        self._module, self._origins, self._only_tags = module, origins, only_tags
        self._program, self._flow = Program(origins), Flow(module)
        self._ids: dict[Instruction, Ids] = {}
        # By instruction: the operations whose values it must compute, since its users take them for that; and its users' numbers.
        self._wanted: dict[Instruction, list[int]] = {}
        self._owners: dict[Instruction, list[Ids]] = {}

    def run(self) -> dict[Instruction, Ids]:
        self._want(self._results())
        for instruction in self._flow.users_first():
            self._ids[instruction] = self._of(instruction)
            self._ask_operands(instruction)
        self._fill_fusions()
        self._fill_regions()
        self._add_equals()
        return {instruction: self._ids[instruction] for instruction in self._module.instructions()}

    def _of(self, instruction: Instruction) -> Ids:
        named = self._named(instruction)
        if instruction.opcode == "fusion":
            return named
        opcode, wanted = instruction.opcode, self._wanted.get(instruction, ())
        if named and (opcode not in _HEAVY | MOVES or self._program.becomes(named[0], opcode)):
            return named
        if named and opcode in MOVES:
            return self._moved(instruction, named, tuple(n for n in wanted if self._program.becomes(n, opcode)))
        for numbers in (named, wanted):
            found = [self._program.source(number, opcode) for number in numbers]
            if sources := tuple(dict.fromkeys(number for number in found if number is not None)):
                return sources
        return named or self._owner(instruction)

    def _moved(self, instruction: Instruction, named: Ids, wanted: Ids) -> Ids:
        """What moves a value may bear the name of what computed it; its attributes tell which of the two it is, if it has any."""
        entries = instruction.attributes.items()
        for ids in (wanted, named):
            if ids and (own := self._origins.attributes[ids[0]].items()) and own <= entries:
                return ids
        return wanted or named

    def _named(self, instruction: Instruction) -> Ids:
        numbers = self._origins.ids_of(instruction.op_name)
        if not numbers or self._program.becomes(numbers[0], instruction.opcode):
            return numbers
        # An operand that is of the same equation has the name of its user.
        helpers = [h for h in self._origins.helpers.get(numbers[0], ()) if self._program.becomes(h, instruction.opcode)]
        return (helpers[0], *numbers[1:]) if helpers else numbers

    def _owner(self, instruction: Instruction) -> Ids:
        """What an instruction without a name belongs to: the operations that its users came from."""
        if instruction.opcode in _XLAS_OWN:
            return ()
        owners = tuple(sorted({number for ids in self._owners.get(instruction, ()) for number in ids}))
        # Several share constants and the like; a step of its own is not shared by accident.
        return () if instruction.opcode in _HEAVY and len(owners) > 1 else owners

    def _ask_operands(self, instruction: Instruction) -> None:
        if instruction.opcode == "fusion":
            return
        ids = self._ids[instruction]
        expected = self._expected(instruction, ids)
        for position, operand in enumerate(instruction.operands):
            source = self._flow.source(operand)
            wanted = expected[position] if position < len(expected) else []
            self._want([(source, number) for number in wanted])
            if ids:
                self._owners.setdefault(source, []).append(ids)
            elif instruction.opcode in _XLAS_OWN:
                self._owners.setdefault(source, []).extend(self._owners.get(instruction, []))

    def _expected(self, instruction: Instruction, ids: Ids) -> list[list[int]]:
        """For each operand, the operations that could compute it."""
        if not ids or not self._program.becomes(ids[0], instruction.opcode):
            # It hands on what its own users want.
            return [self._wanted.get(instruction, [])] if instruction.opcode in MOVES else []
        expected: list[list[int]] = [[] for _ in instruction.operand_ids]
        for number in ids:
            definitions = self._program.operands(number)
            if len(definitions) == len(expected) and self._program.becomes(number, instruction.opcode):
                for options, definition in zip(expected, definitions, strict=True):
                    options.extend([definition] if definition is not None else [])
        return expected

    def _results(self) -> Iterable[tuple[Instruction, int]]:
        results, root = self._program.results(), self._module.entry.root
        instructions = root.operands if root.opcode == "tuple" else [root]
        if len(results) == len(instructions):
            for instruction, number in zip(instructions, results, strict=True):
                if number is not None:
                    yield self._flow.source(instruction), number

    def _want(self, pairs: Iterable[tuple[Instruction, int]]) -> None:
        for instruction, number in pairs:
            wanted = self._wanted.setdefault(instruction, [])
            if number not in wanted:
                wanted.append(number)

    def _fill_fusions(self) -> None:
        for instruction, ids in self._ids.items():
            if instruction.opcode == "fusion":
                self._ids[instruction] = self._ids[self._root(instruction)] or ids

    def _root(self, fusion: Instruction) -> Instruction:
        """What a fusion is for: its root, or what its root is made from by moves of XLA's own."""
        root = self._flow.source(fusion)
        while root.opcode in ("bitcast", "copy") and not self._ids[root] and root.operands[0].computation is root.computation:
            root = self._flow.source(root.operands[0])
        return root

    def _fill_regions(self) -> None:
        """What is nameless in the body of a reduction, a sort or a scatter belongs to that."""
        for caller, ids in list(self._ids.items()):
            if caller.opcode in ("fusion", "while", "conditional", "call") or not ids:
                continue
            for computation in caller.called:
                for instruction in computation.instructions:
                    if not self._ids[instruction] and instruction.opcode not in _XLAS_OWN:
                        self._ids[instruction] = ids

    def _add_equals(self) -> None:
        """Operations that are gone, since XLA found that another computes the same."""
        present = {number for ids in self._ids.values() for number in ids}
        entries: dict[str, list[dict[str, str]]] = {}
        for number in present:
            entries.setdefault(self._program.kind(number), []).append(self._origins.attributes[number])
        absent = [n for n in range(len(self._origins)) if n not in present and self._matters(n, entries)]
        kinds_absent = {self._program.kind(number) for number in absent}
        equals: dict[object, list[int]] = {}
        for number in absent:
            equals.setdefault(self._program.value(number), []).append(number)
        for instruction, ids in self._ids.items():
            if ids and self._program.kind(ids[0]) in kinds_absent:
                self._ids[instruction] = (*ids, *equals.get(self._program.value(ids[0]), ()))

    def _matters(self, number: int, present: dict[str, list[dict[str, str]]]) -> bool:
        """Whether an operation that is gone could be equal to one that is there, by the entries of those of each kind."""
        same_kind = present.get(self._program.kind(number), [])
        if not self._only_tags:
            return bool(same_kind)
        own = self._origins.attributes[number]
        return bool(own) and any(entries is not own for entries in same_kind)
