# SPDX-License-Identifier: Apache-2.0
"""The work of a program as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import in_bytes, in_work, printable
from hlotag.results.costs import Cost
from hlotag.results.grouping import Grouping, title_of

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

# Limit of listed rows.
_LINES = 40


def renderable(audit: Audit, by: Sequence[Grouping]) -> RenderableType:
    """Renders the work of an audit for rich, a table for each grouping."""
    return Group(*(_table(audit, group) for group in by))


def _table(audit: Audit, by: Grouping) -> Table:
    rows = [row for row in audit.costs_by(by) if row.flops or row.bytes or row.exchanged]
    table = _make_table(printable(title_of(by)), "phase", "flops", "bytes", "exchanged")
    for row in rows[:_LINES]:
        name = Text(printable(row.value)) if row.value else Text(f"without {printable(title_of(by))}", "dim")
        table.add_row(name, row.phase, *_in_words([row]))
    for name, some in ((f"{len(rows) - _LINES} more", rows[_LINES:]), ("program", rows)):
        if some:
            table.add_row(Text(name, "dim"), "", *_in_words(some))
    return table


def _in_words(rows: Sequence[Cost]) -> tuple[str, str, str]:
    """The flops, bytes and exchanged bytes of some rows."""
    flops = sum(row.flops for row in rows)
    return in_work(flops, 0) or "0", in_bytes(sum(row.bytes for row in rows)), in_bytes(sum(row.exchanged for row in rows))


def _make_table(first: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="left" if column == "phase" else "right", no_wrap=True)
    return table
