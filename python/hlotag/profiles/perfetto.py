# SPDX-License-Identifier: Apache-2.0
"""A profile as a timeline: a trace in Chrome's format, which Perfetto reads, with a track for each key."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any

from hlotag.profiles.program import Program
from hlotag.profiles.trace import Device

_INSTRUCTIONS = "instructions"


def dumps(program: Program, devices: Sequence[Device], *, compressed: bool = False) -> bytes:
    """Writes the events of a profile as JSON. Each device is a process with a track of instructions and one for each key.

    An event of a key is named by the value with most work and its phase; events that follow each other with one name are one.
    """
    document = {"traceEvents": events(program, devices), "displayTimeUnit": "ns"}
    text = json.dumps(document, separators=(",", ":")).encode()
    return gzip.compress(text, mtime=0) if compressed else text


def events(program: Program, devices: Sequence[Device]) -> list[dict[str, Any]]:
    """The events of `dumps`, as dictionaries."""
    return [event for process, device in enumerate(devices) for event in _events(program, device, process)]


def _events(program: Program, device: Device, process: int) -> Iterator[dict[str, Any]]:
    yield _name("process_name", process, 0, device.name)
    lanes = sorted(set(device.lanes))
    tracks = [_INSTRUCTIONS, *program.keys]
    numbers = {(track, lane): n for n, (track, lane) in enumerate((track, lane) for track in tracks for lane in lanes)}
    for (track, lane), thread in numbers.items():
        yield _name("thread_name", process, thread, track if len(lanes) == 1 else f"{track} ({lanes.index(lane) + 1})")
    order = sorted(range(len(device.names)), key=lambda n: (device.lanes[n], device.starts[n]))
    names = set(device.names)
    latest: dict[int, tuple[dict[str, Any], int]] = {}  # By track, the last event and the place in the order that follows it.
    for place, n in enumerate(order):
        name, lane = device.names[n], device.lanes[n]
        if name.startswith("\x00") or program.runs_any(name, names):
            continue
        span = {"ts": device.starts[n] / 1e3, "dur": (device.ends[n] - device.starts[n]) / 1e3}
        yield _event(process, numbers[_INSTRUCTIONS, lane], name, span)
        for key, label in _labels(program, name).items():
            thread = numbers[key, lane]
            event, follows = latest.get(thread, (None, -1))
            if event is not None and event["name"] == label and follows == place:
                event["dur"] = span["ts"] + span["dur"] - event["ts"]
            else:
                if event is not None:
                    yield event
                event = _event(process, thread, label, span)
            latest[thread] = event, place + 1
    yield from (event for event, _ in latest.values())


def _labels(program: Program, name: str) -> dict[str, str]:
    """By key, the value of an instruction that has most work, and its phase."""
    work: dict[str, dict[str, float]] = {}
    for part in program.parts(name):
        for key, value in program.values(part.op).items():
            labels, label = work.setdefault(key, {}), f"{key}={value} {part.phase}"
            labels[label] = labels.get(label, 0.0) + part.weight
    return {key: max(labels, key=labels.__getitem__) for key, labels in work.items()}


def _event(process: int, thread: int, name: str, span: dict[str, float]) -> dict[str, Any]:
    return {"ph": "X", "pid": process, "tid": thread, "name": name, **span}


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}
