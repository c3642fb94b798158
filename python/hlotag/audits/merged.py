# SPDX-License-Identifier: Apache-2.0
"""Which products did XLA merge into one? Compares the modules before and after the pass that merges those of one operand.

The merged product has the name of one of them, and slices of it are their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hlotag.audits.model import Op
from hlotag.hlo.opcodes import MOVES, RELABELLING, opcode_of

PASS = "dot-merger"


def merged(ops: Sequence[Op], passes: Sequence[tuple[str, Mapping[Any, Sequence[int]]]]) -> dict[int, set[int]]:
    """Finds merged products.

    Args:
        ops: The operations.
        passes: Passes in order, each with the module that it left: by instruction, the operations that it is named after.
            The entry before `PASS` has that pass's input.

    Returns:
        By the product that the merged one is named after, the others.
    """
    found: dict[int, set[int]] = {}
    for (_, before), (name, after) in pairwise(passes):
        if name != PASS:
            continue
        left = {instruction.name: instruction for instruction in after}
        known = {instruction.name for instruction in before}
        user_of = {operand: (user, n) for user in before for n, operand in enumerate(user.operands)}
        for product in [i for i in before if i.opcode == "dot" and i.name not in left]:
            at, position = product, 0
            while at.name not in left and at in user_of:
                at, position = user_of[at]
            if at.name not in left:
                continue
            whole = left[at.name].operands[position]
            while whole.opcode in MOVES and whole.operands:
                whole = whole.operands[0]
            if whole.opcode == "dot" and whole.name not in known:
                own, other = _product(ops, before[product]), _product(ops, after[whole])
                if own is not None and other is not None and own != other:
                    found.setdefault(other, set()).add(own)
    return found


def _product(ops: Sequence[Op], named: Sequence[int]) -> int | None:
    """The product that an instruction is named after, itself or by a transpose of its result."""
    number = named[0] if named else None
    while number is not None and opcode_of(ops[number].name) in RELABELLING:
        number = next(iter(ops[number].operands), None)
    return number
