# SPDX-License-Identifier: Apache-2.0
"""A profile as drawings on a page: the rows under the device's limits, and the events of one step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from hlotag._text import count, list_some, rate_in_words
from hlotag.reports import breakdown, timeline
from hlotag.reports.timeline import Slice
from hlotag.results.times import Rates, in_words

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile
    from hlotag.profiles.program import Program
    from hlotag.profiles.trace import Device

_WIDTH, _HEIGHT, _MARGIN = 900, 320, 50
# Limit of labelled rows, and of the slices of a track.
_ROWS, _SLICES = 12, 1500
_LANE = 16  # the height of a track
_LABEL = 150  # the width of a track's name


def draw_roofline(profile: Profile, key: str) -> Iterator[str]:
    """The rows of a key by flops for each byte, and flops a second, on logarithmic axes, under the device's limits."""
    points = [(value, each) for value, each in profile.rates(key).items() if each.flops_per_second and each.bytes_per_second]
    if not points:
        return
    axes = _Axes(profile, [each for _, each in points])
    limits = profile.limits
    known = f" The lines are the limits of {escape(limits.name)}." if limits else " The device's limits are unknown."
    yield '<section id="roofline"><h2>Roofline</h2>'
    yield f"<p>Flops a second by flops for each byte, by {escape(key)}.{known}</p>"
    shown = sorted(points, key=lambda point: -point[1].flops_per_second)
    fastest = list_some([f"{value or f'without {key}'} with {_in_words(each)}" for value, each in shown])
    yield breakdown.chart("Roofline", f"The fastest of {count(len(shown), 'value')}: {fastest}.", (_WIDTH, _HEIGHT))
    yield from axes.grid()
    if limits:
        yield from axes.limits(limits.bandwidth, dict(limits.flops))
    for number, (value, each) in enumerate(shown):
        x, y = axes.x(each.flops_per_second / each.bytes_per_second), axes.y(each.flops_per_second)
        name = value or f"without {key}"
        hint = escape(f"{name}: {_in_words(each)}")
        yield f'<circle class="forward" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{hint}</title></circle>'
        if number < _ROWS:
            yield f'<text x="{x + 7:.1f}" y="{y + 4:.1f}">{escape(name[:24])}</text>'
    yield "</svg></section>"


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

    def grid(self) -> Iterator[str]:
        """A line for each power of ten."""
        for power in range(self._x[0], self._x[1] + 1):
            x = self.x(10.0**power)
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{_HEIGHT - 30}"/>'
            yield f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - 12}">{10.0**power:g}</text>'
        for power in range(self._y[0], self._y[1] + 1):
            y = self.y(10.0**power)
            yield f'<line class="grid" x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="tick" x="4" y="{y + 4:.1f}">{rate_in_words(10.0**power)}</text>'

    def limits(self, bandwidth: float, flops: dict[str, float]) -> Iterator[str]:
        """The slope of the bandwidth, and a level for each type."""
        top = max(flops.values())
        left, right = 10.0 ** self._x[0], 10.0 ** self._x[1]
        start = max(left, 10.0 ** self._y[0] / bandwidth)
        yield (
            f'<line class="limit" x1="{self.x(start):.1f}" y1="{self.y(start * bandwidth):.1f}" '
            f'x2="{self.x(top / bandwidth):.1f}" y2="{self.y(top):.1f}"/>'
        )
        for kind, limit in flops.items():
            y = self.y(limit)
            yield f'<line class="limit" x1="{self.x(limit / bandwidth):.1f}" x2="{self.x(right):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="tick end" x="{_WIDTH - 4}" y="{y - 3:.1f}">{escape(kind)}</text>'


def draw_timeline(profile: Profile, key: str | None) -> Iterator[str]:
    """The events of the step in the middle by length, on the device with most of them: tracks by thread or stream, and by key."""
    if profile.program is None or not profile.timeline:
        return
    device = max(profile.timeline, key=lambda each: len(each.names))
    if not device.steps:
        return
    number, (start, end) = sorted(enumerate(device.steps), key=lambda step: step[1][1] - step[1][0])[len(device.steps) // 2]
    tracks = list(_tracks(profile.program, device, key, (start, end)))
    colours = _choose_colours(tracks)
    yield '<section id="timeline"><h2>Timeline</h2>'
    yield f"<p>Step {number} of {escape(device.name)}, {in_words((end - start) / 1e9)}{_legend_of(key)}.</p>"
    yield breakdown.legend({f"c{number}": name for name, number in colours.items()})
    height = len(tracks) * (_LANE + 4) + 20
    yield '<div class="scroll">'
    yield breakdown.chart("Timeline", _answer(tracks, end - start), (_WIDTH + _LABEL, height), "chart wide")
    for place, (name, slices) in enumerate(tracks):
        y = place * (_LANE + 4)
        yield f'<text class="tick" x="0" y="{y + 12}">{escape(name[:24])}</text>'
        yield from (_draw(each, y, (start, end), colours) for each in slices)
    yield f'<text class="tick" x="{_LABEL}" y="{height - 4}">0</text>'
    yield f'<text class="tick end" x="{_WIDTH + _LABEL}" y="{height - 4}">{in_words((end - start) / 1e9)}</text>'
    yield "</svg></div></section>"


def _answer(tracks: Sequence[tuple[str, Sequence[Slice]]], length: float) -> str:
    """What the timeline shows, as a sentence."""
    busy = [f"{name} {sum(each.end - each.start for each in slices) / length:.0%}" for name, slices in tracks]
    return f"How much of the step's {in_words(length / 1e9)} each track has: {list_some(busy, 12)}."


def _draw(each: Slice, y: int, span: tuple[float, float], colours: Mapping[str, int]) -> str:
    """A slice of the step that a span is, at a height."""
    x, width = (_WIDTH * time / (span[1] - span[0]) for time in (each.start - span[0], each.end - each.start))
    kind = f"c{colours.get(_value(each), breakdown.COLOURS)}" if _is_of_key(each) else "none"
    hint = escape(f"{each.name}: {in_words((each.end - each.start) / 1e9)}{_about(each)}")
    place = f'x="{_LABEL + x:.1f}" y="{y}" width="{max(width, 0.3):.1f}" height="{_LANE}"'
    return f'<rect class="{kind}" {place}><title>{hint}</title></rect>'


def _legend_of(key: str | None) -> str:
    return f", by {escape(key)}" if key else ""


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
    return {value: number for number, (value, _) in enumerate(times.most_common(breakdown.COLOURS))}
