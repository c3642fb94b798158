# SPDX-License-Identifier: Apache-2.0
"""The memory of a device when a program needs most of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# The kinds of memory that no operation has.
ARGUMENTS, OUTPUTS, CONSTANTS, ADDED, UNUSED = "arguments", "outputs", "constants", "added by XLA", "unused at the peak"
MEANINGS = {
    ARGUMENTS: "The program's arguments; outputs that donated ones become are in these.",
    OUTPUTS: "The program's results.",
    CONSTANTS: "Constants of the program.",
    ADDED: "Values that XLA added, such as copies.",
    UNUSED: "What XLA reserves and nothing occupies at the peak: gaps, and what other moments need.",
}


class Buffer(NamedTuple):
    """Memory that a value occupies when the program needs most.

    Attributes:
        name: The instruction that makes the value; of an argument, the parameter.
        bytes: How much it occupies.
        kind: Empty for a value of an operation, else what it is: "arguments", "outputs".
        op: The id of the operation; -1 for none.
        scope: The named scopes of the instruction.
        phase: Its phase; empty without an operation.
        type: Its type, `f32[8,128]`. A value that a loop stores in each trip has all of these in one buffer.
        values: How many values of the operation it has room for: of a scan over 24 layers, 24.
        readers: The instructions that read the value, past moves; empty without an operation.
        read_at: The position of each reader in the schedule; -1 if it is unknown.
    """

    name: str
    bytes: int
    kind: str = ""
    op: int = -1
    scope: str = ""
    phase: str = ""
    type: str = ""
    values: int = 1
    readers: tuple[str, ...] = ()
    read_at: tuple[int, ...] = ()


class Life(NamedTuple):
    """A temporary value with the part of the schedule in which it is live.

    Attributes:
        buffer: The value, with its own size.
        start: The first position in the schedule.
        end: The last position.
    """

    buffer: Buffer
    start: int
    end: int


@dataclass(frozen=True)
class Memory:
    """A device's memory when a program needs most of it.

    Attributes:
        bytes: What XLA reserves on the device: arguments, outputs, constants and temporary values.
        host: What it reserves in the host's memory for values that the program offloads.
        on_chip: What it reserves in on-chip memory, as TPUs have.
        peak: The instruction that runs when temporary values need most.
        buffers: What occupies `bytes`, most first.
        peak_at: The position of `peak` in the schedule.
        lives: The temporary values of at least a thousandth of `bytes`, by start. Of values in one place, each ends where the
            next one starts.
    """

    bytes: int
    host: int
    on_chip: int
    peak: str
    buffers: tuple[Buffer, ...]
    peak_at: int = 0
    lives: tuple[Life, ...] = ()
