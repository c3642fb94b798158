# SPDX-License-Identifier: Apache-2.0
"""How is a profile shown in a terminal?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import printable
from hlotag.audits.render.table import plain_text
from hlotag.profiles.model import ADDED, NOTHING, Hot, Line, Row, Timing, in_words

# Limit of listed values and instructions.
_LINES, _HOT = 40, 10


def as_text(profile: Timing) -> str:
    """Renders a profile without colours.

    Args:
        profile: The profile.

    Returns:
        The lines as one text.
    """
    return plain_text(renderable(profile))


def renderable(profile: Timing) -> RenderableType:
    """Renders a profile for rich.

    Args:
        profile: The profile.

    Returns:
        The sentence, a table for each key, the rest, and the instructions that take most time.
    """
    parts: list[RenderableType] = [Text(printable(profile.sentence), "bold")]
    parts += [_table(key, phases, lines, profile.rest) for key, phases, lines in profile.tables()]
    if profile.instructions:
        parts.append(_hottest(profile))
    return Group(*parts, *(Text(printable(f"note: {note}"), "dim") for note in notes(profile)))


def notes(profile: Timing) -> Iterator[str]:
    """What else to know of a profile.

    Args:
        profile: The profile.

    Yields:
        Sentences.
    """
    total = profile.total_seconds
    if profile.split:
        yield (
            f"{profile.split / total:.0%} of the time is in instructions that compute operations of several values. "
            "It is divided among them by their work."
        )
    running = total - sum(row.seconds for row in profile.rest if row.value == NOTHING)
    if profile.busy > 1.02 * running:
        yield (
            f"Several instructions ran at once: {in_words(profile.busy)} of work in {in_words(running)}. "
            "Rows have their part of the time; `busy` has the work."
        )
    if profile.untraced_seconds:
        yield f"A step takes {in_words(profile.untraced_seconds)} without the profiler."
    yield from profile.notes


def operation_in_words(hot: Hot) -> str:
    """The operation of an instruction: `dot_general f32[8,8] and 2 more`.

    Args:
        hot: The instruction.
    """
    more = f" and {hot.more} more" if hot.more else ""
    return f"{hot.operation}{more}" if hot.operation else ADDED


def _table(key: str, phases: Sequence[str], lines: Sequence[Line], rest: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, title_justify="left")
    table.add_column(printable(key), ratio=1, overflow="ellipsis", no_wrap=True, min_width=12)
    for column in (*phases, "time", "share", "events"):
        table.add_column(column, justify="right", no_wrap=True)
    for line in lines[:_LINES]:
        times = [in_words(line.rows[phase].seconds) if phase in line.rows else "·" for phase in phases]
        name = Text(printable(line.value)) if line.value else Text(f"without {printable(key)}", "dim")
        table.add_row(name, *times, *_numbers(line.seconds, line.share, sum(row.events for row in line.rows.values())))
    if left := lines[_LINES:]:
        hidden = _numbers(sum(line.seconds for line in left), sum(line.share for line in left), 0)
        table.add_row(Text(f"{len(left)} more", "dim"), *("" for _ in phases), *hidden)
    for row in rest:
        table.add_row(Text(row.value, "dim"), *("" for _ in phases), *_numbers(row.seconds, row.share, row.events))
    return table


def _numbers(seconds: float, share: float, events: float) -> tuple[str, str, str]:
    return in_words(seconds), f"{share:.1%}", f"{events:.3g}" if events else ""


def _hottest(profile: Timing) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("instruction", overflow="fold")
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    for column in ("operation", "phase", "source", "tags"):
        table.add_column(column, overflow="fold")
    for hot in profile.instructions[:_HOT]:
        cells = (hot.name, in_words(hot.seconds), f"{hot.share:.1%}", operation_in_words(hot), hot.phase, hot.source)
        cells = (*cells, ", ".join(hot.tags))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table
