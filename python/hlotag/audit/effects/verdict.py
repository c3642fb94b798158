# SPDX-License-Identifier: Apache-2.0
"""What does a judge of an effect get and return?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlotag._util.text import listed
from hlotag.audit.effects.schedule import is_passive
from hlotag.audit.model import Tag
from hlotag.hlo.module import Instruction

_LISTED = 4


class Member(NamedTuple):
    """An operation with the tag.

    Attributes:
        tag: The tag.
        instructions: The instructions of the operation; empty if none is left.
        neighbours: The instructions of the operations that define its operands or use its result.
    """

    tag: Tag
    instructions: Sequence[Instruction]
    neighbours: Sequence[Instruction]


class Verdict(NamedTuple):
    """The fields of an `Effect`: whether the compiler obeyed, the evidence, and the likeliest reason if not."""

    obeyed: bool | None
    evidence: str
    reason: str = ""


def present(members: Sequence[Member]) -> list[Member]:
    """The members with an instruction that is more than glue."""
    return [member for member in members if not all(map(is_passive, member.instructions))]


def gone(members: Sequence[Member]) -> Verdict:
    """The verdict if no member is left."""
    states = dict.fromkeys(member.tag.state.label for member in members)
    return Verdict(None, "", f"no instruction is left of its operations ({', '.join(states)})")


def names(instructions: Iterable[Instruction]) -> str:
    """The names of the first few instructions."""
    return listed(list(dict.fromkeys(i.name for i in instructions)), _LISTED)
