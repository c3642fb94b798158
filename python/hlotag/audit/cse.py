# SPDX-License-Identifier: Apache-2.0
"""Which operations XLA's elimination of common subexpressions took away: seen in the modules before and after that pass.

Whether two operations are equal cannot be told from the module that XLA is given: other passes make equal what is not, and take
away what is before this one comes to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hlotag.audit.model import Op
from hlotag.hlo.opcodes import may_be

PASS = "cse"

Named = Mapping[Any, Sequence[int]]


class Eliminated:
    """The operations that went by that pass, and did not come back.

    Args:
        ops: The operations.
        passes: In order: a pass, and the operations that the instructions of the module it left are named after. The module
            before one that is called `PASS` is the one that this pass was given.
    """

    def __init__(self, ops: Sequence[Op], passes: Sequence[tuple[str, Named]]) -> None:
        self._ops = ops
        self._by: dict[int, tuple[Named, Named]] = {}
        present = [self._present(named) for _, named in passes]
        for ((_, before), (name, after)), (had, has) in zip(pairwise(passes), pairwise(present), strict=True):
            for number in self._by.keys() & has:
                del self._by[number]
            if name == PASS:
                self._by.update(dict.fromkeys(had - has, (before, after)))

    def __contains__(self, number: int) -> bool:
        return number in self._by

    def instead_of(self, number: int) -> Any | None:
        """The instruction that took an operation's place; None if nothing reads it any more.

        Args:
            number: The operation's id.

        Returns:
            An instruction of the module after the pass.
        """
        before, after = self._by[number]
        left = {instruction.name: instruction for instruction in after}
        user_of: dict[Any, tuple[Any, int]] = {}
        for user in before:
            for position, operand in enumerate(user.operands):
                user_of.setdefault(operand, (user, position))
        (at, *_) = (i for i, numbers in before.items() if number in numbers and self._is(number, i))
        # Its user may have had an equal one, too.
        positions = []
        while at.name not in left:
            if at not in user_of:
                return None
            at, position = user_of[at]
            positions.append(position)
        found = left[at.name]
        for position in reversed(positions):
            found = found.operands[position]
        return found

    def _present(self, named: Named) -> set[int]:
        return {number for instruction, numbers in named.items() for number in numbers if self._is(number, instruction)}

    def _is(self, number: int, instruction: Any) -> bool:
        return may_be(self._ops[number].name, instruction.opcode)
