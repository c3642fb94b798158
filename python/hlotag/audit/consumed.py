# SPDX-License-Identifier: Apache-2.0
"""Which tags did XLA's own passes read and remove? Compares the modules before and after such a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hlotag.tagging import keys

# Takes `_scheduling_group_id` from what XLA then schedules as a group without it, or not as one.
PASS = "legalize-scheduling-annotations"


def consumed(passes: Sequence[tuple[str, Mapping[Any, Sequence[int]]]]) -> dict[tuple[int, str], str]:
    """Finds the keys that XLA removed after reading them: their instructions stayed without them.

    Args:
        passes: In order: a pass, and the operations that the instructions of the module it left are named after.

    Returns:
        By operation and key, the last such pass.
    """
    found: dict[tuple[int, str], str] = {}
    for (_, before), (name, after) in pairwise(passes):
        left: dict[tuple[str, str], Mapping[str, str]] | None = None
        for instruction, numbers in before.items():
            borne = [key for key in instruction.attributes if keys.is_taken(key)] if numbers else []
            if not borne:
                continue
            if left is None:
                left = {(i.name, i.opcode): i.attributes for i in after}
            entries = left.get((instruction.name, instruction.opcode))
            gone = [key for key in borne if entries is not None and key not in entries]
            found.update({(number, key): name for key in gone for number in numbers})
    return found
