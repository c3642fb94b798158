# SPDX-License-Identifier: Apache-2.0
"""A profile as a table in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import in_bytes, printable, rate_in_words
from hlotag._util.columns import columns
from hlotag._util.groups import group
from hlotag.reports import breakdown, memory
from hlotag.reports.audit_table import WIDE, fit_rows, plain_text
from hlotag.reports.breakdown import Column
from hlotag.results.times import ADDED, Hot

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile

# Limit of listed instructions.
_HOT = 10


def as_text(profile: Profile, width: int | None = None) -> str:
    """Renders a profile without colours; `width` is that of `columns()` by default."""
    width = width or columns()
    return plain_text(renderable(profile, width), width)


def renderable(profile: Profile, width: int) -> RenderableType:
    """Renders a profile for rich: the sentence, a table for each key, and the instructions that take most time."""
    unit = _Unit(profile.total_seconds)
    parts: list[RenderableType] = [Text(printable(profile.sentence), "bold")]
    for found in profile.break_down():
        more = [*_rates(profile, found.title), *_exposed(unit, profile, found.title)]
        parts.append(breakdown.table(found, unit, unit.name, whole="step", width=width, more=more))
    if profile.transfers:
        parts.append(_communication(unit, profile, width))
    if profile.program and profile.program.audit.memory:
        parts.append(memory.renderable(profile.program.audit, profile.groupings, width))
    if profile.instructions:
        parts.append(_hottest(unit, profile, width))
    return Group(*parts, *(Text(printable(f"note: {note}"), "dim") for note in profile.notes))


class _Unit:
    """The unit of a profile's tables: thousandths of a step have two digits at least."""

    def __init__(self, total: float) -> None:
        self.name, self._factor = next(((n, f) for n, f in (("s", 1.0), ("ms", 1e-3)) if total >= f), ("us", 1e-6))
        self._digits = 1 if total / self._factor >= 100 else 2 if total / self._factor >= 10 else 3

    def __call__(self, seconds: float) -> str:
        return f"{seconds / self._factor:.{self._digits}f}"


def operation_in_words(hot: Hot) -> str:
    """The operation of an instruction: `dot_general f32[8,8] and 2 more`."""
    more = f" and {hot.more} more" if hot.more else ""
    return f"{hot.operation}{more}" if hot.operation else ADDED


def _rates(profile: Profile, key: str) -> Iterator[Column]:
    """Yields the columns of flops and bytes a second, and of shares of the device's limits, if these are known."""
    rates = profile.rates(key)
    yield Column("flop/s", {value: rate_in_words(each.flops_per_second) for value, each in rates.items()}, is_optional=True)
    yield Column("B/s", {value: rate_in_words(each.bytes_per_second) for value, each in rates.items()}, is_optional=True)
    if profile.limits:
        yield Column("of limit", {value: each.of_limit for value, each in rates.items()}, is_optional=True)


def _exposed(unit: _Unit, profile: Profile, key: str) -> Iterator[Column]:
    """Yields the column of communication, by value; none if there is none."""
    if profile.transfers:
        rows = group((row.value, row.exposed) for row in profile.rows if row.key == key and row.exposed)
        yield Column("exposed", {value: unit(sum(seconds)) for value, seconds in rows.items()})


def _communication(unit: _Unit, profile: Profile, width: int) -> Table:
    """The collectives: how long they took, on which device longest, and how much of that the device waited or communicated."""
    wide, spread = width >= WIDE, len(profile.devices) > 1
    numbers = {"bytes": 9, "devices": 7, unit.name: 9}
    numbers |= {"min": 9, "max": 9} if spread and wide else {}
    numbers |= ({"waiting": 9} if spread else {}) | {"exposed": 9}
    texts = {"slowest": 14} if spread else {}
    texts |= {"tags": 20} if any(each.tags for each in profile.transfers) else {}
    texts |= {"operation": 26, "phase": 10, "source": 20, "scope": max(16, width - 158)} if wide else {}
    texts = texts if "tags" in texts or wide else texts | {"operation": 20}
    limits = {"collective": 24} | numbers | texts
    rows = []
    for each in profile.transfers[:_HOT]:
        name = each.name if each.collective in each.name else f"{each.name} ({each.collective})"
        cells = {"collective": name, "bytes": in_bytes(each.bytes), "devices": str(each.group or "all")}
        cells |= {unit.name: unit(each.seconds), "min": unit(each.least), "max": unit(each.most)}
        cells |= {"waiting": unit(each.waiting), "exposed": unit(each.exposed), "slowest": each.slowest}
        cells |= {
            "tags": ", ".join(each.tags),
            "operation": each.operation,
            "phase": each.phase,
            "source": each.source,
            "scope": each.scope,
        }
        rows.append([cells[column] for column in limits])
    return fit_rows(limits, rows, width, numbers=set(numbers))


def _hottest(unit: _Unit, profile: Profile, width: int) -> Table:
    wide = width >= WIDE
    limits = {"instruction": 18, unit.name: 9, "operation": 26 if wide else 20, "phase": 10, "source": 20 if wide else 16}
    limits |= {"tags": max(22, width - 98)} if wide else {}
    rows = [
        (hot.name, unit(hot.seconds), operation_in_words(hot), hot.phase, hot.source, ", ".join(hot.tags))
        for hot in profile.instructions[:_HOT]
    ]
    return fit_rows(limits, rows, width, numbers={unit.name})
