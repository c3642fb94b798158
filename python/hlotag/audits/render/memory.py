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
        key, rows = title_of(group), audit.memory_by(group)
        longest = max(row.bytes for row in rows) or 1
        yield f"<h3>{escape(key)}</h3><table><tbody>"
        for row in rows[:_LINES]:
            name = f"<code>{escape(row.value)}</code> {escape(row.phase)}" if row.key else f"{escape(row.value)}"
            name = name if row.value else f"without {escape(key)} {escape(row.phase)}"
            meaning = f' title="{escape(MEANINGS[row.value])}"' if not row.key else ""
            bar = f'<rect width="{1000 * row.bytes / longest:.0f}" height="10"/>'
            bar = f'<svg viewBox="0 0 1000 10" width="240" height="10">{bar}</svg>'
            yield f"<tr><td{meaning}>{name}</td><td>{bar}</td><td>{in_bytes(row.bytes)}</td></tr>"
        yield "</tbody></table>"
    yield "</section>"
