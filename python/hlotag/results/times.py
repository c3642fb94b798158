# SPDX-License-Identifier: Apache-2.0
"""A profile by tag: rows of seconds for each value and phase, and what is in no row of a tag."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hlotag._text import list_some, rate_in_words

# The rows for time outside the program's operations, in the order of a table.
UNDIVIDED = "undivided"
ADDED = "added by XLA"
OTHERS = "other programs"
GRAPHS = "command buffers"
UNNAMED = "without a name"
NOTHING = "idle"

MEANINGS = {
    UNDIVIDED: "Instructions that hold a branch, or a loop of unknown trips, and work of other rows too: the trace has one event "
    "for all of it.",
    ADDED: "Instructions that XLA added, such as copies.",
    OTHERS: "Instructions of other programs.",
    GRAPHS: "Kernels of command buffers that have a library's name, such as cuBLAS's; they have their instructions' names in a "
    "trace that was made with XLA_FLAGS=--xla_gpu_enable_command_buffer=.",
    UNNAMED: "Kernels and copies for which the trace names no instruction.",
    NOTHING: "Nothing ran on the device: launches, waiting, the host's own work.",
}

OTHER = "f32"
"""The type whose limit counts for what is no product."""
FAST = "f32-product"
"""A product of `f32` at default precision, which may have a limit of its own."""


@dataclass(frozen=True)
class Row:
    """The time of the operations with one value, in one phase.

    Attributes:
        key: The key of the tag, or what else the rows are grouped by: "source", "scope:2". Empty for time in no operation.
        value: The value; empty for operations without the key. Without a key, why the time is in no operation.
        phase: "forward", "backward", "recomputed" or "other"; empty without a key.
        seconds: The time of a step. Rows of one key, and those without a key, sum to `Profile.total_seconds`. Threads or streams
            that run at once have equal parts of the time.
        share: `seconds` relative to `Profile.total_seconds`.
        events: How many instructions ran in a step.
        split: How many of the seconds are parts of instructions that compute operations of other rows too.
        busy: The seconds that the instructions ran, whatever overlapped them.
        steps: `seconds` of each step.
        exposed: The seconds in which the device only ran collectives, these among them.
        flops: Floating-point operations of a step, on one device. An instruction in a loop counts once for each trip.
        bytes: What instructions read from memory and wrote to it in a step, each operand and result once. The bytes of an
            instruction of several rows are divided as its time.
        of_flops: The least time for the flops at the device's limits, relative to `seconds`; None if a limit is unknown.
        of_bandwidth: The bytes a second relative to the bandwidth of the device's memory; None if that is unknown.
    """

    key: str
    value: str
    phase: str
    seconds: float
    share: float
    events: float
    split: float = 0.0
    busy: float = 0.0
    steps: tuple[float, ...] = ()
    exposed: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    of_flops: float | None = None
    of_bandwidth: float | None = None

    @property
    def flops_per_second(self) -> float:
        """Flops a second of `seconds`, the time under the profiler."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes a second of `seconds`, the time under the profiler."""
        return self.bytes / self.seconds if self.seconds else 0.0


class Rates(NamedTuple):
    """The rates of the operations with one value, in all phases; the fields are as those of `Row`."""

    flops_per_second: float
    bytes_per_second: float
    of_flops: float | None
    of_bandwidth: float | None

    @property
    def of_limit(self) -> str:
        """The greater share of a limit: `62% flops`, `31% mem`; empty if no limit is known."""
        known = [(share, name) for share, name in ((self.of_flops, "flops"), (self.of_bandwidth, "mem")) if share is not None]
        share, name = max(known, default=(0.0, ""))
        return f"{share:.0%} {name}" if name else ""


