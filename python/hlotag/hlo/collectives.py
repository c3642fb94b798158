# SPDX-License-Identifier: Apache-2.0
"""What does a collective exchange, and among how many devices?"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from hlotag.hlo import opcodes
from hlotag.hlo.module import Instruction
from hlotag.hlo.replica_groups import list_groups
from hlotag.hlo.shapes import bytes_of


class Collective(NamedTuple):
    """A collective, or an end of its asynchronous pair.

    Attributes:
        opcode: Without "-start" and "-done": "all-gather".
        start: The name of the instruction that starts it: the end of a pair names the start, others themselves.
        group: How many devices exchange values; 0 if the instruction does not say, which is all devices.
        parts: Of a combined collective, the bytes of each operand.
    """

    opcode: str
    start: str
    group: int
    parts: tuple[int, ...] = ()


def read_collective(instruction: Instruction) -> Collective | None:
    """What an instruction says of the collective that it is; None for other instructions."""
    if not _may_exchange(instruction.opcode) or not (opcode := opcodes.collective_of(instruction)):
        return None
    start = instruction.operands[0] if instruction.opcode.endswith("-done") and instruction.operands else instruction
    inner = [called.root for called in start.called] if start.opcode.startswith("async-") else []
    exchanging = (inner or [start])[0]
    return Collective(opcode, start.name, _group_of(exchanging), _parts_of(exchanging))


def _parts_of(instruction: Instruction) -> tuple[int, ...]:
    if len(instruction.operand_ids) < 2 or instruction.opcode.startswith("collective-permute"):
        return ()  # Further operands of a permutation are buffers and places in them.
    return tuple(bytes_of(operand.proto.shape) for operand in instruction.operands)


def find_starts(order: Iterable[Instruction]) -> dict[str, str]:
    """Finds by name what starts the collectives that TPU's compiler runs beside others, as parts of several fusions.

    The fusions of such a collective have it once each, with one `chain_id`. `order` is that in which instructions run.
    """
    first: dict[tuple[str, str], str] = {}
    found: dict[str, str] = {}
    for instruction in order:
        if opcodes.base(instruction.opcode) in opcodes.COLLECTIVES and (chain := instruction.attributes.get("chain_id")):
            found[instruction.name] = first.setdefault((instruction.opcode, chain), instruction.name)
    return found


@functools.cache
def _may_exchange(opcode: str) -> bool:
    """Asked of each instruction of a program, most of which exchange nothing."""
    return opcode.startswith("async-") or opcodes.base(opcode) in opcodes.COLLECTIVES


def _group_of(instruction: Instruction) -> int:
    """The size of a group; of a permutation, the two devices of a pair."""
    if opcodes.base(instruction.opcode) == "collective-permute":
        return 2
    return max(map(len, list_groups(instruction)), default=0)
