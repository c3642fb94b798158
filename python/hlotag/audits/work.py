# SPDX-License-Identifier: Apache-2.0
"""How much work has each tag, scope or line? Counted from instructions, so exact on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlotag.audits.grouping import Reader
from hlotag.audits.model import Findings, Instruction

ADDED = "added by XLA"


class Work(NamedTuple):
    """The work of the operations with one value, in one phase, in a run of the program on one device.

    Attributes:
        key: What the rows are grouped by: a key, "source", "scope:2". Empty for instructions of no operation.
        value: The value; empty for operations without the key. Without a key, "added by XLA".
        phase: The phase; empty without a key.
        flops: Their floating-point operations, loops included as far as XLA knows their trips.
        bytes: What they write, and read from places that other values choose.
        exchanged: The results of their collectives, in bytes.
    """

    key: str
    value: str
    phase: str
    flops: int
    bytes: int
    exchanged: int


def sum_work_rows(audit: Findings, by: str, read: Reader) -> list[Work]:
    """Sums the work of the instructions by the value that `read` gives; `by` is what the rows are called."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for each in audit.instructions:
        for place, work in zip(_places(audit, each, by, read), _divide(each), strict=True):
            row = sums.setdefault(place, [0, 0, 0])
            for number, amount in enumerate(work):
                row[number] += amount
    found = [Work(*place, *work) for place, work in sums.items() if any(work)]
    return sorted(found, key=lambda row: (not row.key, -row.flops, -row.bytes))


def _places(audit: Findings, instruction: Instruction, by: str, read: Reader) -> Iterator[tuple[str, str, str]]:
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
