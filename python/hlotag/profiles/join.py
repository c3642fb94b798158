# SPDX-License-Identifier: Apache-2.0
"""The time of each value: the times of instructions, joined with their operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlotag._text import count, list_some
from hlotag.profiles import clock, exposure, trace, undivided, waiting
from hlotag.profiles.clock import Times
from hlotag.profiles.dependences import Independence
from hlotag.profiles.profile import Profile
from hlotag.profiles.program import Part, Program
from hlotag.profiles.rates import Amounts, Meter
from hlotag.profiles.waiting import Spread
from hlotag.results.tags import Op
from hlotag.results.times import GRAPHS, MEANINGS, NOTHING, OTHERS, UNDIVIDED, UNNAMED, Hot, Limits, Row, Transfer, in_words

_Floats = NDArray[np.float64]
_Groupings = Sequence[tuple[str, Callable[[Part], str]]]
# Limit of listed instructions.
_HOT = 200
# Limit of the products that are named beside a collective.
_PRODUCTS = 20
# The first steps of a trace are left out if they take this much longer than most; two at most.
_SLOW, _MOST_WARM_UP = 1.5, 2
_NO_TAGS = 'No operation has a tag. by="source" groups by line, by="scope:2" by named scopes.'
_REST = {trace.OTHER: OTHERS, trace.GRAPH: GRAPHS, trace.UNNAMED: UNNAMED}


def profile_of(
    program: Program,
    devices: Sequence[trace.Device],
    by: str | Sequence[str] | None = None,
    *,
    earlier: Sequence[Sequence[trace.Device]] = (),
    may_warm_up: bool = False,
    untraced_seconds: float | None = None,
    source_root: str | None = None,
    limits: Limits | None = None,
) -> Profile:
    """Makes a profile, with times that are means over the devices.

    `by` is as for `Program.grouping`; `source_root` is the folder of files that views may quote. `earlier` has the devices of
    further traces, whose steps count too. If steps `may_warm_up`, slow first ones are left out. `limits` are those of a device.
    Raises ParseError if a trace is of another program.
    """
    groupings = program.grouping(by)
    devices = sorted(devices, key=lambda device: device.name)
    starts = {name: each.start for name, each in program.collectives.items()}
    measured = [_measure(program, found, starts) for found in (*earlier, devices)]
    each = [_mean(list(of_device.values())) for of_device in measured]
    times, left_out = _without_warm_up(_concatenate(each), _MOST_WARM_UP if may_warm_up else 0)
    busy = dict(zip(times.names, times.busy.sum(1), strict=True))
    program.check_fits({name: seconds for name, seconds in busy.items() if seconds and name not in _REST})
    meter = Meter(program, dict(zip(times.names, map(float, times.events.mean(1)), strict=True)))
    doubts = undivided.Doubts(program, groupings)
    rows = [
        *_rows_of_keys(program, times, groupings, meter, limits),
        *_rows_of_rest(program, times, groupings, (meter, doubts), limits),
    ]
    parts, wall = [program.sure_parts(name, groupings) for name in times.names], times.wall.mean(1)
    seconds = {name: float(each) for name, each in zip(times.names, wall, strict=True) if each and name not in _REST}
    without_tag = np.array([sum(part.weight for part in found if not program.values(part.op)) for found in parts])
    is_split = np.array(
        [len({tuple([read(p) for _, read in groupings]) for p in found if p.weight}) > 1 for found in parts], bool
    )
    found = Profile(
        name=program.name,
        devices=tuple(device.name for device in devices),
        steps=tuple(map(float, times.steps)),
        rows=tuple(rows),
        instructions=_hottest(program, times, float(times.steps.mean())),
        transfers=_with_products(program, meter, seconds, _transfers(program, times, waiting.spreads(measured, len(left_out)))),
        untagged=float(wall @ without_tag),
        split=float(wall @ is_split),
        busy=float(times.busy.sum()) / len(times.steps),
        untraced_seconds=untraced_seconds,
        limits=limits,
        products_at_limit=limits.seconds_for(meter.products()) if limits else None,
        source_root=source_root,
        program=program,
        timeline=devices,
        seconds=seconds,
    )
    beside = sum(device.beside for device in devices) / len(devices) / len(times.steps)
    return replace(found, notes=(*_notes(found, beside, devices, left_out), *doubts.notes(found), *program.notes))


def _rows_of_keys(program: Program, times: Times, groupings: _Groupings, meter: Meter, limits: Limits | None) -> Iterator[Row]:
    """The rows of each grouping, with their rates."""
    total = float(times.steps.mean())
    for title, value_of in groupings:
        found = _sums(times, lambda name, read=value_of: _shares(program.sure_parts(name, groupings), read))
        work = meter.by_place(lambda name: program.sure_parts(name, groupings), value_of)
        yield from (_with_rates(_row(title, *place, sums, total), work.get(place), limits) for place, sums in found.items())


def _rows_of_rest(
    program: Program, times: Times, groupings: _Groupings, known: tuple[Meter, undivided.Doubts], limits: Limits | None
) -> Iterator[Row]:
    """The rows of time in no operation."""
    (meter, doubts), total = known, float(times.steps.mean())

    def row_of_rest(name: str) -> str:
        return "" if program.sure_parts(name, groupings) else _REST.get(name) or doubts.row(name)

    rest = _sums(times, lambda name: {(row, ""): 1.0} if (row := row_of_rest(name)) else {})
    rest[NOTHING, ""] = _Sums(np.maximum(times.steps - times.wall.sum(0), 0.0))
    work = meter.of_rest(row_of_rest)
    for value in MEANINGS:
        if (value, "") in rest:
            yield _with_rates(_row("", value, "", rest[value, ""], total), work.get(value), limits)


def _measure(program: Program, devices: Sequence[trace.Device], starts: Mapping[str, str]) -> dict[str, Times]:
    """By device, its times in a trace."""
    runs = [exposure.find_runs(device, starts) for device in devices]
    waiting.find_arrivals(devices, runs, program.partners)
    return {
        device.name: clock.measure(device, program.runs_any, starts, found) for device, found in zip(devices, runs, strict=True)
    }


@dataclass
class _Sums:
    """What one row sums: the time of each step, and over all steps the events, and the time that was split."""

    wall: _Floats
    busy: float = 0.0
    events: float = 0.0
    split: float = 0.0
    exposed: float = 0.0


def _sums(times: Times, shares: Callable[[str], dict[tuple[str, str], float]]) -> dict[tuple[str, str], _Sums]:
    """Sums the times of instructions: `shares` says by value and phase which part of an instruction's time each row has."""
    found: dict[tuple[str, str], _Sums] = {}
    busy, events, exposed = times.busy.sum(1), times.events.sum(1), times.exposed.sum(1)
    for n, name in enumerate(times.names):
        parts = shares(name) if events[n] or exposed[n] else {}
        for place, weight in parts.items():
            sums = found.setdefault(place, _Sums(np.zeros(len(times.steps))))
            sums.wall += weight * times.wall[n]
            sums.busy += weight * busy[n]
            sums.events += events[n]
            sums.exposed += weight * exposed[n]
            sums.split += weight * times.wall[n].sum() if len(parts) > 1 else 0.0
    return found


