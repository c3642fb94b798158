# SPDX-License-Identifier: Apache-2.0
"""The evidence for a missing operation or tag: dead code, and the modules before and after a pass of XLA.

XLA's input module cannot show it: earlier passes make different operations equal, and remove equal ones before CSE runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from hlotag._util.groups import group
from hlotag.audits.model import Op
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import MOVES, RELABELLING, may_be, opcode_of
from hlotag.tagging import keys

Named = Mapping[Instruction, Sequence[int]]
"""By instruction of a module, the operations that it is named after."""
Passes = Sequence[tuple[str, Named]]
"""Passes of XLA in order, each with the module that it left. The first entry is the module before all passes."""

_CSE = "cse"
# Merges products of one operand. The merged product has the name of one of them, and slices of it are their results.
_MERGER = "dot-merger"
# These passes schedule groups, run products inside collectives, run calls on their own streams or on the host, and move values
# between memories.
# Their output lacks the key.
_TAKERS = (
    "async-collective-fusion",
    "legalize-scheduling-annotations",
    "explicit-stream-annotation-async-wrapper",
    "convert-memory-placement-to-internal-annotations",
    "hlo_host_device_type_call_wrapper",
)
PASSES = (_CSE, _MERGER, *_TAKERS)
"""The passes that explain missing tags."""


class Evidence:
    """What explains missing tags. Each part is slow to find, so it is computed on first use.

    Args:
        ops: The operations.
        live: Finds the operations that the program's results depend on.
        passes: Reads the passes.
    """

    def __init__(self, ops: Sequence[Op], live: Callable[[], set[int]], passes: Callable[[], Passes]) -> None:
        self._ops, self._live, self._passes = ops, live, passes

    @cached_property
    def live(self) -> set[int]:
        """The operations that the program's results depend on."""
        return self._live()

    @cached_property
    def passes(self) -> Passes:
        """XLA's passes, after the module before all passes."""
        return self._passes()

    @cached_property
    def eliminated(self) -> Mapping[int, tuple[Run, Instruction]]:
        """The operations that CSE removed and later passes did not restore, each with the run and its instruction before."""
        found: dict[int, tuple[Run, Instruction]] = {}
        for ((_, before), (name, after)), (had, has) in zip(pairwise(self.passes), pairwise(self._present()), strict=True):
            for number in found.keys() & has.keys():
                del found[number]
            if name == _CSE:
                run = Run(before, after)
                found |= {number: (run, had[number]) for number in had.keys() - has.keys()}
        return found

    def _present(self) -> Iterator[dict[int, Instruction]]:
        """For each pass, by operation, the first instruction that has its value."""
        for _, named in self.passes:
            first: dict[int, Instruction] = {}
            for instruction, numbers in named.items():
                for number in self._find_computed(instruction, numbers):
                    first.setdefault(number, instruction)
            yield first

    def instead_of(self, number: int) -> Instruction | None:
        """The instruction after CSE that replaced an eliminated operation; None if nothing uses the operation there."""
        run, instruction = self.eliminated[number]
        return run.instead_of(instruction)

    def survivor_of(self, number: int) -> int | None:
        """The operation that CSE kept in the place of an eliminated one; None if nothing uses the operation after CSE."""
        seen = set()
        while number in self.eliminated and number not in seen:
            seen.add(number)
            run, instruction = self.eliminated[number]
            found = run.instead_of(instruction)
            survivors = self._find_computed(found, run.after[found]) if found else iter(())
            if (survivor := next(survivors, None)) is None:
                return None
            number = survivor
        return number

    @cached_property
    def merged(self) -> Mapping[int, set[int]]:
        """By product, the others that XLA merged into it."""
        found: dict[int, set[int]] = {}
        for _, run in self._runs(_MERGER):
            known = {instruction.name for instruction in run.before}
            for product in [i for i in run.before if i.opcode == "dot" and i.name not in run.left]:
                whole = run.instead_of(product)
                while whole and whole.opcode in MOVES and whole.operands:
                    whole = whole.operands[0]
                if whole and whole.opcode == "dot" and whole.name not in known:
                    own, other = self._product(run.before[product]), self._product(run.after[whole])
                    if own is not None and other is not None and own != other:
                        found.setdefault(other, set()).add(own)
        return found

    @cached_property
    def consumed(self) -> Mapping[tuple[int, str], str]:
        """By operation and key, the last pass that read the key and removed it from the operation, or with the operation."""
        found: dict[tuple[int, str], str] = {}
        for name, run in self._runs(*_TAKERS):
            tagged = {(n, i.opcode, key) for i, numbers in run.before.items() for key in i.entries for n in numbers}
            left = group(((n, i.opcode), i.entries) for i, numbers in run.after.items() for n in numbers)
            for number, opcode, key in tagged:
                if keys.is_taken(key) and any(key not in entries for entries in left.get((number, opcode), [{}])):
                    found[number, key] = name
        return found

    def _runs(self, *wanted: str) -> Iterator[tuple[str, Run]]:
        return ((name, Run(before, after)) for (_, before), (name, after) in pairwise(self.passes) if name in wanted)

    def _find_computed(self, instruction: Instruction, numbers: Sequence[int]) -> Iterator[int]:
        """The operations whose value an instruction has, among those that it is named after.

        When XLA rewrites a dot, it gives the dot's name to the reshape around the new dot.
        """
        is_around = instruction.opcode in ("bitcast", "reshape")
        for number in numbers:
            name = self._ops[number].name
            if may_be(name, instruction.opcode) or (is_around and opcode_of(name) == "dot"):
                yield number

    def _product(self, named: Sequence[int]) -> int | None:
        """The product that an instruction is named after, itself or by a transpose of its result."""
        number = named[0] if named else None
        while number is not None and opcode_of(self._ops[number].name) in RELABELLING:
            number = next(iter(self._ops[number].operands), None)
        return number


class Run:
    """One run of a pass, with the modules before and after it. Indexes of the modules are built on first use."""

    def __init__(self, before: Named, after: Named) -> None:
        self.before, self.after = before, after

    @cached_property
    def left(self) -> Mapping[str, Instruction]:
        """By name, the instructions after the pass."""
        return {instruction.name: instruction for instruction in self.after}

    @cached_property
    def _user_of(self) -> Mapping[Instruction, tuple[Instruction, int]]:
        """By instruction before the pass, its first user and its operand number there."""
        found: dict[Instruction, tuple[Instruction, int]] = {}
        for user in self.before:
            for position, operand in enumerate(user.operands):
                found.setdefault(operand, (user, position))
        return found

    def instead_of(self, instruction: Instruction) -> Instruction | None:
        """What an instruction's users have instead of it after the pass; None if it has no user there.

        The pass may have removed the user too, so users are followed to one that is left, then operands back.
        """
        at, positions = instruction, []
        while at.name not in self.left:
            if at not in self._user_of:
                return None
            at, position = self._user_of[at]
            positions.append(position)
        found = self.left[at.name]
        for position in reversed(positions):
            if position >= len(found.operands):
                return None
            found = found.operands[position]
        return found
