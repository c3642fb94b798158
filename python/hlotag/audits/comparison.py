# SPDX-License-Identifier: Apache-2.0
"""What does a program do more than another one? Flops, bytes, communication and memory, by tag, scope or line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlotag._text import in_bytes, in_work
from hlotag.audits.grouping import Grouping, make_reader, read_values, title_of
from hlotag.audits.memory import sum_rows
from hlotag.audits.report import Reported
from hlotag.audits.work import sum_work_rows


class Amounts(NamedTuple):
    """The work and memory of a row, on one device.

    Attributes:
        flops: Floating-point operations in a run.
        bytes: Those written, and read from places that other values choose, in a run.
        exchanged: The results of collectives, in bytes, in a run.
        memory: Bytes at the program's peak; 0 if one of the audits has no memory.
    """

    flops: int = 0
    bytes: int = 0
    exchanged: int = 0
    memory: int = 0

    def in_words(self) -> tuple[str, ...]:
        """Each amount with its unit."""
        return in_work(self.flops, 0) or "0", *(in_bytes(amount) for amount in self[1:])


@dataclass(frozen=True)
class Difference:
    """A row that differs between two programs.

    Attributes:
        key: What the rows are grouped by: a key, "source", "scope:2". Empty for the whole program, and for no operation.
        value: The value; empty for the whole program, and for operations without the key.
        phase: The phase; empty without a key.
        before: Its work and memory in the other program.
        now: Its work and memory.
    """

    key: str
    value: str
    phase: str
    before: Amounts
    now: Amounts

    @property
    def name(self) -> str:
        """What differs: `layer=3, backward`."""
        if not self.key:
            return self.value or "program"
        return f"{f'{self.key}={self.value}' if self.value else f'without {self.key}'}, {self.phase}"

    def changes(self) -> dict[str, str]:
        """What changed, in words, by the name of the amount: `{"flops": "1 Mflop -> 2 Mflop (+100%)"}`."""
        found = zip(Amounts._fields, self.before, self.now, self.before.in_words(), self.now.in_words(), strict=True)
        return {name: f"{was} -> {words}{_ratio(before, now)}" for name, before, now, was, words in found if before != now}

    def __str__(self) -> str:
        """One line."""
        return f"{self.name}: {', '.join(f'{name} {change}' for name, change in self.changes().items())}"


def _ratio(before: int, now: int) -> str:
    return f" ({now / before - 1:+.1%})" if before and now else ""


def compare(now: Reported, before: Reported, by: Grouping | None = None) -> list[Difference]:
    """Compares the work of two programs, and their memory if both audits have it.

    Args:
        now: An audit.
        before: The audit of the other program, such as an earlier version.
        by: As for `Audit.work_by`. By default, each key that both programs have, or "scope" if they have none in common.

    Returns:
        The rows that differ, that of the whole program first, then those that differ most.

    Raises:
        ArgumentError: A key of `by` is in none of the programs.

    Examples:
        >>> def f(x, power):
        ...     with hlotag.tagged({"layer": "1"}):
        ...         return x @ x if power == 2 else x @ x @ x
        >>> x = jnp.ones((64, 64))
        >>> with hlotag.stage():
        ...     before, now = hlotag.audit(lambda x: f(x, 2), x), hlotag.audit(lambda x: f(x, 3), x)
        >>> print(hlotag.audits.compare(now, before)[1])
        layer=1, forward: flops 524 kflop -> 1.05 Mflop (+100.0%), bytes 16.0 KiB -> 32.0 KiB (+100.0%)
    """
    groups = [by] if by is not None else [key for key in now.keys if key in before.keys] or ["scope"]
    keys = [*now.keys, *before.keys]
    has_memory = now.memory is not None and before.memory is not None
    rows: dict[tuple[str, str, str], Difference] = {}
    for group in groups:
        found = [_sum_amounts(audit, group, keys, has_memory=has_memory) for audit in (before, now)]
        for place in dict.fromkeys([*found[0], *found[1]]):
            rows[place] = Difference(*place, found[0].get(place, Amounts()), found[1].get(place, Amounts()))
    program = Difference("", "", "", *(_total(audit, has_memory=has_memory) for audit in (before, now)))
    differing = [program, *sorted(rows.values(), key=_size)]
    return [row for row in differing if row.before != row.now]


def _size(row: Difference) -> tuple[int, ...]:
    """Sorts rows with keys before others, and those that differ most before others."""
    return not row.key, *(-abs(now - before) for before, now in zip(row.before, row.now, strict=True))


def _sum_amounts(audit: Reported, by: Grouping, keys: Sequence[str], *, has_memory: bool) -> dict[tuple[str, str, str], Amounts]:
    title, read = title_of(by), make_reader(by, read_values(audit), audit.name, keys)
    work = sum_work_rows(audit, title, read)
    found = {(row.key, row.value, row.phase): Amounts(row.flops, row.bytes, row.exchanged) for row in work}
    for row in sum_rows(audit.memory, title, audit.ops, read) if has_memory and audit.memory else ():
        place = row.key, row.value, row.phase
        found[place] = found.get(place, Amounts())._replace(memory=row.bytes)
    return found


def _total(audit: Reported, *, has_memory: bool) -> Amounts:
    work = audit.work_by("operation")
    flops, size, exchanged = (sum(getattr(row, name) for row in work) for name in ("flops", "bytes", "exchanged"))
    return Amounts(flops, size, exchanged, audit.memory.bytes if has_memory and audit.memory else 0)
