# SPDX-License-Identifier: Apache-2.0
"""What is in memory at the peak, as tables in a terminal and bars on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import in_bytes, printable
from hlotag.audits.buffers import Memory
from hlotag.audits.grouping import Grouping, title_of
from hlotag.audits.memory import MEANINGS, Row
from hlotag.audits.model import PHASES
from hlotag.audits.render.bars import NONE, bar, legend
from hlotag.audits.report import Reported

# Limit of listed values and buffers.
_LINES, _BUFFERS = 40, 10


def sentence(memory: Memory) -> str:
    """The result in one sentence."""
    others = (memory.host, "in host memory"), (memory.on_chip, "on the chip")
    more = [f"{in_bytes(size)} {where}" for size, where in others if size]
    beside = f", and {' and '.join(more)}" if more else ""
    return f"The program needs {in_bytes(memory.bytes)} on the device{beside}; most while {memory.peak or 'it starts'} runs."


def renderable(audit: Reported, by: Sequence[Grouping]) -> RenderableType:
    """Renders the memory of an audit for rich: the sentence, a table for each grouping, and the largest buffers."""
    if audit.memory is None:
        return Text("")
    parts: list[RenderableType] = [Text(printable(sentence(audit.memory)), "bold")]
    parts += [_table(audit.memory, title_of(group), audit.memory_by(group)) for group in by]
    return Group(*parts, _largest(audit, audit.memory))


def _table(memory: Memory, key: str, rows: Sequence[Row]) -> Table:
    phases = [phase for phase in PHASES if any(row.phase == phase for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(printable(key), overflow="fold")
    for column in (*phases, "bytes", "share"):
        table.add_column(column, justify="right", no_wrap=True)
    values = list(dict.fromkeys(row.value for row in rows if row.key))
    for value in sorted(values, key=lambda value: (not value, -_size(rows, value)))[:_LINES]:
        found = [sum(row.bytes for row in rows if row.key and (row.value, row.phase) == (value, phase)) for phase in phases]
        name = Text(printable(value)) if value else Text(f"without {printable(key)}", "dim")
        cells = (in_bytes(size) if size else "·" for size in found)
        table.add_row(name, *cells, in_bytes(_size(rows, value)), _share(_size(rows, value), memory))
    for row in rows:
        if not row.key:
            table.add_row(Text(row.value, "dim"), *("" for _ in phases), in_bytes(row.bytes), _share(row.bytes, memory))
    table.add_row(Text("device", "dim"), *("" for _ in phases), in_bytes(memory.bytes), "100.0%")
    return table


def _size(rows: Sequence[Row], value: str) -> int:
    return sum(row.bytes for row in rows if row.key and row.value == value)


def _share(size: int, memory: Memory) -> str:
    return f"{size / memory.bytes:.1%}" if memory.bytes else "-"


def _largest(audit: Reported, memory: Memory) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("buffer", "bytes", "of", "phase", "source", "scope"):
        table.add_column(column, justify="right" if column == "bytes" else "left", overflow="ellipsis", no_wrap=True)
    for buffer in memory.buffers[:_BUFFERS]:
        op = audit.ops[buffer.op] if buffer.op >= 0 else None
        cells = (buffer.name, in_bytes(buffer.bytes), op.title if op else buffer.kind, buffer.phase)
        table.add_row(*(Text(printable(cell)) for cell in (*cells, op.source if op else "", buffer.scope)))
    return table


def html(audit: Reported, by: Sequence[Grouping]) -> Iterator[str]:
    """The section of a page."""
    if audit.memory is None:
        return
    yield f'<section id="memory"><h2>Memory</h2><p>{escape(sentence(audit.memory))}</p>'
    for group in by:
        yield from _bars(title_of(group), audit.memory_by(group), audit.memory)
    yield "</section>"


def _bars(key: str, rows: Sequence[Row], memory: Memory) -> Iterator[str]:
    phases = [phase for phase in PHASES if any(row.phase == phase for row in rows)]
    values = list(dict.fromkeys(row.value for row in rows if row.key))
    rest = [row for row in rows if not row.key]
    longest = max([_size(rows, value) for value in values] + [row.bytes for row in rest], default=0)

    def share(size: int) -> float:
        return size / memory.bytes if memory.bytes else 0.0

    yield f'<h3>{escape(key)}</h3>{legend(phases)}<ul class="bars">'
    for value in sorted(values, key=lambda value: (not value, -_size(rows, value)))[:_LINES]:
        name = f"<code>{escape(value)}</code>" if value else f"without {escape(key)}"
        segments = [(row.phase, row.bytes) for row in rows if row.key and row.value == value]
        yield bar(name, segments, longest, share(_size(rows, value)), lambda size: in_bytes(int(size)))
    for row in rest:
        title = escape(MEANINGS[row.value])
        yield bar(
            escape(row.value), [(NONE, row.bytes)], longest, share(row.bytes), lambda size: in_bytes(int(size)), title=title
        )
    yield "</ul>"
