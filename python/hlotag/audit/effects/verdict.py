# SPDX-License-Identifier: Apache-2.0
"""What a judge of effects is given and gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlotag.audit.effects.schedule import is_passive
from hlotag.audit.model import Tag
from hlotag.hlo.module import Instruction

_LISTED = 4


class Member(NamedTuple):
    """An operation with the tag.

    Attributes:
        tag: The tag.
        instructions: What the operation became; empty if nothing is left of it.
        neighbours: What the operations became that made its operands, or use its result.
    """

    tag: Tag
    instructions: Sequence[Instruction]
    neighbours: Sequence[Instruction]


class Verdict(NamedTuple):
    """As in `Effect`: whether it happened, how that is seen, and the likeliest reason if not."""

    obeyed: bool | None
    evidence: str
    reason: str = ""


def present(members: Sequence[Member]) -> list[Member]:
    """The members of which more is left than glue."""
    return [member for member in members if not all(map(is_passive, member.instructions))]


def gone(members: Sequence[Member]) -> Verdict:
    """The verdict where nothing is left."""
    states = dict.fromkeys(member.tag.state.label for member in members)
    return Verdict(None, "", f"no instruction is left of its operations ({', '.join(states)})")


def names(instructions: Iterable[Instruction]) -> str:
    """The names of instructions, the first few of many."""
    found = list(dict.fromkeys(i.name for i in instructions))
    rest = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + rest
