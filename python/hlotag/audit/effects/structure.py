# SPDX-License-Identifier: Apache-2.0
"""Which calls and loops are still there: `inlineable`, `skip-simplify-while-loops_trip-count-one`, loop unrolling."""

from __future__ import annotations

from collections.abc import Sequence

from hlotag.audit.effects.schedule import Schedule
from hlotag.audit.effects.verdict import Member, Verdict, names
from hlotag.hlo.module import Instruction


def inlineable(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """A call is to stay, or to be inlined; "auto" leaves it to XLA. The compiler may make the call one fusion."""
    calls = _of(members, "call", ("call", "fusion", "async-start"))
    if value == "auto":
        return Verdict(None, "", "auto leaves it to XLA")
    if value == "true":
        return Verdict(not calls, f"{names(calls)} is a call" if calls else "inlined", "XLA kept it" if calls else "")
    if calls:
        return Verdict(True, f"{names(calls)} is a {calls[0].opcode}")
    # A call that became a fusion has the key, and not the call's name.
    if fused := [i for i in schedule.scheduled() if i.opcode == "fusion" and i.attributes.get("inlineable") == value]:
        return Verdict(True, f"{names(fused)} is a fusion")
    return Verdict(False, "the call is gone", "XLA inlined it after the pass that reads the key, or nothing used its result")


def kept_loop(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """A loop that runs once is to stay a loop."""
    loops = _of(members, "while", ("while",))
    if value != "true":
        return Verdict(None, "", "only true asks for something")
    return Verdict(True, f"{names(loops)} is a loop") if loops else Verdict(False, "no loop is left", "XLA simplified it")


def unrolled_loop(members: Sequence[Member], schedule: Schedule, value: str) -> Verdict:
    """A loop is to be gone ("full"), or to do two steps in one."""
    loops = _of(members, "while", ("while",))
    if value.lower() != "full":
        return Verdict(None, names(loops), "the compiled module does not show how many steps one iteration does")
    if not loops:
        return Verdict(True, "no loop is left")
    option = "xla_gpu_enable_while_loop_unrolling=WHILE_LOOP_UNROLLING_MANUAL_UNROLL"
    return Verdict(
        False, f"{names(loops)} is a loop", f"XLA reads the key only with {option}, of a loop whose trip count it knows"
    )


def _of(members: Sequence[Member], op: str, opcodes: Sequence[str]) -> list[Instruction]:
    return [
        i for member in members if member.tag.op.name.rpartition(".")[2] == op for i in member.instructions if i.opcode in opcodes
    ]
