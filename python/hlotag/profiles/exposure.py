# SPDX-License-Identifier: Apache-2.0
"""How long did collectives take, and how much of that time did the device compute nothing?"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hlotag.profiles.trace import Device

_Floats = NDArray[np.float64]
_Span = tuple[str, float, float]


@dataclass
class Runs:
    """The runs of collectives in the steps of a device, by start.

    Attributes:
        names: By run, the instruction that starts it.
        step: By run, the step.
        begins: By run, its start in nanoseconds.
        ends: By run, its end, or that of the step.
        arrived: By run, when the last of the devices that exchange values started it; its own start if that is unknown.
        last: By run, the name of the device that `arrived` last; empty if it did not wait for another one.
    """

    names: list[str]
    step: NDArray[np.int64]
    begins: _Floats
    ends: _Floats
    arrived: _Floats
    last: list[str]


@dataclass
class Exposure:
    """The times of `Runs`, in seconds.

    Attributes:
        seconds: By run, the time from its start to its end.
        exposed: By run, the part of it in which the device computed nothing. Collectives that run at once have equal parts, so
            the sum is the time in which the device only communicated.
        waiting: By run, the part of `seconds` until the last device arrived.
        exposed_waiting: By run, the part of `exposed` until then.
    """

    seconds: _Floats
    exposed: _Floats
    waiting: _Floats
    exposed_waiting: _Floats


def find_runs(device: Device, starts: Mapping[str, str]) -> Runs:
    """Finds the runs of collectives in the steps of a device.

    `starts` has, by the name of a collective, or of the end of its asynchronous pair, the instruction that starts it.
    """
    spans = sorted(_spans(device, starts), key=lambda span: span[1])
    steps = np.array(device.steps, np.float64).reshape(-1, 2)
    begins = np.array([start for _, start, _ in spans])
    step = np.searchsorted(steps[:, 0], begins, side="right") - 1
    inside = step >= 0
    inside[inside] = begins[inside] < steps[step[inside], 1]
    begins, step = begins[inside], step[inside]
    ends = np.minimum(np.array([end for _, _, end in spans])[inside], steps[step, 1])
    names = [name for (name, _, _), kept in zip(spans, inside, strict=True) if kept]
    return Runs(names, step, begins, ends, begins.copy(), [""] * len(names))


def measure(device: Device, runs: Runs, computing: Container[str]) -> Exposure:
    """Measures the runs of collectives on a device.

    `computing` are the instructions that compute: no collectives, and no loops, which only run others.
    """
    others = [n for n, name in enumerate(device.names) if name in computing]
    instants, part = divide_time(runs.begins, runs.ends, np.array(device.starts)[others], np.array(device.ends)[others])

    def exposed(ends: _Floats) -> _Floats:
        return (np.interp(ends, instants, part) - np.interp(runs.begins, instants, part)) / 1e9

    if not runs.names:
        return Exposure(*[np.zeros(0)] * 4)
    seconds, waiting = (runs.ends - runs.begins) / 1e9, (runs.arrived - runs.begins) / 1e9
    return Exposure(seconds, exposed(runs.ends), waiting, exposed(runs.arrived))


def _spans(device: Device, starts: Mapping[str, str]) -> Iterator[_Span]:
    """Yields each run of a collective: its first instruction, start and end.

    That is the transfer, if the trace has it; from the start of an asynchronous pair to the end of its other end, if the trace
    has both; or else the event of the instruction.
    """
    transfers = [span for span in device.transfers if span[0] in starts]
    yield from transfers
    seen = {name for name, _, _ in transfers}
    events: dict[str, list[tuple[float, float]]] = {}
    for name, start, end in zip(device.names, device.starts, device.ends, strict=True):
        if name in starts and starts[name] not in seen:
            events.setdefault(name, []).append((start, end))
    for name, found in events.items():
        first = starts[name]
        ends = [each for other, each in events.items() if starts[other] == first and other != first]
        if name != first:
            if first not in events:
                yield from ((first, start, end) for start, end in found)
        elif ends and len(ends[0]) == len(found):
            yield from ((first, start, end) for (start, _), (_, end) in zip(sorted(found), sorted(ends[0]), strict=True))
        else:
            yield from ((first, start, end) for start, end in found)


def divide_time(begins: _Floats, ends: _Floats, starts: _Floats, stops: _Floats) -> tuple[_Floats, _Floats]:
    """By instant, the time until then in which only spans run, divided by how many run at once.

    `starts` and `stops` are those of what else runs.
    """
    instants = np.concatenate([begins, ends, starts, stops])
    ones, others = np.ones(len(begins), np.int64), np.ones(len(starts), np.int64)
    order = np.argsort(instants, kind="stable")
    spans = np.cumsum(np.concatenate([ones, -ones, 0 * others, 0 * others])[order])
    computing = np.cumsum(np.concatenate([0 * ones, 0 * ones, others, -others])[order])
    instants = instants[order]
    is_alone = (computing[:-1] == 0) & (spans[:-1] > 0)
    part = np.cumsum(np.where(is_alone, np.diff(instants) / np.maximum(spans[:-1], 1), 0.0))
    return instants, np.concatenate([[0.0], part])
