# SPDX-License-Identifier: Apache-2.0
"""What a page draws, for its templates. Lengths are units of the drawing; a `kind` is a class of the style sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

COLOURS = 10
"""How many values of a drawing have a colour of their own, the classes `c0` to `c9`; the others share `c10`."""
BAR = 1000.0
"""The length of the longest bar."""


class Rect(NamedTuple):
    """A rectangle, with the hint that a pointer on it shows."""

    kind: str
    x: float
    width: float
    y: float = 0.0
    height: int = 10
    hint: str = ""


class Line(NamedTuple):
    """A line between two points."""

    kind: str
    x1: float
    y1: float
    x2: float
    y2: float
    hint: str = ""


class Circle(NamedTuple):
    """A point, by its centre."""

    x: float
    y: float
    hint: str


class Area(NamedTuple):
    """An area, by its path in SVG."""

    kind: str
    path: str
    hint: str


class Label(NamedTuple):
    """A text at a place."""

    text: str
    x: float
    y: float
    kind: str = ""


class Drawing(NamedTuple):
    """A drawing.

    Attributes:
        title: The title.
        answer: What it shows, as a sentence, for who cannot see it.
        width: The width.
        height: The height.
        kind: The class.
        areas, rects, lines, circles, labels: What is drawn, the first ones behind the others.
    """

    title: str
    answer: str
    width: int
    height: int
    kind: str = "chart"
    areas: Sequence[Area] = ()
    rects: Sequence[Rect] = ()
    lines: Sequence[Line] = ()
    circles: Sequence[Circle] = ()
    labels: Sequence[Label] = ()


class Bar(NamedTuple):
    """A bar with a name and an amount.

    Attributes:
        name: The name.
        amount: The amount in words.
        segments: The parts of the bar.
        words: What it shows, for who cannot see it.
        share: The amount's share of the whole, or how it has changed.
        key: What rows are grouped by; empty for a row of no operation.
        value: The value that the row is of; empty for none.
        note: What stands behind the numbers.
        is_rest: Whether it is of no operation.
        hint: What a row of no operation is.
        opens: Whether the page's script can fill the row.
        query: What finds the row's operations in the list of tags.
    """

    name: str
    amount: str
    segments: Sequence[Rect]
    words: str = ""
    share: str = ""
    key: str = ""
    value: str = ""
    note: str = ""
    is_rest: bool = False
    hint: str = ""
    opens: bool = False
    query: str = ""


class Bars(NamedTuple):
    """A list of bars.

    Attributes:
        title: What they are grouped by.
        bars: The bars.
        legend: By class, what it stands for.
        has_notes: Whether bars have notes.
    """

    title: str
    bars: Sequence[Bar]
    legend: Mapping[str, str]
    has_notes: bool = False
