# SPDX-License-Identifier: Apache-2.0
"""Which calls and loops are left? Judges `inlineable` and `skip-simplify-while-loops_trip-count-one`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag.audit.effects.schedule import Schedule
from hlotag.audit.effects.verdict import Member, Verdict, names
from hlotag.hlo.module import Instruction


def inlineable(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if a call is inlined ("true") or kept ("false"). "auto" leaves the choice to XLA."""
    calls = _of(members, "call", ("call", "async-start"))
    if value == "auto":
        return Verdict(None, "", "auto leaves it to XLA")
    if value == "true":
        return Verdict(not calls, _are("call", calls) if calls else "inlined", "XLA kept it" if calls else "")
    if calls:
        return Verdict(True, _are("call", calls))
    return Verdict(False, "the call is gone", "XLA inlined it after the pass that reads the key, or nothing used its result")


def kept_loop(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """Obeyed if a loop that runs once stays a loop."""
    loops = _of(members, "while", ("while",))
    if value != "true":
        return Verdict(None, "", "only true asks for something")
    return Verdict(True, _are("loop", loops)) if loops else Verdict(False, "no loop is left", "XLA simplified it")


def _are(what: str, instructions: Sequence[Instruction]) -> str:
    return f"{names(instructions)} {f'is a {what}' if len(instructions) == 1 else f'are {what}s'}"


def _of(members: Sequence[Member], op: str, opcodes: Sequence[str]) -> list[Instruction]:
    return [
        i for member in members if member.tag.op.name.rpartition(".")[2] == op for i in member.instructions if i.opcode in opcodes
    ]
