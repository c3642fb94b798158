# SPDX-License-Identifier: Apache-2.0
"""An amount by value and phase, as a table in a terminal and as bars on a page."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from hlotag._text import printable
from hlotag.reports.drawing import BAR, Bar, Bars, Rect
from hlotag.results.breakdown import Breakdown
from hlotag.results.grouping import OTHER_NAMES

Opens = Container[tuple[str, str]]
"""The rows that open: what they are grouped by, which is empty for those of no operation, and the value."""
# Limit of listed values.
_LINES = 40
_NUMBER, _PADDING, _LEAST = 6, 3, 12  # columns of a number, between columns, and of a value
_VALUE = 24  # columns of a value, for which a table leaves out others
_NONE = "none"  # the class of a bar in no phase


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


def make_bars(
    found: Breakdown,
    in_words: Callable[[float], str],
    meanings: Mapping[str, str],
    notes: Mapping[str, str] | None = None,
    *,
    opens: Opens = (),
) -> Bars:
    """Makes the bars of a page.

    `meanings` say what rows of no operation are. `notes` has, by value, what stands behind the numbers. `opens` has the rows that
    the page's script can fill.
    """
    others, total = _hidden(found) | found.rest, found.total
    longest = max([*map(found.sum, found.lines), *others.values()], default=0.0)
    made = []
    for value in list(found.lines)[:_LINES]:
        amount = found.sum(value)
        segments = {phase: found.lines[value][phase] for phase in found.phases if phase in found.lines[value]}
        made.append(
            Bar(
                value or f"without {found.title}",
                in_words(amount),
                list(_lay_out(segments, longest, in_words)),
                ", ".join(f"{phase}: {in_words(part)}" for phase, part in segments.items()),
                _share(amount, total),
                key=found.title,
                value=value,
                note=(notes or {}).get(value, ""),
                opens=(found.title, value) in opens,
                query=_query(found.title, value) if value else "",
            )
        )
    for name, amount in others.items():
        segments = list(_lay_out({_NONE: amount}, longest, in_words))
        bar = Bar(name, in_words(amount), segments, share=_share(amount, total), value=name, is_rest=True)
        made.append(bar._replace(hint=meanings.get(name, ""), opens=("", name) in opens))
    return Bars(found.title, made, {phase: phase for phase in found.phases}, has_notes=bool(notes))


def _lay_out(segments: Mapping[str, float], longest: float, in_words: Callable[[float], str]) -> Iterator[Rect]:
    x = 0.0
    for phase, amount in segments.items():
        width = BAR * amount / longest if longest else 0.0
        yield Rect(phase, x, width, hint=f"{phase}: {in_words(amount)}" if phase != _NONE else "")
        x += width


def _query(title: str, value: str) -> str:
    """What finds the operations of a row in the list of tags."""
    return value if title.partition(":")[0] in OTHER_NAMES or "," in title else f"{title}={value}"


def _hidden(found: Breakdown) -> dict[str, float]:
    """The sum of the values that are not listed."""
    left = list(found.lines)[_LINES:]
    return {f"{len(left)} more": sum(map(found.sum, left))} if left else {}


def _share(amount: float, total: float) -> str:
    return f"{amount / total:.1%}" if total else "-"
