# SPDX-License-Identifier: Apache-2.0
"""What does a judge of an effect get and return?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from hlotag._text import listed
from hlotag.audits.model import Op
from hlotag.hlo.module import Instruction

_LISTED = 4


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


def names(instructions: Iterable[Instruction]) -> str:
    """The names of the first few instructions."""
    return listed(list(dict.fromkeys(i.name for i in instructions)), _LISTED)
