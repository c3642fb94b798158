# SPDX-License-Identifier: Apache-2.0
"""A profile as drawings on a page: the rows under the device's limits, and the events of one step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hlotag._text import count, list_some, rate_in_words
from hlotag.reports import timeline
from hlotag.reports.drawing import COLOURS, Circle, Drawing, Label, Line, Rect
from hlotag.reports.timeline import Slice
from hlotag.results.times import Rates, in_words

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile
    from hlotag.profiles.program import Program
    from hlotag.profiles.trace import Device

_WIDTH, _HEIGHT, _MARGIN = 900, 320, 50
# Limit of labelled rows, and of the slices of a track.
_ROWS, _SLICES = 12, 1500
_LANE, _PITCH = 16, 20  # the height of a track, and from one to the next
_LABEL = 150  # the width of a track's name
_TEXT = 11  # the height of a text


def draw_roofline(profile: Profile, key: str) -> Drawing | None:
    """The rows of a key by flops for each byte, and flops a second, on logarithmic axes, under the device's limits.

    None if no row has both.
    """
    points = [(value, each) for value, each in profile.rates(key).items() if each.flops_per_second and each.bytes_per_second]
    if not points:
        return None
    axes = _Axes(profile, [each for _, each in points])
    shown = sorted(((value or f"without {key}", each) for value, each in points), key=lambda point: -point[1].flops_per_second)
    fastest = list_some([f"{name} with {_in_words(each)}" for name, each in shown])
    lines, labels = axes.draw_grid()
    if limits := profile.limits:
        more, names = axes.draw_limits(limits.bandwidth, dict(limits.flops))
        lines, labels = [*lines, *more], [*labels, *names]
    circles = []
    for name, each in shown:
        x, y = axes.x(each.flops_per_second / each.bytes_per_second), axes.y(each.flops_per_second)
        circles.append(Circle(x, y, f"{name}: {_in_words(each)}"))
    labels += [Label(name[:24], at.x + 7, at.y + 4) for (name, _), at in zip(shown[:_ROWS], circles, strict=False)]
    answer = f"The fastest of {count(len(shown), 'value')}: {fastest}."
    return Drawing("Roofline", answer, _WIDTH, _HEIGHT, lines=lines, circles=circles, labels=labels)


def _in_words(rates: Rates) -> str:
    of_limit = f" ({rates.of_limit})" if rates.of_limit else ""
    return f"{rate_in_words(rates.flops_per_second)}flop/s, {rate_in_words(rates.bytes_per_second)}B/s{of_limit}"


class _Axes:
    """Logarithmic axes that hold all rows and limits."""

    def __init__(self, profile: Profile, rates: Sequence[Rates]) -> None:
        intensities = [each.flops_per_second / each.bytes_per_second for each in rates]
        speeds = [each.flops_per_second for each in rates]
        if profile.limits:
            speeds += profile.limits.flops.values()
            intensities.append(max(profile.limits.flops.values()) / profile.limits.bandwidth)
        self._x = math.floor(math.log10(min(intensities))), math.ceil(math.log10(max(intensities)) + 0.01)
        self._y = math.floor(math.log10(min(speeds))), math.ceil(math.log10(max(speeds)) + 0.01)

    def x(self, intensity: float) -> float:
        """Where flops for each byte are."""
        low, high = self._x
        return _MARGIN + (math.log10(intensity) - low) / (high - low) * (_WIDTH - 2 * _MARGIN)

    def y(self, speed: float) -> float:
        """Where flops a second are."""
        low, high = self._y
        return _HEIGHT - 30 - (math.log10(speed) - low) / (high - low) * (_HEIGHT - 50)

    def draw_grid(self) -> tuple[list[Line], list[Label]]:
        """A line for each power of ten."""
        lines, labels = [], []
        for speed in (10.0**power for power in range(self._x[0], self._x[1] + 1)):
            x = self.x(speed)
            lines.append(Line("grid", x, 20, x, _HEIGHT - 30))
            labels.append(Label(f"{speed:g}", x, _HEIGHT - 12, "tick"))
        for speed in (10.0**power for power in range(self._y[0], self._y[1] + 1)):
            y = self.y(speed)
            lines.append(Line("grid", _MARGIN, y, _WIDTH - _MARGIN, y))
            labels.append(Label(rate_in_words(speed), 4, y + 4, "tick"))
        return lines, labels

    def draw_limits(self, bandwidth: float, flops: dict[str, float]) -> tuple[list[Line], list[Label]]:
        """The slope of the bandwidth, and a level for each type."""
        top = max(flops.values())
        left, right = 10.0 ** self._x[0], 10.0 ** self._x[1]
        start = max(left, 10.0 ** self._y[0] / bandwidth)
        lines = [Line("limit", self.x(start), self.y(start * bandwidth), self.x(top / bandwidth), self.y(top))]
        labels: list[Label] = []
        for kind, limit in sorted(flops.items(), key=lambda each: -each[1]):  # From the top down.
            y = self.y(limit)
            lines.append(Line("limit", self.x(limit / bandwidth), y, self.x(right), y))
            free = labels[-1].y + _TEXT if labels else 0.0
            labels.append(Label(kind, _WIDTH - 4, max(y - 3, free), "tick end"))
        return lines, labels


class Timeline(NamedTuple):
    """The events of a step.

    Attributes:
        step: The number of the step.
        device: The device.
        length: The step's length.
        legend: By class, the value.
        drawing: The tracks.
    """

    step: int
    device: str
    length: str
    legend: Mapping[str, str]
    drawing: Drawing


def draw_timeline(profile: Profile, key: str | None) -> Timeline | None:
    """The events of the step in the middle by length, on the device with most of them: tracks by thread or stream, and by key.

    None if the profile has no steps of a program.
    """
    if profile.program is None or not profile.timeline:
        return None
    device = max(profile.timeline, key=lambda each: len(each.names))
    if not device.steps:
        return None
    number, span = sorted(enumerate(device.steps), key=lambda step: step[1][1] - step[1][0])[len(device.steps) // 2]
    tracks = list(_tracks(profile.program, device, key, span))
    colours = _choose_colours(tracks)
    length, height = span[1] - span[0], len(tracks) * _PITCH + 20
    places = [(place * _PITCH, name, slices) for place, (name, slices) in enumerate(tracks)]
    drawing = Drawing(
        "Timeline",
        _answer(tracks, length),
        _WIDTH + _LABEL,
        height,
        "chart wide",
        rects=[_draw(each, y, span, colours) for y, _, slices in places for each in slices],
        labels=[
            *(Label(name[:24], 0, y + 12, "tick") for y, name, _ in places),
            Label("0", _LABEL, height - 4, "tick"),
            Label(in_words(length / 1e9), _WIDTH + _LABEL, height - 4, "tick end"),
        ],
    )
    legend = {f"c{number}": name for name, number in colours.items()}
    return Timeline(number, device.name, in_words(length / 1e9), legend, drawing)


def _answer(tracks: Sequence[tuple[str, Sequence[Slice]]], length: float) -> str:
    """What the timeline shows, as a sentence."""
    busy = [f"{name} {sum(each.end - each.start for each in slices) / length:.0%}" for name, slices in tracks]
    return f"How much of the step's {in_words(length / 1e9)} each track has: {list_some(busy, 12)}."


def _draw(each: Slice, y: int, span: tuple[float, float], colours: Mapping[str, int]) -> Rect:
    """A slice of the step that a span is, at a height."""
    x, width = (_WIDTH * time / (span[1] - span[0]) for time in (each.start - span[0], each.end - each.start))
    kind = f"c{colours.get(_value(each), COLOURS)}" if _is_of_key(each) else "none"
    hint = f"{each.name}: {in_words((each.end - each.start) / 1e9)}{_about(each)}"
    return Rect(kind, _LABEL + x, max(width, 0.3), y, _LANE, hint)


def _about(each: Slice) -> str:
    known = [str(each.args[name]) for name in ("operation", "phase", "line") if each.args.get(name)]
    return f" ({', '.join(known)})" if known else ""


def _is_of_key(each: Slice) -> bool:
    """Whether a slice is of a value of the key, and not of an instruction."""
    return "instructions" in each.args


def _value(each: Slice) -> str:
    """`layer=3` of `layer=3 backward`."""
    return each.name.rpartition(" ")[0]


def _tracks(program: Program, device: Device, key: str | None, span: tuple[float, float]) -> Iterator[tuple[str, list[Slice]]]:
    """The tracks of a key, of collectives and of instructions, each with the slices of a span; the longest if they are many."""
    collectives = program.collectives
    tracks = [(name, slices) for name, slices in timeline.list_tracks(program, device) if name != timeline.STEPS]
    of_key = [(name, slices) for name, slices in tracks if key and name.partition(" (")[0] == key]
    others = [(name, slices) for name, slices in tracks if name.partition(" (")[0] == timeline.INSTRUCTIONS]
    communication = [each for _, slices in others for each in slices if each.name in collectives]
    for name, slices in (*of_key, *([("communication", communication)] if communication else []), *others):
        within = [each for each in slices if span[0] <= each.start < span[1]]
        if within:
            longest = sorted(within, key=lambda each: each.start - each.end)[:_SLICES]
            yield name, sorted(longest, key=lambda each: each.start)


def _choose_colours(tracks: Sequence[tuple[str, Sequence[Slice]]]) -> dict[str, int]:
    """A colour for each of the values that take most time."""
    times = Counter[str]()
    for _, slices in tracks:
        for each in slices:
            if _is_of_key(each):
                times[_value(each)] += int(each.end - each.start)
    return {value: number for number, (value, _) in enumerate(times.most_common(COLOURS))}
