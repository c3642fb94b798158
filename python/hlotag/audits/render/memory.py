# SPDX-License-Identifier: Apache-2.0
"""What is in memory at the peak, as tables in a terminal and bars on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import in_bytes, printable
from hlotag.audits.breakdown import Breakdown, break_down
from hlotag.audits.buffers import Memory
from hlotag.audits.grouping import Grouping, title_of
from hlotag.audits.memory import MEANINGS
from hlotag.audits.render import breakdown
from hlotag.audits.render.table import WIDE, fit_rows
from hlotag.audits.report import Reported

# Limit of listed buffers.
_BUFFERS = 10


def sentence(memory: Memory) -> str:
    """The result in one sentence."""
    others = (memory.host, "in host memory"), (memory.on_chip, "on the chip")
    more = [f"{in_bytes(size)} {where}" for size, where in others if size]
    beside = f", and {' and '.join(more)}" if more else ""
    return f"The program needs {in_bytes(memory.bytes)} on the device{beside}; most while {memory.peak or 'it starts'} runs."


def renderable(audit: Reported, by: Sequence[Grouping], width: int) -> RenderableType:
    """Renders the memory of an audit for rich: the sentence, a table for each grouping, and the largest buffers."""
    if audit.memory is None:
        return Text("")
    tables = (breakdown.table(found, _in_words, "bytes", whole="device", width=width) for found in _break_down(audit, by))
    return Group(Text(printable(sentence(audit.memory)), "bold"), *tables, _largest(audit, audit.memory, width))


def _break_down(audit: Reported, by: Sequence[Grouping]) -> Iterator[Breakdown]:
    for group in by:
        rows = ((row.key, row.value, row.phase, row.bytes) for row in audit.memory_by(group))
        yield break_down(title_of(group), rows)


def _in_words(size: float) -> str:
    return in_bytes(int(size))


def _largest(audit: Reported, memory: Memory, width: int) -> Table:
    limits = {"buffer": 16, "bytes": 9, "of": 18, "phase": 10, "source": 14}
    if width >= WIDE:
        limits |= {"of": 26, "source": 20, "scope": max(16, width - 96)}
    rows = []
    for buffer in memory.buffers[:_BUFFERS]:
        op = audit.ops[buffer.op] if buffer.op >= 0 else None
        what = f"{op.name.rpartition('.')[2]} {buffer.type}" if op else buffer.kind
        cells = (buffer.name, in_bytes(buffer.bytes), what.strip(), buffer.phase)
        rows.append((*cells, op.source if op else "", buffer.scope))
    return fit_rows(limits, rows, width, numbers={"bytes"})


def html(audit: Reported, by: Sequence[Grouping]) -> Iterator[str]:
    """The section of a page."""
    if audit.memory is None:
        return
    yield f'<section id="memory"><h2>Memory</h2><p>{escape(sentence(audit.memory))}</p>'
    for found in _break_down(audit, by):
        yield f"<h3>{escape(found.title)}</h3>"
        yield from breakdown.bars(found, _in_words, MEANINGS)
    yield "</section>"
