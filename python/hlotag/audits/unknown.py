# SPDX-License-Identifier: Apache-2.0
"""What does a module not say of its work?"""

from __future__ import annotations

import os

from hlotag._text import count, list_some
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.trips import Trips
from hlotag.hlo.work import find_unknown_flops


def note_unknown_work(module: HloModule) -> list[str]:
    """Returns notes that name the loops of unknown trips, and the custom calls of unknown flops, in a module that runs."""
    return [*_note_loops(module), *note_unknown_flops(module)]


def note_unknown_flops(module: HloModule) -> list[str]:
    """Returns a note that names the custom calls of unknown flops; none if there are no such calls."""
    names = dict.fromkeys(_with_source(call.proto.custom_call_target, call) for call in find_unknown_flops(module))
    return [f"No flops are counted for custom calls: {list_some(list(names))}."] if names else []


def _note_loops(module: HloModule) -> list[str]:
    trips = Trips(module)
    loops = [i for i in module.instructions() if i.opcode == "while" and trips.of(i) is None]
    if not loops:
        return []
    names = list_some([_with_source(loop.name, loop) for loop in loops])
    return [f"{count(len(loops), 'loop')} of unknown trips: {names}. Their work is that of one trip."]


def _with_source(name: str, instruction: Instruction) -> str:
    source = instruction.source
    return f"{name} ({os.path.basename(source[0])}:{source[1]})" if source else name
