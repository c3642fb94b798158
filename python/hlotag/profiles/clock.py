# SPDX-License-Identifier: Apache-2.0
"""The share of each instruction in a step's time, where several run at once or one in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hlotag.profiles.exposure import Runs, divide_time
from hlotag.profiles.exposure import measure as measure_exposure
from hlotag.profiles.trace import Device

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass
class Times:
    """The time of each instruction in each step, in seconds.

    Attributes:
        names: The instructions.
        wall: By instruction and step, its part of the step. Where several lanes run at once, each has an equal part.
        busy: By instruction and step, how long it ran, whatever ran beside it.
        events: By instruction and step, how often it ran.
        transfer: By collective and step, the time from its start to its end.
        exposed: By collective and step, its part of the time in which the device only communicated.
        waiting: By collective and step, the part of `transfer` in which the device waited for other devices.
        exposed_waiting: By collective and step, the part of `exposed` in which it did.
        steps: By step, how long it was.
        waited: By collective, the seconds that the device waited for each other device; empty in a mean.
    """

    names: list[str]
    wall: _Floats
    busy: _Floats
    events: _Floats
    transfer: _Floats
    exposed: _Floats
    waiting: _Floats
    exposed_waiting: _Floats
    steps: _Floats
    waited: dict[str, Counter[str]] = field(default_factory=dict)


BY_NAME = ("wall", "busy", "events", "transfer", "exposed", "waiting", "exposed_waiting")
"""The fields of `Times` by instruction and step."""


def measure(device: Device, runs_any: Callable[[str, Container[str]], bool], starts: Mapping[str, str], runs: Runs) -> Times:
    """Divides the time of each step among the instructions that ran in it.

    An instruction that runs in another one is taken from it. `runs_any` says whether an instruction, such as a loop, runs others
    that have events: it has no time of its own, since on CPU these may run in other threads, and end later. `starts` has, by the
    name of a collective or of the end of its asynchronous pair, the instruction that starts it; `runs` are those of collectives.
    `wall` sums to no more than `steps`; the rest is time in which nothing ran.
    """
    names = list(dict.fromkeys([*device.names, *(starts[name] for name in device.communicating if name in starts)]))
    index = {name: n for n, name in enumerate(names)}
    of_event = np.array([index[name] for name in device.names], np.int64)
    steps = np.array(device.steps, np.float64).reshape(-1, 2)
    start, end, lane = np.array(device.starts), np.array(device.ends), np.array(device.lanes, np.int64)

    contains = np.array([runs_any(name, index) for name in names], bool)
    keep = ~contains[of_event] if len(of_event) else np.zeros(0, bool)
    step = np.searchsorted(steps[:, 0], start, side="right") - 1
    keep &= (step >= 0) & (start < steps[np.maximum(step, 0), 1])
    kept = np.flatnonzero(keep)
    kept = kept[np.lexsort((-end[kept], start[kept], lane[kept]))]
    of_event, start, lane, step = of_event[kept], start[kept], lane[kept], step[kept]
    end = np.minimum(end[kept], steps[step, 1])
    parent = _nest(start, end, lane)
    wall = _own(_share(start, end, parent), parent) / 1e9
    busy = _own(end - start, parent) / 1e9

    computing = {name for name, is_outer in zip(names, contains, strict=True) if not is_outer and name not in starts}
    exposure = measure_exposure(device, runs, computing)
    ran = np.array([index[name] for name in runs.names], np.int64), runs.step

    def summed(rows: _Ints, columns: _Ints, values: _Floats) -> _Floats:
        place, size = rows * len(steps) + columns, len(names) * len(steps)
        return np.bincount(place, values, size).reshape(len(names), len(steps))

    return Times(
        names,
        summed(of_event, step, wall),
        summed(of_event, step, busy),
        summed(of_event, step, np.ones(len(step))),
        summed(*ran, exposure.seconds),
        summed(*ran, exposure.exposed),
        summed(*ran, exposure.waiting),
        summed(*ran, exposure.exposed_waiting),
        (steps[:, 1] - steps[:, 0]) / 1e9,
        _waited(runs, exposure.waiting),
    )


def _waited(runs: Runs, waiting: _Floats) -> dict[str, Counter[str]]:
    """By collective, how long the device waited for each other device."""
    found: dict[str, Counter[str]] = {}
    for name, last, seconds in zip(runs.names, runs.last, waiting.tolist(), strict=True):
        if last:
            found.setdefault(name, Counter())[last] += seconds
    return found


def _nest(start: _Floats, end: _Floats, lane: _Ints) -> _Ints:
    """By event, the event of its lane that it runs in, or -1. Of two events that only overlap, the earlier is cut, in `end`.

    The events are sorted by lane and start, longer ones first.
    """
    parent = np.full(len(start), -1, np.int64)
    if np.all((start[1:] >= end[:-1]) | (lane[1:] != lane[:-1])):
        return parent
    open_events: list[int] = []
    for n in range(len(start)):
        while open_events and (lane[open_events[-1]] != lane[n] or end[open_events[-1]] <= start[n]):
            open_events.pop()
        while open_events and end[open_events[-1]] < end[n]:
            end[open_events.pop()] = start[n]
        if open_events:
            parent[n] = open_events[-1]
        open_events.append(n)
    return parent


def _share(start: _Floats, end: _Floats, parent: _Ints) -> _Floats:
    """By event, its part of the time in which it ran: at each instant, one part for each lane that runs."""
    if not len(start):
        return end - start
    outer = parent < 0
    instants, part = divide_time(start[outer], end[outer], np.zeros(0), np.zeros(0))
    return np.interp(end, instants, part) - np.interp(start, instants, part)


def _own(inclusive: _Floats, parent: _Ints) -> _Floats:
    """The time of each event without that of the events in it."""
    inner = parent >= 0
    return np.maximum(inclusive - np.bincount(parent[inner], inclusive[inner], len(inclusive)), 0.0)
