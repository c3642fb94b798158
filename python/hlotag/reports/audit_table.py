# SPDX-License-Identifier: Apache-2.0
"""An audit as tables in a terminal."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotag._text import count, printable
from hlotag._util.columns import columns
from hlotag.results.listing import LISTED_COLUMNS, Listed, listed_row
from hlotag.results.report import (
    TAG_COLUMNS,
    UNTAGGED_COLUMNS,
    Problem,
    effects_in_words,
    facts_in_words,
    list_untagged_lines,
    order_of_tags,
    tag_row,
)
from hlotag.results.tags import TagState, Verdict, by_entry, phases_in

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

# Limit of listed problems.
_LISTED = 12

_STYLES = {
    TagState.LOST: "bold red",
    TagState.KEPT: "green",
    TagState.RESTORED: "cyan",
    TagState.CONSUMED: "cyan",
}
_OTHER = "bold yellow"
WIDE = 120  # columns of a terminal that has room for all columns of a table of lines
# Widths in characters.
_TAG, _LEAST_TAG = 24, 12
_PADDING = 3


def as_text(audit: Audit, width: int | None = None) -> str:
    """Renders an audit without colours; `width` is that of `columns()` by default."""
    width = width or columns()
    return plain_text(renderable(audit, width), width)


def plain_text(shown: RenderableType, width: int | None = None) -> str:
    """Renders what rich can print without colours; `width` is that of `columns()` by default."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width or columns(), color_system=None, force_terminal=False, legacy_windows=False)
    console.print(shown, highlight=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def renderable(audit: Audit, width: int) -> RenderableType:
    """Renders an audit for rich: a title, a sentence, problems, effects, and a table of keys and values."""
    report = audit.report
    title = Text.assemble((printable(audit.name), "bold"), printable(f": {facts_in_words(audit)}"))
    sentence = Text(printable(report.sentence), style="bold" if report.problems else "green")
    parts: list[RenderableType] = [title, sentence, *problems(report.problems), *_effects(audit)]
    if audit.tags:
        parts.append(_table(audit, width))
    parts += [Text(printable(f"note: {note}"), style="dim") for note in audit.notes]
    return Group(*parts)


def _table(audit: Audit, width: int) -> Table:
    """A row for each key and value: operations by phase, if there is room, and by what became of the tag."""
    rows = by_entry(audit.tags)
    phases = [(phase, [entry.phases[phase] for entry in rows], "dim") for phase in phases_in(rows)]
    states = [
        (str(state), [entry.states[state] for entry in rows], _STYLES.get(state, ""))
        for state in reversed(TagState)
        if audit.counts[state]
    ]
    needed = sum(_width(label, numbers) for label, numbers, _ in (*phases, *states))
    longest = max(len(entry.key) + 1 + len(entry.value) for entry in rows)
    shown = (*phases, *states) if needed + min(longest, _TAG) <= width else states
    left = width - sum(_width(label, numbers) for label, numbers, _ in shown)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_footer=len(rows) > 1)
    # Only this column shrinks, because values may be long.
    table.add_column("tag", "all", no_wrap=True, overflow="ellipsis", max_width=max(_LEAST_TAG, left))
    for label, numbers, style in shown:
        table.add_column(label, str(sum(numbers)), justify="right", no_wrap=True, style=style, min_width=len(label))
    for row, entry in enumerate(rows):
        cells = (str(numbers[row]) if numbers[row] or style == "dim" else "·" for _, numbers, style in shown)
        table.add_row(Text(printable(f"{entry.key}={entry.value}")), *cells)
    return table


def _width(label: str, numbers: Sequence[int]) -> int:
    return max(len(label), len(str(sum(numbers)))) + _PADDING


def fit_rows(limits: Mapping[str, int], rows: Sequence[Sequence[str]], width: int, *, numbers: Collection[str]) -> Table:
    """Makes a table of short lines.

    Args:
        limits: By column, the characters to which it is cut if the table is wider than `width`.
        rows: The cells of each line; those of further columns are left out.
        width: The width of the terminal.
        numbers: The columns that are aligned to the right, and never cut.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    needed = _widths(limits, rows)
    fits = needed_width(limits, rows) <= width
    for name, limit in limits.items():
        is_number = name in numbers
        most = None if fits or is_number else limit
        least = needed.get(name) if is_number else None
        justify = "right" if is_number else "left"
        table.add_column(name, justify=justify, overflow="ellipsis", no_wrap=True, max_width=most, min_width=least)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row[: len(limits)]))
    return table


def needed_width(names: Collection[str], rows: Sequence[Sequence[str]]) -> int:
    """The width of a table of lines that are not cut."""
    return sum(_widths(names, rows).values()) + _PADDING * len(names)


def _widths(names: Collection[str], rows: Sequence[Sequence[str]]) -> dict[str, int]:
    return {name: max(len(name), *(cell_len(row[n]) for row in rows)) for n, name in enumerate(names)} if rows else {}


def _list_rows(names: Iterable[str], rows: Iterable[Iterable[str]], title: str = "") -> Table:
    table = Table(title=printable(title) or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def tags_table(audit: Audit) -> Table:
    """Renders every tag, those on instructions first."""
    found = [audit.tags[number] for number in order_of_tags(audit)]
    return _list_rows((*TAG_COLUMNS, "details"), ((*tag_row(tag), tag.details) for tag in found))


def make_untagged_table(audit: Audit) -> Table:
    """Renders the source lines whose operations have no tag, those with most work first."""
    return _list_rows(UNTAGGED_COLUMNS, list_untagged_lines(audit))


def listing_table(found: Sequence[Listed]) -> Table:
    """Renders instructions with what they compute, their source, tags and work."""
    return _list_rows(LISTED_COLUMNS, (listed_row(each) for each in found))


def problems(problems: Sequence[Problem]) -> list[RenderableType]:
    """Renders each problem with its source, reason and advice; the first ones only, if there are many."""
    rows: list[RenderableType] = []
    for problem in problems[:_LISTED]:
        place = f" at {problem.source}" if problem.source else ""
        head = Text(printable(f"{problem.title}{place}"))
        head.highlight_words([problem.kind], _STYLES[TagState.LOST] if problem.kind == "lost" else _OTHER)
        reason = Text(printable(f"{problem.why} {problem.effect}"))
        advice = [Text(printable(problem.advice), "dim")] if problem.advice else []
        rows += [Padding(head, (0, 0, 0, 2)), Padding(Group(reason, *advice), (0, 0, 0, 6))]
    if len(problems) > _LISTED:
        rows.append(Text(f"  and {count(len(problems) - _LISTED, 'more problem')}", style="dim"))
    return rows


def _effects(audit: Audit) -> list[RenderableType]:
    rows = effects_in_words(audit)
    lines = [line for row in rows[:_LISTED] for line in _effect(*row)]
    if len(rows) > _LISTED:
        lines.append(Text(f"  and {len(rows) - _LISTED} more keys and values", style="dim"))
    return [Text("Effects", style="bold"), *lines] if lines else []


def _effect(verdict: Verdict, what: str, details: str) -> list[RenderableType]:
    style = {Verdict.CHANGED: "green", Verdict.SAME: "yellow"}.get(verdict, "dim")
    return [
        Text.assemble(("  " + verdict.label.ljust(15), style), printable(what)),
        Padding(Text(printable(details)), (0, 0, 0, 6)),
    ]
