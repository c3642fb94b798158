# SPDX-License-Identifier: Apache-2.0
"""Which calls and loops are left? Judges `inlineable` and `skip-simplify-while-loops_trip-count-one`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag.audits.effects.schedule import Schedule
from hlotag.audits.effects.verdict import Member, Seen, names


def inlineable(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if a call is inlined ("true") or kept ("false"). "auto" leaves the choice to XLA."""
    if value == "auto":
        return "auto leaves it to XLA"
    found = _left(members, "call", ("call", "async-start"))
    if value != "false":
        return found._replace(is_done=not found.facts)
    return found._replace(reason="" if found.is_done else "XLA inlined the call, or nothing used its result")


def kept_loop(members: Sequence[Member], schedule: Schedule, value: str) -> Seen | str:
    """Done if a loop that runs once stays a loop."""
    return _left(members, "while", ("while",)) if value == "true" else "only true asks for something"


def _left(members: Sequence[Member], op: str, opcodes: Sequence[str]) -> Seen:
    """Which of the calls or loops are left."""
    left = {
        member.op.id: [i for i in member.instructions if i.opcode in opcodes]
        for member in members
        if member.op.name.rpartition(".")[2] == op
    }
    found = [i for instructions in left.values() for i in instructions]
    evidence = f"{names(found)} {f'is a {op}' if len(found) == 1 else f'are {op}s'}" if found else f"no {op}"
    return Seen(frozenset(number for number, instructions in left.items() if instructions), evidence, bool(found))
