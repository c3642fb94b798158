# SPDX-License-Identifier: Apache-2.0
"""An amount by value and phase, as a table in a terminal and as bars on a page."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from hlotag._text import printable
from hlotag.results.breakdown import Breakdown
from hlotag.results.grouping import OTHER_NAMES

Opens = Container[tuple[str, str]]
"""The rows that open: what they are grouped by, which is empty for those of no operation, and the value."""
# Limit of listed values.
_LINES = 40
_NUMBER, _PADDING, _LEAST = 6, 3, 12  # columns of a number, between columns, and of a value
_VALUE = 24  # columns of a value, for which a table leaves out others
_BAR = 1000  # the width of the longest bar
_NONE = "none"  # the class of a bar in no phase
COLOURS = 10
"""How many values of a drawing have a colour of their own, the classes `c0` to `c9`; the others share `c10`."""


class Column(NamedTuple):
    """A further column.

    Attributes:
        title: The title.
        cells: The cells by value.
        is_optional: Whether a narrow table leaves it out.
    """

    title: str
    cells: Mapping[str, str]
    is_optional: bool = False

    @property
    def width(self) -> int:
        """The columns that it takes."""
        return max(len(self.title), _NUMBER, *map(len, self.cells.values())) + _PADDING


def table(
    found: Breakdown,
    in_words: Callable[[float], str],
    unit: str,
    *,
    whole: str,
    width: int,
    more: Sequence[Column] = (),
) -> Table:
    """Renders a table for rich.

    Args:
        found: The amounts.
        in_words: Formats an amount.
        unit: The title of the column of sums.
        whole: What the last row, the total, is called.
        width: Limit of columns.
        more: The last columns. A narrow table leaves out the first ones that are optional.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    columns = (*found.phases, unit, "share")
    room = width - sum(max(len(column), _NUMBER) + _PADDING for column in columns)
    more = _fit(more, room - min(_VALUE, max(map(len, (found.title, *found.lines, *found.rest)))))
    room -= sum(column.width for column in more)
    made.add_column(printable(found.title), overflow="ellipsis", no_wrap=True, max_width=max(_LEAST, room))
    for column in (*columns, *(each.title for each in more)):
        made.add_column(column, justify="right", no_wrap=True)
    total = found.total
    for value in list(found.lines)[:_LINES]:
        line, amount = found.lines[value], found.sum(value)
        name = Text(printable(value)) if value else Text(f"without {printable(found.title)}", "dim")
        cells = (in_words(line[phase]) if line.get(phase) else "·" for phase in found.phases)
        last = (column.cells.get(value, "·") for column in more)
        made.add_row(name, *cells, in_words(amount), _share(amount, total), *last)
    for name, amount in {**_hidden(found), **found.rest, whole: total}.items():
        made.add_row(Text(name, "dim"), *("" for _ in found.phases), in_words(amount), _share(amount, total))
    return made


def _fit(more: Sequence[Column], room: int) -> list[Column]:
    """The columns for which there is room, and those that are not optional."""
    left = list(more)
    while sum(column.width for column in left) > room and (optional := [column for column in left if column.is_optional]):
        left.remove(optional[0])
    return left


def bars(
    found: Breakdown,
    in_words: Callable[[float], str],
    meanings: Mapping[str, str],
    notes: Mapping[str, str] | None = None,
    *,
    opens: Opens = (),
) -> Iterator[str]:
    """Renders a legend and a list of bars as HTML.

    `meanings` say what rows of no operation are. `notes` has, by value, what stands behind the numbers. `opens` has the rows that
    the page's script can fill: they open.
    """
    yield f'{legend({phase: phase for phase in found.phases})}<ul class="bars{" noted" if notes else ""}">'
    others, total = _hidden(found) | found.rest, found.total
    longest = max([*map(found.sum, found.lines), *others.values()], default=0.0)
    for value in list(found.lines)[:_LINES]:
        name = f"<code>{escape(value)}</code>" if value else f"without {escape(found.title)}"
        note = f'<span class="note">{escape(notes.get(value, ""))}</span>' if notes else ""
        segments = {phase: found.lines[value][phase] for phase in found.phases if phase in found.lines[value]}
        numbers = _numbers(found.sum(value), total, in_words) + note
        cells = f"<span>{name}</span>{_bar(segments, longest, in_words)}{numbers}"
        yield _item(cells, (found.title, value), _query(found.title, value) if value else "", opens)
    for name, amount in others.items():
        head = f'<span class="rest" title="{escape(meanings.get(name, ""))}">{escape(name)}</span>'
        cells = f"{head}{_bar({_NONE: amount}, longest, in_words)}{_numbers(amount, total, in_words)}"
        yield _item(cells, ("", name), "", opens)
    yield "</ul>"


