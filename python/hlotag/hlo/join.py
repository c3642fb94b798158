# SPDX-License-Identifier: Apache-2.0
"""Which operations of the program an HLO instruction came from: by the numbers in names, and by data flow where they fail.

Names fail in few places. XLA gives an instruction that absorbs another the other's name (a dot that folds a transpose), makes
some without any (constants, expansions), and keeps one of two equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from hlotag.hlo.graph import HANDING_ON, Flow, Program, StableHlo
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.opcodes import MOVES, RELABELLING, Kind, kind_of, opcode_of
from hlotag.hlo.origins import Origins

Ids = tuple[int, ...]

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
    program = StableHlo(origins)
    ids = sources(module, program, lambda instruction: origins.ids_of(instruction.op_name))
    return _with_equals(ids, program, only_tags=only_tags)


def sources(module: HloModule, program: Program, named: Callable[[Instruction], Ids]) -> dict[Instruction, Ids]:
    """Joins instructions to the operations that they were made from, and leaves out those that merely compute the same.

    Args:
      module: as for `join`.
      program: the operations.
      named: the operations that an instruction is named after.

    Returns:
      As `join`.
    """
    return _Join(module, program, named).run()


class _Join:
    def __init__(self, module: HloModule, program: Program, named: Callable[[Instruction], Ids]):
        self._module, self._program, self._named = module, program, named
        self._flow = Flow(module)
        self._ids: dict[Instruction, Ids] = {}
        # Of instructions whose name is not enough: what uses them, and at which operand; the operations whose values they must
        # compute, since their users take them for that; and their users' operations.
        self._users: dict[Instruction, list[tuple[Instruction, int]]] = {}
        self._wanted: dict[Instruction, Ids] = {}
        self._owners: dict[Instruction, Ids] = {}

    def run(self) -> dict[Instruction, Ids]:
        for instruction in self._flow.users_first():
            ids = self._ids[instruction] = self._by_name(instruction)
            if not self._is_enough(instruction, ids):
                self._users[instruction] = []
        self._find_users()
        results = self._results()
        for instruction in self._users:
            wanted = [n for user, position in self._users[instruction] for n in self._expected(user, position)]
            self._wanted[instruction] = tuple(dict.fromkeys((*results.get(instruction, ()), *wanted)))
            self._owners[instruction] = self._owners_of(instruction)
            self._ids[instruction] = self._by_flow(instruction, self._ids[instruction])
        self._fill_fusions()
        self._fill_regions()
        self._adopt_nameless()
        return {instruction: self._ids[instruction] for instruction in self._module.instructions()}

    def _by_name(self, instruction: Instruction) -> Ids:
        numbers, opcode = self._named(instruction), instruction.opcode
        if len(numbers) == 1 and self._program.becomes(numbers[0], opcode):
            return numbers  # As most are.
        # Of merged operations, those that it can be are its own; the others were folded into it.
        if own := tuple(n for n in numbers if self._program.becomes(n, opcode)):
            return own
        if not numbers:
            return ()
        # An operand that is of the same equation has the name of its user; which of several it is, the user's operands say.
        helpers = [h for h in self._helpers(numbers[0], opcode) if opcode_of(self._program.name(h)) == opcode]
        return (helpers[0], *numbers[1:]) if len(helpers) == 1 else numbers

    def _helpers(self, number: int, opcode: str) -> Ids:
        return tuple(h for h in self._program.helpers.get(number, ()) if self._program.becomes(h, opcode))

    def _is_enough(self, instruction: Instruction, named: Ids) -> bool:
        """Whether an instruction's name and what it does may both be true."""
        opcode = instruction.opcode
        if opcode in ("fusion", "parameter"):
            return True
        # A heavy operation is a step of its own to whoever wrote it: a name that says otherwise is a neighbour's.
        is_telling = opcode in MOVES or kind_of(opcode) == Kind.HEAVY
        return bool(named) and (not is_telling or self._program.becomes(named[0], opcode))

    def _find_users(self) -> None:
        if not self._users:
            return
        users = self._users
        for user in self._ids:
            if user.opcode == "fusion":
                continue
            by_id = user.computation.by_id
            for position, operand_id in enumerate(user.operand_ids):
                source = by_id[operand_id]
                if source.opcode in HANDING_ON:
                    source = self._flow.source(source)
                if source in users:
                    users[source].append((user, position))

    def _by_flow(self, instruction: Instruction, named: Ids) -> Ids:
        opcode, wanted = instruction.opcode, self._wanted[instruction]
        if named and opcode in MOVES:
            return self._moved(instruction, named, tuple(n for n in wanted if self._is_value_of(instruction, n)))
        for numbers in (named, wanted):
            found = [self._program.source(number, opcode) for number in numbers]
            if sources := tuple(dict.fromkeys(number for number in found if number is not None)):
                return sources
        return named or self._owner(instruction)

    def _is_value_of(self, instruction: Instruction, number: int) -> bool:
        size = prod(self._program.dimensions(number))
        return self._program.becomes(number, instruction.opcode) and size == prod(instruction.dimensions)

    def _moved(self, instruction: Instruction, named: Ids, wanted: Ids) -> Ids:
        """What moves a value may bear the name of a neighbour; its attributes tell which of them it is, if it has any."""
        helpers = self._helpers(named[0], instruction.opcode)[:1]
        if entries := instruction.attributes.items():
            for ids in (wanted, self._relabelled(instruction, self._program.users(named[0])), helpers, named):
                if ids and (own := self._program.entries(ids[0]).items()) and own <= entries:
                    return ids
        return wanted or helpers or named

    def _relabelled(self, instruction: Instruction, candidates: Iterable[int]) -> Ids:
        """The first operation whose result an instruction that leaves all elements in their order can be, by what it bears."""
        if instruction.opcode not in ("bitcast", "reshape"):
            return ()
        entries = instruction.attributes.items()
        for number in candidates:
            bears = not self._program.entries(number).items().isdisjoint(entries)
            is_one = bears and opcode_of(self._program.name(number)) in RELABELLING
            if is_one and self._program.dimensions(number) == instruction.dimensions:
                return (number,)
        return ()

    def _adopt_nameless(self) -> None:
        """Relabelled arguments: only tags can tell whose they are."""
        nameless = [i for i, ids in self._ids.items() if not ids and i.opcode in ("bitcast", "reshape") and i.attributes]
        if not nameless:
            return
        present = {number for ids in self._ids.values() for number in ids}
        gone = [n for n in range(len(self._program)) if n not in present]
        for instruction in nameless:
            self._ids[instruction] = self._relabelled(instruction, gone)

    def _owner(self, instruction: Instruction) -> Ids:
        """What an instruction without a name belongs to: the operations that its users came from."""
        if instruction.opcode in _XLAS_OWN:
            return ()
        owners = self._owners[instruction]
        # Several share constants and the like; a step of its own is not shared by accident.
        return () if kind_of(instruction.opcode) == Kind.HEAVY and len(owners) > 1 else owners

    def _owners_of(self, instruction: Instruction) -> Ids:
        found: set[int] = set()
        for user, _ in self._users[instruction]:
            found.update(self._ids[user] or (self._owners.get(user, ()) if user.opcode in _XLAS_OWN else ()))
        return tuple(sorted(found))

    def _expected(self, user: Instruction, position: int) -> Iterable[int]:
        """The operations that could compute an operand, by what uses it."""
        ids = self._ids[user]
        if not ids or not self._program.becomes(ids[0], user.opcode):
            # It hands on what its own users want, and what it is named after.
            return (*self._wanted.get(user, ()), *ids) if user.opcode in MOVES and position == 0 else ()
        definitions = [self._program.operands(n) for n in ids if self._program.becomes(n, user.opcode)]
        return [d for of in definitions if len(of) == len(user.operand_ids) and (d := of[position]) is not None]

    def _results(self) -> dict[Instruction, list[int]]:
        results, root = self._program.results(), self._module.entry.root
        instructions = root.operands if root.opcode == "tuple" else [root]
        found: dict[Instruction, list[int]] = {}
        if len(results) == len(instructions):
            for instruction, number in zip(instructions, results, strict=True):
                if number is not None:
                    found.setdefault(self._flow.source(instruction), []).append(number)
        return found

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
            if not ids or not caller.called_ids or caller.opcode in ("fusion", "while", "conditional", "call"):
                continue
            for computation in caller.called:
                for instruction in computation.instructions:
                    if not self._ids[instruction] and instruction.opcode not in _XLAS_OWN:
                        self._ids[instruction] = ids


def _with_equals(ids: dict[Instruction, Ids], program: StableHlo, *, only_tags: bool) -> dict[Instruction, Ids]:
    """Adds the operations that are gone, since XLA found that another computes the same."""
    present = {number for numbers in ids.values() for number in numbers}
    entries: dict[str, set[int]] = {}  # Of operations that are there, by kind; equal ones are one object.
    for number in present:
        entries.setdefault(program.name(number), set()).add(id(program.entries(number)))

    def matters(number: int) -> bool:
        """Whether one that is gone could be equal to one that is there."""
        alike = entries.get(program.name(number), set())
        own = program.entries(number)
        return bool(own and alike - {id(own)}) if only_tags else bool(alike)

    absent = [number for number in range(len(program)) if number not in present and matters(number)]
    kinds = {program.name(number) for number in absent}
    by_value: dict[object, list[int]] = {}
    for number in absent:
        by_value.setdefault(program.value(number), []).append(number)
    equals = {number: by_value.get(program.value(number), ()) for number in present if program.name(number) in kinds}
    return {
        instruction: (*numbers, *also) if numbers and (also := equals.get(numbers[0])) else numbers
        for instruction, numbers in ids.items()
    }
