# SPDX-License-Identifier: Apache-2.0
"""An amount by value and phase, as a table in a terminal and as bars on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape

from rich import box
from rich.table import Table
from rich.text import Text

from hlotag._text import printable
from hlotag.audits.breakdown import Breakdown

# Limit of listed values.
_LINES = 40
_NUMBER, _PADDING, _LEAST = 6, 3, 12  # columns of a number, between columns, and of a value
_BAR = 1000  # the width of the longest bar
_NONE = "none"  # the class of a bar in no phase


def table(
    found: Breakdown,
    in_words: Callable[[float], str],
    unit: str,
    *,
    whole: str,
    width: int,
    more: tuple[str, Mapping[str, str]] | None = None,
) -> Table:
    """Renders a table for rich.

    Args:
        found: The amounts.
        in_words: Formats an amount.
        unit: The title of the column of sums.
        whole: What the last row, the total, is called.
        width: Limit of columns.
        more: A last column: its title, and its cells by value.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    columns = (*found.phases, unit, "share", *([more[0]] if more else []))
    room = width - sum(max(len(column), _NUMBER) + _PADDING for column in columns)
    made.add_column(printable(found.title), overflow="ellipsis", no_wrap=True, max_width=max(_LEAST, room))
    for column in columns:
        made.add_column(column, justify="right", no_wrap=True)
    total = found.total
    for value in list(found.lines)[:_LINES]:
        line, amount = found.lines[value], found.sum(value)
        name = Text(printable(value)) if value else Text(f"without {printable(found.title)}", "dim")
        cells = (in_words(line[phase]) if line.get(phase) else "·" for phase in found.phases)
        last = [more[1].get(value, "·")] if more else []
        made.add_row(name, *cells, in_words(amount), _share(amount, total), *last)
    for name, amount in {**_hidden(found), **found.rest, whole: total}.items():
        made.add_row(Text(name, "dim"), *("" for _ in found.phases), in_words(amount), _share(amount, total))
    return made


def bars(found: Breakdown, in_words: Callable[[float], str], meanings: Mapping[str, str]) -> Iterator[str]:
    """Renders a legend and a list of bars as HTML. `meanings` say what rows of no operation are."""
    items = (f'<li><svg viewBox="0 0 1 1"><rect class="{p}" width="1" height="1"/></svg>{p}</li>' for p in found.phases)
    yield f'<ul class="legend">{"".join(items)}</ul><ul class="bars">'
    others, total = _hidden(found) | found.rest, found.total
    longest = max([*map(found.sum, found.lines), *others.values()], default=0.0)
    for value in list(found.lines)[:_LINES]:
        name = f"<code>{escape(value)}</code>" if value else f"without {escape(found.title)}"
        segments = {phase: found.lines[value][phase] for phase in found.phases if phase in found.lines[value]}
        yield f"<li><span>{name}</span>{_bar(segments, longest, in_words)}{_numbers(found.sum(value), total, in_words)}</li>"
    for name, amount in others.items():
        head = f'<span class="rest" title="{escape(meanings.get(name, ""))}">{escape(name)}</span>'
        yield f"<li>{head}{_bar({_NONE: amount}, longest, in_words)}{_numbers(amount, total, in_words)}</li>"
    yield "</ul>"


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
    return f'<svg viewBox="0 0 {_BAR} 10" preserveAspectRatio="none" role="img">{"".join(drawn)}</svg>'


def _numbers(amount: float, total: float, in_words: Callable[[float], str]) -> str:
    return f'<span class="amount">{in_words(amount)}</span><span class="share">{_share(amount, total)}</span>'
