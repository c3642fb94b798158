# SPDX-License-Identifier: Apache-2.0
"""A profile as a timeline: a trace in Chrome's format, which Perfetto reads, with tracks for steps, instructions and keys."""

from __future__ import annotations

import bisect
import gzip
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlotag.profiles.program import Program
    from hlotag.profiles.trace import Device


STEPS, INSTRUCTIONS = "steps", "instructions"
"""The names of tracks; others have those of keys. Several of one name are numbered: `instructions (2)`."""


@dataclass
class Slice:
    """What a track shows for some time: an instruction, or instructions of one value that follow each other.

    Attributes:
        name: The text on it.
        start: In nanoseconds.
        end: In nanoseconds.
        step: The number of the step; -1 for none.
        args: What Perfetto shows of a slice that is selected.
    """

    name: str
    start: float
    end: float
    step: int
    args: dict[str, Any]


def dumps(program: Program, devices: Sequence[Device], *, compressed: bool = False) -> bytes:
    """Writes the events of a profile as JSON.

    Each device is a process with a track of steps, tracks of instructions, one for each thread or stream, and a track for each
    key. A slice of a key is named by the value with most work, and its phase. Instructions that follow each other in a step with
    one name are one slice, unless something else ran between them. Where values run at once, a key has further tracks.
    """
    document = {"traceEvents": events(program, devices), "displayTimeUnit": "ns"}
    text = json.dumps(document, separators=(",", ":")).encode()
    return gzip.compress(text, mtime=0) if compressed else text


def events(program: Program, devices: Sequence[Device]) -> list[dict[str, Any]]:
    """The events of `dumps`, as dictionaries."""
    return [event for process, device in enumerate(devices) for event in _events(program, device, process)]


def _events(program: Program, device: Device, process: int) -> Iterator[dict[str, Any]]:
    yield _name("process_name", process, 0, device.name)
    for thread, (track, slices) in enumerate(list_tracks(program, device)):
        yield _name("thread_name", process, thread, track)
        yield {"ph": "M", "pid": process, "tid": thread, "name": "thread_sort_index", "args": {"sort_index": thread}}
        for each in slices:
            span = {"ts": each.start / 1e3, "dur": (each.end - each.start) / 1e3}
            yield {"ph": "X", "pid": process, "tid": thread, "name": each.name, **span, "args": each.args}


def list_tracks(program: Program, device: Device) -> Iterator[tuple[str, list[Slice]]]:
    """Yields the tracks of a device, each with its name and slices."""
    yield STEPS, [Slice(f"step {n}", start, end, n, {}) for n, (start, end) in enumerate(device.steps)]
    shown = _list_instructions(program, device)
    lanes = sorted({lane for lane, _ in shown})
    for lane in lanes:
        yield _numbered(INSTRUCTIONS, lanes.index(lane), len(lanes)), [each for at, each in shown if at == lane]
    work = _Work(program, device)
    labels = {name: _labels(program, name) for name in {each.name for _, each in shown}}
    for key in program.keys:
        named = [(labels[each.name][key], each) for _, each in shown if key in labels[each.name]]
        tracks = _lay_out(_join(named, work))
        yield from ((_numbered(key, n, len(tracks)), slices) for n, slices in enumerate(tracks))


def _numbered(track: str, number: int, count: int) -> str:
    return f"{track} ({number + 1})" if count > 1 else track


def _list_instructions(program: Program, device: Device) -> list[tuple[int, Slice]]:
    """The instructions that ran, by start, each with its thread or stream. Loops whose instructions have events are left out."""
    names = set(device.names)
    args = {name: _args(program, name) for name in names if not (name.startswith("\x00") or program.runs_any(name, names))}
    begins = [start for start, _ in device.steps]
    found = []
    for name, lane, start, end in zip(device.names, device.lanes, device.starts, device.ends, strict=True):
        if name in args:
            step = bisect.bisect_right(begins, start) - 1
            step = step if step >= 0 and start < device.steps[step][1] else -1
            found.append((lane, Slice(name, start, end, step, args[name] | ({"step": step} if step >= 0 else {}))))
    return sorted(found, key=lambda each: (each[1].start, -each[1].end))


def _args(program: Program, name: str) -> dict[str, Any]:
    """What to show of an instruction: its operation with most work, and the flops of one event."""
    found: dict[str, Any] = {"flops": program.flops(name)}
    if parts := program.parts(name):
        op, more = parts[0].op, len(parts) - 1
        found |= {"operation": op.title + (f" and {more} more" if more else ""), "phase": parts[0].phase, "scope": parts[0].scope}
        found |= {"line": f"{op.file}:{op.line}"} if op.file else {}
    return found


class _Work:
    """When a device did anything at all: instructions of other programs count, loops whose instructions have events do not."""

    def __init__(self, program: Program, device: Device) -> None:
        names = set(device.names)
        outer = {name for name in names if program.runs_any(name, names)}
        spans = sorted(
            (start, end) for name, start, end in zip(device.names, device.starts, device.ends, strict=True) if name not in outer
        )
        self._starts = [start for start, _ in spans]
        self._latest = list(itertools.accumulate((end for _, end in spans), max))

    def is_in(self, start: float, end: float) -> bool:
        """Whether anything ran between two instants."""
        count = bisect.bisect_left(self._starts, end)
        return start < end and count > 0 and self._latest[count - 1] > start


def _join(named: Sequence[tuple[str, Slice]], work: _Work) -> list[Slice]:
    """Joins instructions with one label, by start, that are in one step, if nothing ran between them."""
    found: list[Slice] = []
    latest: dict[str, Slice] = {}
    for label, each in named:
        last = latest.get(label)
        if last is None or not last.step == each.step >= 0 or work.is_in(last.end, each.start):
            shared = {name: each.args[name] for name in ("phase", "line", "step") if name in each.args}
            last = latest[label] = Slice(label, each.start, each.end, each.step, {**shared, "instructions": 0, "flops": 0})
            found.append(last)
        if last.args.get("line") != each.args.get("line"):
            last.args.pop("line", None)  # Of several lines, none is the slice's.
        last.end = max(last.end, each.end)
        last.args["instructions"] += 1
        last.args["flops"] += each.args["flops"]
    return found


def _lay_out(slices: Sequence[Slice]) -> list[list[Slice]]:
    """Puts slices, which are in order, on as few tracks as show none over another one."""
    tracks: list[list[Slice]] = []
    for each in slices:
        track = next((track for track in tracks if track[-1].end <= each.start), None)
        if track is None:
            tracks.append([each])
        else:
            track.append(each)
    return tracks


def _labels(program: Program, name: str) -> dict[str, str]:
    """By key, the value of an instruction that has most work, and its phase."""
    work: dict[str, dict[str, float]] = {}
    for part in program.parts(name):
        for key, value in program.values(part.op).items():
            labels, label = work.setdefault(key, {}), f"{key}={value} {part.phase}"
            labels[label] = labels.get(label, 0.0) + part.weight
    return {key: max(labels, key=labels.__getitem__) for key, labels in work.items()}


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}
