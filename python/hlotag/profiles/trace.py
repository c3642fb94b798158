# SPDX-License-Identifier: Apache-2.0
"""The times of a program's instructions, from an XSpace, which JAX's profiler writes.

The names of planes, lines and stats are those of OpenXLA's `xplane_schema.cc`. On CPU, the planes of all devices are one, and
each thread is a line. On GPU, each stream is a line, and the events are kernels. On TPU, one line has the instructions of the
core, another one those that run beside it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hlotag._text import list_some
from hlotag._util.groups import group
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.profiles.modules import list_modules, split_name

_OPS, _ASYNC, _MODULES = "XLA Ops", "Async XLA Ops", "XLA Modules"
# Lines that XProf derives from those of the streams.
_DERIVED = {"Steps", _OPS, _MODULES, "Framework Ops", "Framework Name Scope", "Source code", "XLA TraceMe", "Launch Stats"}
# The name of an event that says that a thunk of XLA's CPU runtime has ended.
_END = "end: "

# Stats of what runs in a CUDA graph.
_GRAPHS = {"cuda_graph_id", "cuda_graph_exec_id"}

# The names of events that are no instructions of the program.
OTHER = "\x00other program"
UNNAMED = "\x00no instruction"
GRAPH = "\x00command buffer"

_Span = tuple[float, float]
_Starts = dict[tuple[Any, str], list[float]]


@dataclass
class Device:
    """What ran on one device.

    Attributes:
        name: The plane's name, and the device's number on CPU: `/device:GPU:0`.
        names: By event, the instruction, or `OTHER`, `UNNAMED`, `GRAPH`.
        lanes: By event, the thread or stream. Two events of a lane do not overlap, unless one runs in the other.
        starts: By event, its start in nanoseconds.
        ends: By event, its end in nanoseconds.
        runs: By event, what identifies its run of the program, None for other programs; empty on accelerators.
        steps: The steps, each from its start to its end.
        beside: Seconds of transfers and collectives that ran beside the instructions.
        transfers: What ran beside them, on a TPU: the instruction, start and end of each.
    """

    name: str
    names: list[str] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    runs: list[Any] = field(default_factory=list)
    steps: list[_Span] = field(default_factory=list)
    beside: float = 0.0
    transfers: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def communicating(self) -> set[str]:
        """The names of instructions that run, or have transfers beside them."""
        return {*self.names, *(name for name, _, _ in self.transfers)}


def find(path: Path) -> Path:
    """Finds the newest trace in the folder that `jax.profiler.trace` wrote to. A path of an `.xplane.pb` file is itself.

    Raises ParseError if there is none.
    """
    if path.is_file():
        return path
    files = sorted(path.rglob("*.xplane.pb"), key=lambda file: (file.stat().st_mtime_ns, file.name))
    if not files:
        raise ParseError(f"{path}: no file *.xplane.pb; name the folder that jax.profiler.trace wrote to")
    return files[-1]


def is_of(program: str, wanted: str) -> bool:
    """Whether a program is the one that is wanted by name, `jit_step`, or by name and number, `jit_step(6)`."""
    return wanted in (program, split_name(program)[0])


@dataclass
class _Events:
    """Every event of a device, of all programs.

    Attributes:
        name: As `Device.name`.
        programs: By event, the program, `jit_step(6)`; empty if the trace names none.
        names: By event, its instruction, or what else it is.
        lanes, starts, ends, runs: As those of `Device`.
        graphs: By the number of an event of a command buffer, the kernel.
        steps: The runs that the trace marks: program, start, end.
        transfers: What ran beside the instructions: the instruction, start and end.
    """

    name: str
    programs: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    runs: list[Any] = field(default_factory=list)
    graphs: dict[int, str] = field(default_factory=dict)
    steps: list[tuple[str, float, float]] = field(default_factory=list)
    transfers: list[tuple[str, float, float]] = field(default_factory=list)

    def add(self, program: str, name: str, lane: int, event: Any) -> None:
        """Adds an event."""
        self.programs.append(program)
        self.names.append(name)
        self.lanes.append(lane)
        self.starts.append(event.start_ns)
        self.ends.append(event.end_ns)

    def of(self, ours: Set[str], kernels: Mapping[str, str]) -> Device:
        """The events as those of some programs and others."""
        names = [
            name if not program or program in ours else OTHER for program, name in zip(self.programs, self.names, strict=True)
        ]
        for event, kernel in self.graphs.items():
            if names[event] != OTHER:
                names[event] = kernels.get(kernel, GRAPH)
        runs = [run if program in ours else None for program, run in zip(self.programs, self.runs, strict=False)]
        return Device(self.name, names, self.lanes.copy(), self.starts, self.ends.copy(), runs)


class Trace:
    """A trace, read once for all programs that ran in it.

    Args:
        file: An `.xplane.pb` file.

    Raises:
        ParseError: The file is no trace of JAX's profiler.
    """

    def __init__(self, file: Path) -> None:
        from jax.profiler import ProfileData

        self.file = file
        self._data = file.read_bytes()
        self._devices: dict[str, _Events] = {}
        self._annotations: list[_Span] = []
        self._producers: dict[Any, tuple[str, int]] = {}  # A device and event, by what the end of an instruction names.
        self._late: list[tuple[Any, float]] = []
        self._lane = 0
        try:
            planes = list(ProfileData.from_serialized_xspace(self._data).planes)
        except (RuntimeError, ValueError) as error:
            raise ParseError(f"{file}: not a trace of JAX's profiler: {error}") from None
        for plane in planes:
            if plane.name.startswith("/device:"):
                self._read_device(plane)
            elif plane.name.startswith("/host:CPU"):
                self._read_host(plane)

    @cached_property
    def programs(self) -> list[str]:
        """The names and numbers of the programs that ran, `jit_step(6)`, most time first."""
        spent: dict[str, float] = {}  # Nanoseconds of events, those in a loop with those of the loop.
        for device in self._devices.values():
            for program, start, end in zip(device.programs, device.starts, device.ends, strict=True):
                spent[program] = spent.get(program, 0.0) + end - start
        return [name for name in sorted(spent, key=spent.__getitem__, reverse=True) if name]

    @cached_property
    def modules(self) -> dict[str, HloModule]:
        """The modules in the trace, by the names and numbers of programs."""
        return list_modules(self._data, self.file)

    def of(
        self,
        module: str,
        kernels: Mapping[str, str] | None = None,
        once: Container[str] = (),
        readers: Mapping[str, Iterable[str]] | None = None,
    ) -> list[Device]:
        """Finds what a program did on each device that ran it. Raises ParseError if it did not run.

        Args:
            module: The name of the program's module, `jit_step`; with the program's number, `jit_step(6)`, that program alone.
            kernels: By the name of a GPU's kernel, the instruction that it computes, for kernels of command buffers.
            once: The instructions that run once in a run, which tells runs apart where events do not say to which they belong.
            readers: By instruction, those that start only when it has ended (`dependences.find_readers`). On CPU, the event that
                says that an instruction has ended comes late.
        """
        readers = readers or {}
        ours = {program for program in self.programs if is_of(program, module)}
        devices = {events.name: events.of(ours, kernels or {}) for events in self._devices.values()}
        self._move_late_ends(devices, readers)
        found = [device for device in devices.values() if not {OTHER, UNNAMED, GRAPH}.issuperset(device.names)]
        if not found:
            seen = list_some(self.programs) or "none"
            raise ParseError(f"{self.file}: no instruction of {module} ran while this was traced; programs in the trace: {seen}")
        for device in found:
            events = self._devices[device.name]
            device.transfers = _end_at_reads(device, events.transfers, readers)
            device.beside = sum(end - start for _, start, end in device.transfers) / 1e9
            marked = [(start, end) for program, start, end in events.steps if is_of(program, module)]
            device.steps = marked or self._find_annotated(device) or _list_runs(device, once)
        return found

    def _read_device(self, plane: Any) -> None:
        """Reads the plane of a GPU, a TPU core or another accelerator."""
        lines = {line.name: line for line in plane.lines}
        device = self._devices.setdefault(plane.name, _Events(plane.name))
        programs = lines[_MODULES].events if _MODULES in lines else ()  # `jit_step(1234)`, with a fingerprint.
        device.steps = sorted(((each.name, each.start_ns, each.end_ns) for each in programs), key=lambda run: run[1])
        streams = [line for name, line in lines.items() if name not in _DERIVED and name != _ASYNC]
        for line in [lines[_OPS]] if _OPS in lines else streams:
            self._lane += 1
            for event in line.events:
                self._add_kernel(device, event)
        if _ASYNC in lines:
            device.transfers = [(_instruction_of(each.name), each.start_ns, each.end_ns) for each in lines[_ASYNC].events]

    def _read_host(self, plane: Any) -> None:
        """Reads the plane of the host: its threads run the instructions of CPU devices, and mark steps."""
        for line in plane.lines:
            self._lane += 1
            without: set[str] = set()  # Names of events that are no instructions.
            for event in line.events:
                if (name := event.name) in without:
                    continue
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    self._add_thunk(event, stats)
                elif name.startswith(_END):
                    self._late.append((stats.get("_c"), event.start_ns))
                elif "step_num" in stats:
                    self._annotations.append((event.start_ns, event.end_ns))
                else:
                    without.add(name)

    def _add_thunk(self, event: Any, stats: dict[str, Any]) -> None:
        name = f"CPU:{stats.get('device_ordinal', 0)}"
        device = self._devices.setdefault(name, _Events(name))
        program = _program_of(stats)
        device.add(program, stats["hlo_op"] if program else OTHER, self._lane, event)
        device.runs.append(stats.get("run_id"))
        self._producers[stats.get("_p")] = name, len(device.names) - 1

    def _add_kernel(self, device: _Events, event: Any) -> None:
        stats = dict(event.stats)
        program = _program_of(stats) or _find_running(device.steps, event.start_ns)
        if not _GRAPHS.isdisjoint(stats):  # The kernels of a graph have the name of its launch.
            device.graphs[len(device.names)] = event.name
            name = GRAPH
        else:
            name = str(stats.get("hlo_op") or _instruction_of(event.name)) if program else UNNAMED
        device.add(program, name, self._lane, event)

    def _move_late_ends(self, devices: Mapping[str, Device], readers: Mapping[str, Iterable[str]]) -> None:
        """Gives an instruction that ended in another thread a lane of its own, until it ended.

        XLA's event that says so may come long after what reads the value has started.
        """
        lane = self._lane
        free: list[tuple[float, int]] = []  # (end of the last event, lane)
        moved = []
        starts = {name: _starts_by_run(device) for name, device in devices.items()}
        for producer, said in self._late:
            name, event = self._producers.get(producer, ("", 0))
            if not name:
                continue
            end = min(said, _first_read(devices[name], event, starts[name], readers))
            if end > devices[name].ends[event]:
                moved.append((devices[name].starts[event], end, devices[name], event))
        for start, end, device, event in sorted(moved, key=lambda each: each[:2]):
            place = next((n for n, (until, _) in enumerate(free) if until <= start), None)
            if place is None:
                lane += 1
                place = len(free)
                free.append((0.0, lane))
            free[place] = end, free[place][1]
            device.ends[event], device.lanes[event] = end, free[place][1]

    def _find_annotated(self, device: Device) -> list[_Span]:
        """The steps that the host marked with `StepTraceAnnotation`, if instructions ran in them."""
        starts, spans = np.sort(device.starts), sorted(self._annotations)
        counts = [np.diff(np.searchsorted(starts, span))[0] for span in spans]
        return [span for span, count in zip(spans, counts, strict=True) if count]


def _first_read(device: Device, event: int, starts: _Starts, readers: Mapping[str, Iterable[str]]) -> float:
    """When the first reader of an instruction starts, in the same run."""
    run, by = device.runs[event], readers.get(device.names[event], ())
    return _first_after(device.starts[event], (starts.get((run, reader), ()) for reader in by))


def _end_at_reads(
    device: Device, transfers: Sequence[tuple[str, float, float]], readers: Mapping[str, Iterable[str]]
) -> list[tuple[str, float, float]]:
    """What ran beside the instructions: the start of each pair, until what it moved is read."""
    if not transfers:
        return []
    starts = group(sorted(zip(device.names, device.starts, strict=True), key=lambda each: each[1]))
    found = []
    for name, begin, end in transfers:
        read = _first_after(begin, (starts.get(reader, ()) for reader in readers.get(name, ())))
        found.append((name, begin, min(end, read)))
    return found


def _list_runs(device: Device, once: Container[str]) -> list[_Span]:
    """The runs of the program; the whole trace, where nothing tells them apart."""
    spans: dict[Any, _Span] = {}
    runs = device.runs or _count_runs(device, once)
    for run, start, end in zip(runs, device.starts, device.ends, strict=False):
        if run is not None:
            first, last = spans.get(run, (start, end))
            spans[run] = (min(first, start), max(last, end))
    return sorted(spans.values()) or [(min(device.starts), max(device.ends))]


def _count_runs(device: Device, once: Container[str]) -> list[int | None]:
    """By event, the number of its run, None for other programs; empty if no instruction runs `once`.

    There are as many runs as events of what runs `once`, though an instruction may be several kernels of a GPU. A run begins
    with the first instruction that each run has equally often.
    """
    starts = group(sorted(zip(device.names, device.starts, strict=True), key=lambda each: each[1]))
    count = min((len(starts[name]) for name in starts if name in once), default=0)
    if not count:
        return []
    ours = (each for name, each in starts.items() if name not in (OTHER, UNNAMED) and len(each) % count == 0)
    first = next(ours)
    begins = first[:: len(first) // count]
    return [
        None if name in (OTHER, UNNAMED) else max(bisect.bisect_right(begins, start), 1)
        for name, start in zip(device.names, device.starts, strict=True)
    ]


def _first_after(instant: float, starts: Iterable[Sequence[float]]) -> float:
    """The first of several lists of instants, each in order, after an instant; infinity for none."""
    after = ((each, bisect.bisect_right(each, instant)) for each in starts)
    return min((each[place] for each, place in after if place < len(each)), default=math.inf)


def _starts_by_run(device: Device) -> _Starts:
    """By run and instruction, when it started, in order."""
    found = group(((run, name), start) for run, name, start in zip(device.runs, device.names, device.starts, strict=False))
    return {place: sorted(starts) for place, starts in found.items()}


def _program_of(stats: Mapping[str, Any]) -> str:
    """The program that an event is of, `jit_step(6)`; without a number if the trace has none, empty for none."""
    name, number = str(stats.get("hlo_module", "")), stats.get("program_id")
    return f"{name}({number})" if name and number is not None else name


def _find_running(runs: Sequence[tuple[str, float, float]], instant: float) -> str:
    """The program that a TPU runs at an instant; empty for none. `runs` are in order."""
    at = bisect.bisect_right(runs, instant, key=lambda run: run[1]) - 1
    return runs[at][0] if at >= 0 and instant < runs[at][2] else ""


def _instruction_of(text: str) -> str:
    """The name of an instruction: TPU's events have its text, `%fusion.1 = f32[8] fusion(...)`."""
    return text.partition(" = ")[0].strip().removeprefix("%")
