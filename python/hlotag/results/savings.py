# SPDX-License-Identifier: Apache-2.0
"""How much memory would `jax.checkpoint` free? Counted on the values that only the backward pass of a tag still needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from hlotag._text import in_bytes, list_some
from hlotag._util.groups import group
from hlotag.results.buffers import Buffer, Memory
from hlotag.results.grouping import TAG, Reader, list_keys, make_reader, read_values

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

# Of the memory, the least part that is worth a line.
_LEAST = 0.01

_Place = tuple[str, str]  # the value of a key, and the phase


@dataclass(frozen=True)
class Saving:
    """What `jax.checkpoint` on the operations of a tag frees.

    Attributes:
        key: The key.
        value: The value; empty for `jax.checkpoint` on each value by itself.
        bytes: Limit of how much less memory the program needs.
        of: What it needs, `Memory.bytes`.
        rows: The instructions whose values are freed, largest first.
    """

    key: str
    value: str
    bytes: int
    of: int
    rows: tuple[str, ...]

    def __str__(self) -> str:
        """One line."""
        where = f"{self.key}={self.value}" if self.value else f"each {self.key}"
        size = f"{in_bytes(self.bytes)} of {in_bytes(self.of)}"
        return f"jax.checkpoint on {where} frees at most {size}: {list_some(self.rows)}"


def find_savings(audit: Audit) -> list[Saving]:
    """Finds what `jax.checkpoint` frees at the peak of memory, by key and value, most first.

    It frees what a forward operation made and only backward operations of its tag read later: these compute the value again. What
    a tag computes again in a backward pass that runs at the peak is there at the peak, so it does not count; of a loop, each trip
    computes its part again, so it does. The bytes are an upper bound: `jax.checkpoint` also keeps the inputs of what it is on.
    """
    memory = audit.memory
    if memory is None:
        return []
    values = read_values(audit)
    # XLA moves forward operations, such as the cosine for the derivative of a sine, into fusions of the backward pass.
    backward = {each.kernel for each in audit.instructions if "backward" in (each.phase, *each.phases)}
    in_loops = {each.name for each in audit.instructions if each.runs > 1 or each.under}

    def is_of_trips(buffer: Buffer) -> bool:
        """Whether a loop reads a part of the value in each trip: then each trip computes its own part again."""
        return not in_loops.isdisjoint(buffer.readers)

    found: list[Saving] = []
    for key in list_keys(values):
        read = make_reader(f"{TAG}{key}", values, audit.name)
        places = {
            each.name: [
                (read(audit.ops[n], scope), "backward" if each.kernel in backward else phase)
                for n, (scope, phase) in zip(each.owners, each.places, strict=True)
            ]
            for each in audit.instructions
        }

        def needed_by(buffer: Buffer, read: Reader = read, places: Mapping[str, Sequence[_Place]] = places) -> str:
            value = read(audit.ops[buffer.op], buffer.scope) if buffer.op >= 0 else ""
            return value if _is_for_backward(buffer, value, places) else ""

        freed = group((value, buffer) for buffer in memory.buffers if (value := needed_by(buffer)))
        running = {read(audit.ops[each.op], each.scope) for each in memory.buffers if each.phase == "backward"}
        running |= {value for value, phase in places.get(memory.peak, ()) if phase == "backward"}
        later = {value: [each for each in some if value not in running or is_of_trips(each)] for value, some in freed.items()}
        found += [_saving(memory, key, value, some) for value, some in later.items()]
        found += [_saving(memory, key, "", list(chain(*freed.values())))] if len(freed) > 1 and any(later.values()) else []
    return sorted((each for each in found if each.bytes >= _LEAST * each.of), key=lambda each: -each.bytes)


def _is_for_backward(buffer: Buffer, value: str, places: Mapping[str, Sequence[_Place]]) -> bool:
    """Whether a forward operation made a value, and only the backward pass of the tag's value reads it later."""
    readers = {place for reader in buffer.readers for place in places.get(reader, [("", "")])}
    later = {place for place in readers if place[1] != "forward"}
    return bool(value) and buffer.phase == "forward" and later == {(value, "backward")}


def _saving(memory: Memory, key: str, value: str, freed: Sequence[Buffer]) -> Saving:
    rows = dict.fromkeys(buffer.name for buffer in freed)
    return Saving(key, value, sum(buffer.bytes for buffer in freed), memory.bytes, tuple(rows))