def _item(cells: str, row: tuple[str, str], query: str, opens: Opens) -> str:
    """A bar. If it opens, the script fills it, with a link to what the query finds."""
    if row not in opens:
        return f"<li>{cells}</li>"
    key, value = map(escape, row)
    about = f'data-key="{key}" data-value="{value}" data-query="{escape(query)}"'
    return f'<li class="opens"><details class="row" {about}><summary>{cells}</summary></details></li>'


def chart(title: str, answer: str, size: tuple[int, int], kind: str = "chart") -> str:
    """The start of a drawing. Who cannot see it has the title and the answer, a sentence; `kind` is its class."""
    name = title.lower().replace(" ", "-")
    about = f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-answer"'
    words = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-answer">{escape(answer)}</desc>'
    return f'<svg class="{kind}" viewBox="0 0 {size[0]} {size[1]}" {about}>{words}'


def head_of_table(caption: str, columns: Iterable[tuple[str, str]]) -> str:
    """The start of a table, with its columns and their classes. Only who cannot see the table has its caption."""
    cells = (f'<th scope="col" class="{kind}">{escape(name)}</th>' for name, kind in columns)
    return f'<table><caption class="unseen">{escape(caption)}</caption><thead><tr>{"".join(cells)}</tr></thead>'


def legend(names: Mapping[str, str]) -> str:
    """The legend of a drawing. `names` says what a class of the style sheet stands for."""
    swatch = '<svg viewBox="0 0 1 1" aria-hidden="true"><rect class="{}" width="1" height="1"/></svg>'
    items = (f"<li>{swatch.format(each)}{escape(name)}</li>" for each, name in names.items())
    return f'<ul class="legend">{"".join(items)}</ul>'


def _query(title: str, value: str) -> str:
    """What finds the operations of a row in the list of tags."""
    return value if title.partition(":")[0] in OTHER_NAMES or "," in title else f"{title}={value}"


def _hidden(found: Breakdown) -> dict[str, float]:
    """The sum of the values that are not listed."""
    left = list(found.lines)[_LINES:]
    return {f"{len(left)} more": sum(map(found.sum, left))} if left else {}


def _share(amount: float, total: float) -> str:
    return f"{amount / total:.1%}" if total else "-"


def _bar(segments: Mapping[str, float], longest: float, in_words: Callable[[float], str]) -> str:
    x, drawn = 0.0, []
    for phase, amount in segments.items():
        width = _BAR * amount / longest if longest else 0.0
        hint = f"<title>{phase}: {in_words(amount)}</title>" if phase != _NONE else ""
        drawn.append(f'<rect class="{phase}" x="{x:.1f}" width="{width:.1f}" height="10">{hint}</rect>')
        x += width
    words = ", ".join(f"{phase}: {in_words(amount)}" for phase, amount in segments.items() if phase != _NONE)
    seen = f'role="img"><title>{words}</title>' if words else 'aria-hidden="true">'
    return f'<svg viewBox="0 0 {_BAR} 10" preserveAspectRatio="none" {seen}{"".join(drawn)}</svg>'


def _numbers(amount: float, total: float, in_words: Callable[[float], str]) -> str:
    return f'<span class="amount">{in_words(amount)}</span><span class="share">{_share(amount, total)}</span>'
