# SPDX-License-Identifier: Apache-2.0
"""How long does a device wait in a collective for other devices, and for which one?

Bytes move when the last device of a group has started the collective. Until then the others wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hlotag.hlo.partners import Partners
from hlotag.profiles.clock import Times
from hlotag.profiles.exposure import Runs
from hlotag.profiles.trace import Device

# A run of a collective on all devices: its instruction, the step, and the how manieth run in the step it is.
_Run = tuple[str, int, int]


def find_arrivals(devices: Sequence[Device], runs: Sequence[Runs], partners: Mapping[str, Partners]) -> None:
    """Writes into the runs of each device when the last of its partners arrived, and which one that was.

    `partners` are by collective. A run keeps its own start where the trace lacks a partner, and where it ended before a partner
    arrived, so that it did not wait.
    """
    numbers = [number_of(device.name) for device in devices]
    places = [_places(found) for found in runs]
    by_number = dict(zip(numbers, zip(runs, places, strict=True), strict=True))
    for own, found, number in zip(runs, places, numbers, strict=True):
        for run, n in found.items():
            others = partners.get(run[0], {}).get(number, frozenset())
            begins = _begins(run, others, by_number)
            if len(begins) == len(others) > 1:
                last = max(begins, key=begins.__getitem__)
                if own.begins[n] < begins[last] <= own.ends[n]:
                    own.arrived[n], own.last[n] = begins[last], devices[numbers.index(last)].name


def number_of(name: str) -> int:
    """The number of a device, the last part of its name: 3 of `/device:GPU:3`; -1 for none."""
    number = name.rpartition(":")[2]
    return int(number) if number.isdecimal() else -1


def _places(runs: Runs) -> dict[_Run, int]:
    seen: Counter[tuple[str, int]] = Counter()
    found: dict[_Run, int] = {}
    for n, (name, step) in enumerate(zip(runs.names, runs.step.tolist(), strict=True)):
        found[name, step, seen[name, step]] = n
        seen[name, step] += 1
    return found


def _begins(run: _Run, numbers: frozenset[int], runs: Mapping[int, tuple[Runs, dict[_Run, int]]]) -> dict[int, float]:
    """When each of some devices started a run; those that did not are left out."""
    found: dict[int, float] = {}
    for number in sorted(numbers & runs.keys()):
        of_device, places = runs[number]
        if run in places:
            found[number] = float(of_device.begins[places[run]])
    return found


@dataclass(frozen=True)
class Spread:
    """How a collective differs between devices.

    Attributes:
        least: Seconds of a step on the device that is in it for the shortest time: the others wait for it, if any.
        most: Seconds on the device that is in it for the longest time.
        slowest: The device that the others wait for most; empty if none waits.
    """

    least: float = 0.0
    most: float = 0.0
    slowest: str = ""


def spreads(traces: Sequence[Mapping[str, Times]], left_out: int) -> dict[str, Spread]:
    """The spread of each collective, from the times of each device in each trace, without the first steps of the first trace."""
    seconds: dict[str, dict[str, list[float]]] = {}
    waited: dict[str, Counter[str]] = {}
    for number, devices in enumerate(traces):
        for device, times in devices.items():
            for n in np.flatnonzero(times.transfer.any(1)):
                after = times.transfer[n, left_out if not number else 0 :]
                seconds.setdefault(times.names[n], {}).setdefault(device, []).extend(after.tolist())
            for name, of_device in times.waited.items():
                waited.setdefault(name, Counter()).update(of_device)
    means = {name: [float(np.mean(each)) for each in found.values() if each] for name, found in seconds.items()}
    return {
        name: Spread(min(found), max(found), max(waited[name], key=waited[name].__getitem__) if waited.get(name) else "")
        for name, found in means.items()
        if found
    }
