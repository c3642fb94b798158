# SPDX-License-Identifier: Apache-2.0
"""Which operations did XLA's common-subexpression elimination (CSE) remove? Compares the modules before and after that pass.

XLA's input module cannot show it: earlier passes make different operations equal, and remove equal ones before CSE runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from hlotag.audits.model import Op
from hlotag.hlo.opcodes import may_be, opcode_of

PASS = "cse"

Named = Mapping[Any, Sequence[int]]


class _Run:
    """One run of CSE. Indexes of its modules are built on first use."""

    def __init__(self, ops: Sequence[Op], before: Named, after: Named) -> None:
        self._ops, self._before, self.after = ops, before, after

    @cached_property
    def own(self) -> dict[int, Any]:
        """By operation, its first instruction before CSE."""
        own: dict[int, Any] = {}
        for instruction, numbers in self._before.items():
            for number in numbers:
                if _computes(self._ops[number].name, instruction.opcode):
                    own.setdefault(number, instruction)
        return own

    @cached_property
    def left(self) -> dict[str, Any]:
        """By name, the instructions after CSE."""
        return {instruction.name: instruction for instruction in self.after}

    @cached_property
    def user_of(self) -> dict[Any, tuple[Any, int]]:
        """By instruction before CSE, its first user and its operand number there."""
        found: dict[Any, tuple[Any, int]] = {}
        for user in self._before:
            for position, operand in enumerate(user.operands):
                found.setdefault(operand, (user, position))
        return found


class Eliminated:
    """The operations that CSE removed and later passes did not restore.

    Args:
        ops: The operations.
        passes: Passes in order, each with the module that it left: by instruction, the operations that it is named after.
            The entry before `PASS` has that pass's input.
    """

    def __init__(self, ops: Sequence[Op], passes: Sequence[tuple[str, Named]]) -> None:
        self._ops = ops
        self._runs: dict[int, _Run] = {}
        present = [self._present(named) for _, named in passes]
        for ((_, before), (name, after)), (had, has) in zip(pairwise(passes), pairwise(present), strict=True):
            for number in self._runs.keys() & has:
                del self._runs[number]
            if name == PASS:
                self._runs.update(dict.fromkeys(had - has, _Run(ops, before, after)))

    def __contains__(self, number: int) -> bool:
        return number in self._runs

    def instead_of(self, number: int) -> Any | None:
        """Finds the instruction that replaced an operation.

        Args:
            number: The operation's id.

        Returns:
            An instruction of the module after CSE; None if nothing uses the operation there.
        """
        run = self._runs[number]
        at = run.own[number]
        # CSE may have removed the user too, so follow users to one that is left, then operands back.
        positions = []
        while at.name not in run.left:
            if at not in run.user_of:
                return None
            at, position = run.user_of[at]
            positions.append(position)
        found = run.left[at.name]
        for position in reversed(positions):
            found = found.operands[position]
        return found

    def survivor_of(self, number: int) -> int | None:
        """Finds the operation that CSE kept in an operation's place.

        Args:
            number: The operation's id.

        Returns:
            The id of the survivor; None if nothing uses the operation after CSE.
        """
        seen = set()
        while number in self._runs and number not in seen:
            seen.add(number)
            if (found := self.instead_of(number)) is None:
                return None
            named = self._runs[number].after[found]
            survivor = next((n for n in named if _computes(self._ops[n].name, found.opcode)), None)
            if survivor is None:
                return None
            number = survivor
        return number

    def _present(self, named: Named) -> set[int]:
        return {n for instruction, numbers in named.items() for n in numbers if _computes(self._ops[n].name, instruction.opcode)}


def _computes(name: str, opcode: str) -> bool:
    """Whether an instruction named after an operation has the operation's value.

    When XLA rewrites a dot, it gives the dot's name to the reshape around the new dot.
    """
    return may_be(name, opcode) or (opcode_of(name) == "dot" and opcode in ("bitcast", "reshape"))
