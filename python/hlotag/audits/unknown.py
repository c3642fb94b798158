# SPDX-License-Identifier: Apache-2.0
"""What does a module not say of its work?"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hlotag._text import count, list_some
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.trips import Trips


def note_unknown_work(module: HloModule) -> list[str]:
    """Returns notes that name the loops of unknown trips in a module that runs."""
    trips = Trips(module)
    loops = [i for i in module.instructions() if i.opcode == "while" and trips.of(i) is None]
    if not loops:
        return []
    return [f"{count(len(loops), 'loop')} of unknown trips: {_list(loops)}. Their work is that of one trip."]


def _list(instructions: Sequence[Instruction]) -> str:
    return list_some(list(map(_with_source, instructions)))


def _with_source(instruction: Instruction) -> str:
    source = instruction.source
    return f"{instruction.name} ({os.path.basename(source[0])}:{source[1]})" if source else instruction.name
