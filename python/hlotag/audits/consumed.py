# SPDX-License-Identifier: Apache-2.0
"""Which tags did XLA's own passes read and remove? Compares the modules before and after such a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hlotag.tagging import keys

# These passes schedule groups, run products inside collectives, run calls on their own streams, and move values between memories.
# Their output lacks the key.
PASSES = (
    "async-collective-fusion",
    "legalize-scheduling-annotations",
    "explicit-stream-annotation-async-wrapper",
    "convert-memory-placement-to-internal-annotations",
)


def consumed(passes: Sequence[tuple[str, Mapping[Any, Sequence[int]]]]) -> dict[tuple[int, str], str]:
    """Finds the keys that XLA removed after reading them. Their operation stayed without the key, or lost its name too.

    Args:
        passes: Passes in order, each with the module that it left: by instruction, the operations that it is named after.

    Returns:
        By operation and key, the last pass that removed the key.
    """
    found: dict[tuple[int, str], str] = {}
    for (_, before), (name, after) in pairwise(passes):
        if name not in PASSES:
            continue
        tagged = {(n, i.opcode, key) for i, numbers in before.items() for key in i.entries for n in numbers}
        left: dict[tuple[int, str], list[Mapping[str, str]]] = {}
        for instruction, numbers in after.items():
            for number in numbers:
                left.setdefault((number, instruction.opcode), []).append(instruction.entries)
        for number, opcode, key in tagged:
            if keys.is_taken(key) and any(key not in entries for entries in left.get((number, opcode), [{}])):
                found[number, key] = name
    return found
