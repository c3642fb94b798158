# SPDX-License-Identifier: Apache-2.0
"""The work of a program, and how it differs from another program's, as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import printable
from hlotag.audits.comparison import Amounts, Difference
from hlotag.audits.grouping import Grouping, title_of
from hlotag.audits.report import Reported

# Limit of listed rows.
_LINES = 40
_SAME = "Work and memory are the same in both programs."


def renderable(audit: Reported, by: Sequence[Grouping]) -> RenderableType:
    """Renders the work of an audit for rich, a table for each grouping."""
    return Group(*(_table(audit, group) for group in by))


def _table(audit: Reported, by: Grouping) -> Table:
    rows = audit.work_by(by)
    table = _make_table(printable(title_of(by)), "phase", "flops", "bytes", "exchanged")
    for row in rows[:_LINES]:
        name = Text(printable(row.value)) if row.value else Text(f"without {printable(title_of(by))}", "dim")
        table.add_row(name, row.phase, *Amounts(row.flops, row.bytes, row.exchanged).in_words()[:3])
    for name, some in ((f"{len(rows) - _LINES} more", rows[_LINES:]), ("program", rows)):
        if some:
            total = Amounts(sum(row.flops for row in some), sum(row.bytes for row in some), sum(row.exchanged for row in some))
            table.add_row(Text(name, "dim"), "", *total.in_words()[:3])
    return table


def differences(found: Sequence[Difference]) -> RenderableType:
    """Renders what differs between two programs: a line for both as a whole, and a row for each difference."""
    if not found:
        return Text(_SAME, "green")
    names = [name for name in Amounts._fields if any(name in row.changes() for row in found)]
    table = _make_table("what", *names)
    for row in found[:_LINES]:
        changes = row.changes()
        table.add_row(Text(printable(row.name), "" if row.key else "bold"), *(changes.get(name, "·") for name in names))
    if len(found) > _LINES:
        table.add_row(Text(f"{len(found) - _LINES} more", "dim"))
    return table


def _make_table(first: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="left" if column == "phase" else "right", no_wrap=True)
    return table
