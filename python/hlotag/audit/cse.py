# SPDX-License-Identifier: Apache-2.0
"""Which operations did XLA's common-subexpression elimination (CSE) remove? Compares the modules before and after that pass.

The module given to XLA does not tell: earlier passes make unequal operations equal, and remove equal ones before CSE runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from hlotag.audit.model import Op
from hlotag.hlo.opcodes import may_be, opcode_of

PASS = "cse"

Named = Mapping[Any, Sequence[int]]


class _Run:
    """One run of the pass. Indexes of its modules are built on first use."""

    def __init__(self, ops: Sequence[Op], before: Named, after: Named) -> None:
        self._ops, self._before, self.after = ops, before, after

    @cached_property
    def own(self) -> dict[int, Any]:
        """By operation, its first instruction before."""
        own: dict[int, Any] = {}
        for instruction, numbers in self._before.items():
            for number in numbers:
                if _is_of(self._ops[number].name, instruction.opcode):
                    own.setdefault(number, instruction)
        return own

    @cached_property
    def left(self) -> dict[str, Any]:
        """By name, the instructions after."""
        return {instruction.name: instruction for instruction in self.after}

    @cached_property
    def user_of(self) -> dict[Any, tuple[Any, int]]:
        """By instruction before, its first user and the operand that it is of that."""
        found: dict[Any, tuple[Any, int]] = {}
        for user in self._before:
            for position, operand in enumerate(user.operands):
                found.setdefault(operand, (user, position))
        return found


class Eliminated:
    """The operations that CSE removed and later passes did not restore.

    Args:
        ops: The operations.
        passes: In order: a pass, and the operations that the instructions of the module it left are named after. The module
            before one that is called `PASS` is the one that this pass was given.
    """

    def __init__(self, ops: Sequence[Op], passes: Sequence[tuple[str, Named]]) -> None:
        self._ops = ops
        self._by: dict[int, _Run] = {}
        present = [self._present(named) for _, named in passes]
        for ((_, before), (name, after)), (had, has) in zip(pairwise(passes), pairwise(present), strict=True):
            for number in self._by.keys() & has:
                del self._by[number]
            if name == PASS:
                self._by.update(dict.fromkeys(had - has, _Run(ops, before, after)))

    def __contains__(self, number: int) -> bool:
        return number in self._by

    def instead_of(self, number: int) -> Any | None:
        """The instruction that took an operation's place; None if nothing reads it any more.

        Args:
            number: The operation's id.

        Returns:
            An instruction of the module after the pass.
        """
        run = self._by[number]
        at = run.own[number]
        # Its user may have had an equal one, too.
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
        """The operation that is computed in an operation's place; None if nothing reads it any more.

        Args:
            number: The operation's id.

        Returns:
            An id.
        """
        seen = set()
        while number in self._by and number not in seen:
            seen.add(number)
            if (found := self.instead_of(number)) is None:
                return None
            named = self._by[number].after[found]
            left = next((n for n in named if _is_of(self._ops[n].name, found.opcode)), None)
            if left is None:
                return None
            number = left
        return number

    def _present(self, named: Named) -> set[int]:
        return {n for instruction, numbers in named.items() for n in numbers if _is_of(self._ops[n].name, instruction.opcode)}


def _is_of(name: str, opcode: str) -> bool:
    """Whether an instruction that is named after an operation has its value.

    A product that XLA writes as another one leaves its name to the change of shape that it puts around that.
    """
    return may_be(name, opcode) or (opcode_of(name) == "dot" and opcode in ("bitcast", "reshape"))