def _shares(parts: Iterable[Part], value_of: Callable[[Part], str]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for part in parts:
        if part.weight:
            place = value_of(part), part.phase
            found[place] = found.get(place, 0.0) + part.weight
    return found


def _row(key: str, value: str, phase: str, sums: _Sums, total: float) -> Row:
    count, seconds = len(sums.wall), float(sums.wall.mean())
    return Row(
        key,
        value,
        phase,
        seconds,
        share=seconds / total if total else 0.0,
        events=float(sums.events) / count,
        split=float(sums.split) / count,
        busy=float(sums.busy) / count,
        steps=tuple(map(float, sums.wall)),
        exposed=float(sums.exposed) / count,
    )


def _with_rates(row: Row, work: Amounts | None, limits: Limits | None) -> Row:
    """A row with its work, and with what share of the device's limits it reaches."""
    work = work or Amounts()
    row = replace(row, flops=sum(work.flops.values()), bytes=work.bytes)
    if limits is None or not row.seconds:
        return row
    least = limits.seconds_for(work.flops)
    of_flops = None if least is None else least / row.seconds
    return replace(row, of_flops=of_flops, of_bandwidth=row.bytes_per_second / limits.bandwidth)


def _mean(found: Sequence[Times]) -> Times:
    """The mean of the devices, over the steps that all of them have."""
    count = min(len(times.steps) for times in found)
    names = list(dict.fromkeys(name for times in found for name in times.names))
    index = {name: n for n, name in enumerate(names)}
    mean = {field: np.zeros((len(names), count)) for field in clock.BY_NAME}
    for times in found:
        rows = [index[name] for name in times.names]
        for field, values in mean.items():
            values[rows] += getattr(times, field)[:, :count] / len(found)
    return Times(names, **mean, waited={}, steps=np.mean([times.steps[:count] for times in found], 0))


def _concatenate(found: Sequence[Times]) -> Times:
    """The steps of several traces as those of one."""
    names = list(dict.fromkeys(name for times in found for name in times.names))
    index = {name: n for n, name in enumerate(names)}
    joined = {field: np.zeros((len(names), sum(len(times.steps) for times in found))) for field in clock.BY_NAME}
    begin = 0
    for times in found:
        rows, columns = [index[name] for name in times.names], slice(begin, begin := begin + len(times.steps))
        for field, values in joined.items():
            values[rows, columns] = getattr(times, field)
    return Times(names, **joined, waited={}, steps=np.concatenate([times.steps for times in found]))


def _without_warm_up(times: Times, most: int) -> tuple[Times, _Floats]:
    """The times without the first steps, `most` at most, that took much longer than the others; returns these steps too."""
    usual, count = float(np.median(times.steps)), 0
    while count < min(most, len(times.steps) - 2) and times.steps[count] > _SLOW * usual:
        count += 1
    after = slice(count, None)
    left = {field: getattr(times, field)[:, after] for field in clock.BY_NAME}
    return Times(times.names, **left, steps=times.steps[after]), times.steps[:count]


def _hottest(program: Program, times: Times, total: float) -> tuple[Hot, ...]:
    """The instructions that took most time."""
    seconds, events = times.wall.mean(1), times.events.mean(1)
    order = [int(n) for n in np.argsort(-seconds, kind="stable") if events[n] and times.names[n] not in _REST]
    return tuple([_hot(program, times.names[n], float(seconds[n]), total, float(events[n])) for n in order[:_HOT]])


def _transfers(program: Program, times: Times, spreads: Mapping[str, Spread]) -> tuple[Transfer, ...]:
    """The collectives that ran, the most exposed first."""
    means = {field: getattr(times, field).mean(1) for field in clock.BY_NAME}
    order = [int(n) for n in np.lexsort((-means["transfer"], -means["exposed"])) if means["transfer"][n]]
    found = []
    for n in order:
        name, of_collective = times.names[n], {field: float(values[n]) for field, values in means.items()}
        found.append(_transfer(program, name, of_collective, spreads.get(name, Spread())))
    return tuple(found)


def _with_products(
    program: Program, meter: Meter, seconds: Mapping[str, float], transfers: Sequence[Transfer]
) -> tuple[Transfer, ...]:
    """The transfers with the products that could run beside them, those with most time first."""
    products = sorted(filter(meter.is_product, seconds), key=lambda name: -seconds[name])
    found, independence = [], Independence(program.readers)
    for each in transfers:
        names = independence.find(each.name, products) if each.exposed and program.readers else []
        found.append(replace(each, independent=sum(seconds[name] for name in names), products=tuple(names[:_PRODUCTS])))
    return tuple(found)


def _transfer(program: Program, name: str, means: Mapping[str, float], spread: Spread) -> Transfer:
    found = program.collectives[name]
    transfer = Transfer(
        *(name, found.collective, means["transfer"], means["exposed"], found.bytes, found.group, means["events"]),
        waiting=means["waiting"],
        exposed_waiting=means["exposed_waiting"],
        least=spread.least,
        most=spread.most,
        slowest=spread.slowest,
        scope=found.scope,
    )
    parts = program.parts(name)
    if not parts:
        return transfer
    return replace(transfer, **_about(program, name, program.served_by(parts[0].op), parts[0].phase))


def _hot(program: Program, name: str, seconds: float, total: float, events: float) -> Hot:
    parts = [part for part in program.parts(name) if part.weight]
    hot = Hot(name, program.opcode(name), seconds, seconds / total if total else 0.0, events)
    if not parts:
        return hot
    return replace(hot, more=len(parts) - 1, **_about(program, name, parts[0].op, parts[0].phase))


def _about(program: Program, name: str, op: Op, phase: str) -> dict[str, Any]:
    """What a row of an instruction says of its operation."""
    tags = [f"{key}={value}" for key, values in program.values_by_work(name).items() for value in values]
    return {"operation": op.title, "phase": phase, "file": op.file, "line": op.line, "tags": tuple(tags)}


def _notes(profile: Profile, beside: float, devices: Sequence[trace.Device], left_out: _Floats) -> Iterator[str]:
    """Yields sentences: what else to know of a profile."""
    total = profile.total_seconds
    if profile.split >= 0.005 * total:
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
    graphs = sum(row.seconds for row in profile.rest if row.value == GRAPHS)
    if graphs >= 0.005 * total:
        yield f"{graphs / total:.0%} of the time is in command buffers. {MEANINGS[GRAPHS]}"
    if profile.untraced_seconds is None and total - running >= 0.3 * total and profile.devices[0].startswith("CPU"):
        yield (
            f"{1 - running / total:.0%} of the time is idle. On CPU, the profiler itself takes a moment for each "
            "instruction: hlotag.profile(step, ...) says how long a step takes without it."
        )
    if profile.untraced_seconds:
        yield f"A step takes {in_words(profile.untraced_seconds)} without the profiler."
    if profile.limits:
        yield f"Limits of {profile.limits}."
    if len(left_out):
        took = list_some([in_words(seconds) for seconds in left_out])
        yield f"Left out as warm-up: {count(len(left_out), 'first step')}, which took {took}."
    if beside:
        yield f"Transfers and asynchronous collectives overlapped the instructions for {in_words(beside)}; no row has them."
    counts = {len(device.steps) for device in devices}
    if len(counts) > 1:
        yield f"The devices have {min(counts)} to {max(counts)} steps in the trace; the first {min(counts)} count."
    if not any(row.key or row.value == UNDIVIDED for row in profile.rows):
        yield _NO_TAGS
