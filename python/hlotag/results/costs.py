# SPDX-License-Identifier: Apache-2.0
"""What do the operations with one tag, scope or line cost? Counted by XLA, so exact on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from hlotag.results.buffers import ADDED, Memory
from hlotag.results.grouping import Reader
from hlotag.results.tags import Instruction

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit


class Cost(NamedTuple):
    """What the operations with one value cost in one phase, in a run of the program on one device.

    Attributes:
        key: What the rows are grouped by: a key, "source", "scope:2". Empty for what is of no operation.
        value: The value; empty for operations without the key. Without a key, "added by XLA", "arguments", "outputs", ...
        phase: The phase; empty without a key.
        flops: Floating-point operations, loops included as far as XLA knows their trips.
        bytes: What is written, and read from places that other values choose.
        exchanged: The results of collectives, in bytes.
        memory: What is in memory at the peak, in bytes; 0 if the audit has no memory.
        values: How many values `memory` is. An array of a scan's 24 layers counts as 24.
    """

    key: str
    value: str
    phase: str
    flops: int
    bytes: int
    exchanged: int
    memory: int
    values: int


_Place = tuple[str, str, str]


def sum_costs(audit: Audit, by: str, read: Reader) -> list[Cost]:
    """Sums the costs by the value that `read` gives; `by` is what the rows are called. Most flops are first."""
    sums: dict[_Place, list[int]] = {}
    for place, amounts in (*_list_work(audit, by, read), *(_list_memory(audit, audit.memory, by, read) if audit.memory else ())):
        row = sums.setdefault(place, [0] * len(amounts))
        for number, amount in enumerate(amounts):
            row[number] += amount
    found = [Cost(*place, *amounts) for place, amounts in sums.items() if any(amounts)]
    return sorted(found, key=lambda row: (not row.key, -row.flops, -row.bytes, -row.memory))


def _list_work(audit: Audit, by: str, read: Reader) -> Iterator[tuple[_Place, tuple[int, ...]]]:
    """The row and the work of each operation of each instruction."""
    for each in audit.instructions:
        for place, amounts in zip(_places(audit, each, by, read), _divide(each), strict=True):
            yield place, (*amounts, 0, 0)


def _places(audit: Audit, instruction: Instruction, by: str, read: Reader) -> Iterator[_Place]:
    """The row of each operation that an instruction's work belongs to; one row for an instruction of none."""
    if not instruction.owners:
        yield "", ADDED, ""
    for owner, (scope, phase) in zip(instruction.owners, instruction.places, strict=True):
        yield by, read(audit.ops[owner], scope), phase


def _divide(instruction: Instruction) -> Iterator[tuple[int, ...]]:
    """Divides flops, bytes and exchanged bytes among the operations of an instruction."""
    exchanged = instruction.bytes if instruction.collective and instruction.start == instruction.name else 0
    amounts = [amount * instruction.runs for amount in (instruction.flops, instruction.bytes, exchanged)]
    if not instruction.owners:
        return iter([tuple(amounts)])
    return zip(*map(instruction.divide, amounts), strict=True)


def _list_memory(audit: Audit, memory: Memory, by: str, read: Reader) -> Iterator[tuple[_Place, tuple[int, ...]]]:
    """The row and the memory of each buffer."""
    for buffer in memory.buffers:
        place = ("", buffer.kind, "") if buffer.kind else (by, read(audit.ops[buffer.op], buffer.scope), buffer.phase)
        yield place, (0, 0, 0, buffer.bytes, buffer.values)
