# SPDX-License-Identifier: Apache-2.0
"""What is in memory at the peak, as tables in a terminal and bars on a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import in_bytes, list_some, printable
from hlotag.reports import breakdown
from hlotag.reports.audit_table import WIDE, fit_rows
from hlotag.reports.drawing import COLOURS, Area, Bars, Drawing, Label, Line
from hlotag.results.breakdown import Breakdown, break_down
from hlotag.results.buffers import ADDED, MEANINGS, UNUSED, Life, Memory
from hlotag.results.grouping import Grouping, make_reader, read_values, title_of

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

# Limit of listed buffers.
_BUFFERS = 10
_WIDTH, _HEIGHT, _STEPS = 900, 220, 450  # of a drawing, and how many columns it has


def sentence(memory: Memory) -> str:
    """The result in one sentence."""
    others = (memory.host, "in host memory"), (memory.on_chip, "in on-chip memory")
    more = [f"{in_bytes(size)} {where}" for size, where in others if size]
    beside = f", and {' and '.join(more)}" if more else ""
    return f"The program needs {in_bytes(memory.bytes)} on the device{beside}; most while {memory.peak or 'it starts'} runs."


def renderable(audit: Audit, by: Sequence[Grouping], width: int) -> RenderableType:
    """Renders the memory of an audit for rich: the sentence, a table for each grouping, and the largest buffers."""
    if audit.memory is None:
        return Text("")
    tables = (
        breakdown.table(found, _in_words, "bytes", whole="device", width=width, more=_column(values))
        for found, values in _break_down(audit, audit.memory, by)
    )
    return Group(Text(printable(sentence(audit.memory)), "bold"), *tables, _largest(audit, audit.memory, width))


def _break_down(audit: Audit, memory: Memory, by: Sequence[Grouping]) -> Iterator[tuple[Breakdown, Mapping[str, int]]]:
    """By grouping, the bytes, and the number of values of each row; no numbers if no loop keeps values."""
    has_stacks = any(buffer.values > 1 for buffer in memory.buffers)
    for group in by:
        found, title, values = [row for row in audit.costs_by(group) if row.memory], title_of(group), Counter[str]()
        for row in found:
            if has_stacks and row.key:
                values[row.value] += row.values
        yield break_down(title, ((row.key, row.value, row.phase, row.memory) for row in found)), values


def _column(values: Mapping[str, int]) -> list[breakdown.Column]:
    cells = {value: str(count) for value, count in values.items()}
    return [breakdown.Column("values", cells, is_optional=True)] if values else []


def _in_words(size: float) -> str:
    return in_bytes(int(size))


def _largest(audit: Audit, memory: Memory, width: int) -> Table:
    limits = {"buffer": 16, "bytes": 9, "contents": 18, "phase": 10, "source": 14}
    if width >= WIDE:
        limits |= {"contents": 26, "source": 20, "scope": max(16, width - 96)}
    rows = []
    for buffer in memory.buffers[:_BUFFERS]:
        op = audit.ops[buffer.op] if buffer.op >= 0 else None
        what = f"{op.name.rpartition('.')[2]} {buffer.type}" if op else buffer.kind
        what = f"{buffer.values} x {what}" if buffer.values > 1 else what
        cells = (buffer.name, in_bytes(buffer.bytes), what.strip(), buffer.phase)
        rows.append((*cells, op.source if op else "", buffer.scope))
    return fit_rows(limits, rows, width, numbers={"bytes"})


class Section(NamedTuple):
    """The section of a page.

    Attributes:
        sentence: The result.
        fixed: The size of what is in memory all the time.
        over_schedule: The temporary values over the schedule, and the peak; None if that is unknown.
        legend: That of the drawing: by class, the row.
        helps: What would help, with the numbers that say so.
        at_peak: What is in memory at the peak, by each grouping.
    """

    sentence: str
    fixed: str
    over_schedule: Drawing | None
    legend: Mapping[str, str]
    helps: Sequence[str]
    at_peak: Sequence[Bars]


def make_section(audit: Audit, by: Sequence[Grouping], opens: breakdown.Opens = ()) -> Section | None:
    """Makes the section of a page; None if the audit has no memory. `opens` is as for `breakdown.make_bars`."""
    memory = audit.memory
    if memory is None:
        return None
    at_peak = []
    for found, values in _break_down(audit, memory, by):
        notes = {value: f"{count} value{'s' if count > 1 else ''}" for value, count in values.items()}
        at_peak.append(breakdown.make_bars(found, _in_words, MEANINGS, notes, opens=opens))
    fixed = memory.bytes - sum(b.bytes for b in memory.buffers if b.op >= 0 or b.kind in (ADDED, UNUSED))
    drawing, legend = _draw_schedule(audit, memory, by[0]) if memory.lives else (None, {})
    return Section(sentence(memory), in_bytes(fixed), drawing, legend, [str(each) for each in audit.savings], at_peak)


def _draw_schedule(audit: Audit, memory: Memory, by: Grouping) -> tuple[Drawing, dict[str, str]]:
    """A drawing of the temporary values over the schedule, those of the largest rows apart, with the peak; and its legend."""
    read = make_reader(by, read_values(audit), audit.name)
    rows = [(read(audit.ops[b.op], b.scope) or f"without {title_of(by)}") if b.op >= 0 else ADDED for b, _, _ in memory.lives]
    weights = Counter[str]()
    for name, life in zip(rows, memory.lives, strict=True):
        weights[name] += life.buffer.bytes * (life.end - life.start + 1)
    named = [name for name, _ in weights.most_common(COLOURS)]
    places = {name: number for number, name in enumerate(named)}
    last = max(life.end for life in memory.lives) + 1
    series = _thin(_stack(memory.lives, [places.get(name, len(named)) for name in rows], len(named) + 1), last)
    most = max(map(sum, series.values()), default=0)
    names = [*named, *(["others"] if len(weights) > len(named) else [])]
    sizes = series[max((at for at in series if at <= memory.peak_at), default=min(series))]
    at_peak = Counter({name: sizes[number] for number, name in enumerate(names)})
    x = _WIDTH * memory.peak_at / last
    drawing = Drawing(
        "Memory over the schedule",
        _answer(memory, last, at_peak),
        _WIDTH,
        _HEIGHT + 16,
        areas=[Area(f"c{number}", _area(series, number, last, most), name) for number, name in enumerate(names)],
        lines=[Line("peak", x, 0, x, _HEIGHT, memory.peak)],
        labels=[
            Label(in_bytes(most), 2, 12, "tick"),
            Label("0", 2, _HEIGHT + 13, "tick"),
            Label(str(last), _WIDTH - 2, _HEIGHT + 13, "tick end"),
        ],
    )
    return drawing, {f"c{number}": name for number, name in enumerate(names)}


def _answer(memory: Memory, last: int, at_peak: Counter[str]) -> str:
    """What the drawing shows, as a sentence."""
    largest = list_some([f"{in_bytes(size)} of {name}" for name, size in at_peak.most_common() if size])
    return f"At position {memory.peak_at} of {last}, the peak, temporary values need {in_bytes(at_peak.total())}: {largest}."


def _stack(lives: Sequence[Life], places: Sequence[int], count: int) -> dict[int, list[int]]:
    """By position at which something changes, the bytes of each row from there on."""
    changes: dict[int, list[int]] = {}
    for life, place in zip(lives, places, strict=True):
        for at, size in ((life.start, life.buffer.bytes), (life.end + 1, -life.buffer.bytes)):
            changes.setdefault(at, [0] * count)[place] += size
    now, found = [0] * count, {}
    for at in sorted(changes):
        now = [before + change for before, change in zip(now, changes[at], strict=True)]
        found[at] = now
    return found


def _thin(series: Mapping[int, list[int]], last: int) -> dict[int, list[int]]:
    """Of the positions that share a column of a drawing, those with most bytes."""
    found: dict[int, tuple[int, list[int]]] = {}
    for at, sizes in series.items():
        column = at * _STEPS // last
        if column not in found or sum(sizes) > sum(found[column][1]):
            found[column] = at, sizes
    return dict(found.values())


def _area(series: Mapping[int, Sequence[int]], row: int, last: int, most: int) -> str:
    """The path of a row's area on top of those before it: to the right along the upper edge, and back along the lower one."""
    if not series:
        return ""
    spans = list(zip(series, [*list(series)[1:], last], strict=True))
    edges: list[tuple[float, int]] = []
    for below, some in ((row + 1, spans), (row, [(end, at) for at, end in reversed(spans)])):
        for at, end in some:
            height = _HEIGHT * (1 - sum(series[min(at, end)][:below]) / most)
            if edges and f"{edges[-1][0]:.1f}" == f"{height:.1f}":
                edges[-1] = height, end
            else:
                edges.append((height, end))
    steps = (f"V{height:.1f}H{_WIDTH * end / last:.1f}" for height, end in edges)
    return f"M{_WIDTH * min(series) / last:.1f},{_HEIGHT}{''.join(steps)}Z"