@dataclass(frozen=True)
class Transfer:
    """A collective with its time.

    Attributes:
        name: The instruction; of an asynchronous pair, the one that starts it.
        collective: Its opcode: "all-gather".
        seconds: The time of a step from its start to its end, whatever overlapped it.
        exposed: The seconds of these in which the device computed nothing. Collectives that ran at once have equal parts.
        bytes: Those of its result on one device, for one execution.
        group: How many devices exchange values; 0 for all.
        events: How often it runs in a step.
        waiting: The seconds of `seconds` in which the device waited for another one to start it; bytes move in the rest. 0 if the
            trace lacks a device of the group.
        exposed_waiting: The seconds of `exposed` in which it waited.
        least: `seconds` of the device that is in it for the shortest time.
        most: `seconds` of the device that is in it for the longest time.
        slowest: The device that the others wait for most; empty if none waits.
        operation: Its operation, or the one that it serves: `dot_general f32[8,8]`; empty if unknown.
        phase: The phase of the operation.
        scope: The named scopes.
        file: The file; empty if unknown.
        line: The line; 0 if unknown.
        tags: The tags of its operations, `key=value`.
        independent: Seconds of a step in products that neither need its value nor make one that it needs: they could hide it.
        products: The instructions of these products, those with most time first.
    """

    name: str
    collective: str
    seconds: float
    exposed: float
    bytes: int
    group: int
    events: float
    waiting: float = 0.0
    exposed_waiting: float = 0.0
    least: float = 0.0
    most: float = 0.0
    slowest: str = ""
    operation: str = ""
    phase: str = ""
    scope: str = ""
    file: str = ""
    line: int = 0
    tags: tuple[str, ...] = ()
    independent: float = 0.0
    products: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """`file:line`, the file without its directory; empty if unknown."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""

    @property
    def overlap(self) -> str:
        """What could hide it, as a sentence; empty if there is nothing to hide, or nothing to hide it with."""
        if not self.exposed or not self.independent:
            return ""
        of = f" of {', '.join(self.tags)}" if self.tags else ""
        other = f"{in_words(self.independent)} of independent products could overlap it: {list_some(self.products)}"
        return f"{self.name}{of} is exposed {in_words(self.exposed)}; {other}"


@dataclass(frozen=True)
class Hot:
    """An instruction with its time.

    Attributes:
        name: The name.
        opcode: The opcode; empty if XLA added it.
        seconds: The time of a step, as in `Row`.
        share: `seconds` relative to `Profile.total_seconds`.
        events: How often it runs in a step.
        operation: Its operation with most work: `dot_general f32[8,8]`.
        more: How many other operations it computes.
        phase: The phase of `operation`.
        file: The file of `operation`; empty if unknown.
        line: The line; 0 if unknown.
        tags: The tags of its operations, `key=value`.
    """

    name: str
    opcode: str
    seconds: float
    share: float
    events: float
    operation: str = ""
    more: int = 0
    phase: str = ""
    file: str = ""
    line: int = 0
    tags: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """`file:line`, the file without its directory; empty if unknown."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""


def in_words(seconds: float) -> str:
    """Formats a time: `1.25 ms`."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= 0.9995 * factor:  # What three digits round up.
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if seconds else "0"


@dataclass(frozen=True)
class Limits:
    """The most that a device can do.

    Attributes:
        name: The kind of the device, as `jax.Device.device_kind` says it.
        flops: By type of a product's operands, flops a second: "bf16", "f16", "f8", "s8", "f64"; "f32-product" for a product of
            `f32` at default precision; "f32" for one at a higher precision, and for what is no product.
        bandwidth: Bytes a second from and to the device's memory.
        source: Where the figures are from.
    """

    name: str
    flops: Mapping[str, float]
    bandwidth: float
    source: str = ""

    def __str__(self) -> str:
        """One line."""
        flops = ", ".join(f"{rate_in_words(rate)}flop/s of {kind}" for kind, rate in self.flops.items())
        return f"{self.name}: {flops}; {rate_in_words(self.bandwidth)}B/s of memory; {self.source}"

    def seconds_for(self, flops: Mapping[str, float]) -> float | None:
        """The least time for flops of several types; None if the limit of one is unknown."""
        seconds = 0.0
        for kind, number in flops.items():
            limit = self.flops.get(kind) or (self.flops.get(OTHER) if kind == FAST else None)
            if limit is None:
                return None
            seconds += number / limit
        return seconds
