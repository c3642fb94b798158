# SPDX-License-Identifier: Apache-2.0
"""The times of a program's instructions, from an XSpace, which JAX's profiler writes.

The names of planes, lines and stats are those of OpenXLA's `xplane_schema.cc`. On CPU, the planes of all devices are one, and
each thread is a line. On GPU, each stream is a line, and the events are kernels. On TPU, one line has the instructions of the
core, another one those that run beside it.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hlotag._text import list_some
from hlotag._util.groups import group
from hlotag.errors import ParseError

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

    def add(self, name: str, lane: int, start: float, end: float) -> None:
        """Adds an event."""
        self.names.append(name)
        self.lanes.append(lane)
        self.starts.append(start)
        self.ends.append(end)


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


def read(
    file: Path,
    module: str,
    kernels: Mapping[str, str] | None = None,
    once: Container[str] = (),
    readers: Mapping[str, Iterable[str]] | None = None,
) -> list[Device]:
    """Reads what a program did on each device that ran it. Raises ParseError if the file is no trace, or it did not run in it.

    Args:
        file: The trace.
        module: The name of the program's module, `jit_step`; with the program's number, `jit_step(6)`, that program alone.
        kernels: By the name of a GPU's kernel, the instruction that it computes, for kernels of command buffers.
        once: The instructions that run once in a run, which tells runs apart where events do not say to which they belong.
        readers: By instruction, those that start only when it has ended (`dependences.find_readers`). On CPU, the event that
            says that an instruction has ended comes late.
    """
    reader = _read(file, module, kernels or {}, readers or {})
    found = [device for device in reader.devices.values() if not {OTHER, UNNAMED, GRAPH}.issuperset(device.names)]
    if not found:
        seen = list_some([name for name, _ in reader.modules.most_common()]) or "none"
        raise ParseError(f"{file}: no instruction of {module} ran while this was traced; programs in the trace: {seen}")
    for device in found:
        device.steps = device.steps or reader.find_annotated(device) or _list_runs(device, once)
    return found


def list_programs(file: Path) -> list[str]:
    """The names and numbers of the programs that ran in a trace, `jit_step(6)`, most time first.

    Raises ParseError if the file is no trace.
    """
    return [name for name, _ in _read(file, "", {}, {}).modules.most_common() if name]


def is_of(program: str, wanted: str) -> bool:
    """Whether a program is the one that is wanted by name, `jit_step`, or by name and number, `jit_step(6)`."""
    return wanted in (program, split_name(program)[0])


def split_name(program: str) -> tuple[str, str]:
    """The name of a program's module and the program's number: `jit_step` and "6" of `jit_step(6)`; "" for none."""
    name, _, number = program.partition("(")
    return name, number.removesuffix(")")


def _read(file: Path, module: str, kernels: Mapping[str, str], readers: Mapping[str, Iterable[str]]) -> _Reader:
    from jax.profiler import ProfileData

    try:
        planes = list(ProfileData.from_serialized_xspace(file.read_bytes()).planes)
    except (RuntimeError, ValueError) as error:
        raise ParseError(f"{file}: not a trace of JAX's profiler: {error}") from None
    reader = _Reader(module, kernels, readers)
    for plane in planes:
        if plane.name.startswith("/device:"):
            reader.read_device(plane)
        elif plane.name.startswith("/host:CPU"):
            reader.read_host(plane)
    return reader


class _Reader:
    """Reads planes of a trace."""

    def __init__(self, module: str, kernels: Mapping[str, str], readers: Mapping[str, Iterable[str]]) -> None:
        self.devices: dict[str, Device] = {}
        self.modules: Counter[str] = Counter()  # Nanoseconds of events by program, those in a loop with those of the loop.
        self._module = module
        self._kernels = kernels
        self._readers = readers
        self._annotations: list[_Span] = []
        self._cpus: dict[Any, Device] = {}  # By number.
        self._lane = 0

    def read_device(self, plane: Any) -> None:
        """Reads the plane of a GPU, a TPU core or another accelerator."""
        lines = {line.name: line for line in plane.lines}
        device = self.devices.setdefault(plane.name, Device(plane.name))
        programs = lines[_MODULES].events if _MODULES in lines else ()  # `jit_step(1234)`, with a fingerprint.
        runs = sorted(((each.name, each.start_ns, each.end_ns) for each in programs), key=lambda run: run[1])
        device.steps = [(start, end) for name, start, end in runs if self._is_ours(name)]
        streams = [line for name, line in lines.items() if name not in _DERIVED and name != _ASYNC]
        for line in [lines[_OPS]] if _OPS in lines else streams:
            self._lane += 1
            for event in line.events:
                self._add_kernel(device, event, runs)
        if _ASYNC in lines:
            device.transfers = self._read_transfers(device, lines[_ASYNC].events)
            device.beside = sum(end - start for _, start, end in device.transfers) / 1e9

    def _read_transfers(self, device: Device, events: Iterable[Any]) -> list[tuple[str, float, float]]:
        """What ran beside the instructions: the start of each pair, until what it moved is read."""
        starts = group(sorted(zip(device.names, device.starts, strict=True), key=lambda each: each[1]))
        found = []
        for event in events:
            name, begin = _instruction_of(event.name), event.start_ns
            read = _first_after(begin, (starts.get(reader, ()) for reader in self._readers.get(name, ())))
            found.append((name, begin, min(event.end_ns, read)))
        return found

    def read_host(self, plane: Any) -> None:
        """Reads the plane of the host: its threads run the instructions of CPU devices, and mark steps."""
        found: dict[Any, tuple[Device, int]] = {}  # By producer, which the end of an instruction names.
        late: list[tuple[Any, float]] = []
        for line in plane.lines:
            self._lane += 1
            without: set[str] = set()  # Names of events that are no instructions.
            for event in line.events:
                if (name := event.name) in without:
                    continue
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    device = self._add_thunk(event, stats)
                    found[stats.get("_p")] = device, len(device.names) - 1
                elif name.startswith(_END):
                    late.append((stats.get("_c"), event.start_ns))
                elif "step_num" in stats:
                    self._annotations.append((event.start_ns, event.end_ns))
                else:
                    without.add(name)
        self._move_late_ends(found, late)

    def _add_thunk(self, event: Any, stats: dict[str, Any]) -> Device:
        device = self._cpus.get(number := stats.get("device_ordinal", 0))
        if device is None:
            device = self._cpus[number] = self.devices[f"CPU:{number}"] = Device(f"CPU:{number}")
        program = _program_of(stats)
        is_ours = self._is_ours(program)
        if not is_ours:
            self.modules[program] += event.end_ns - event.start_ns
        device.add(stats["hlo_op"] if is_ours else OTHER, self._lane, event.start_ns, event.end_ns)
        device.runs.append(stats.get("run_id") if is_ours else None)
        return device

    def _is_ours(self, program: str) -> bool:
        return is_of(program, self._module)

    def _move_late_ends(self, found: dict[Any, tuple[Device, int]], late: Iterable[tuple[Any, float]]) -> None:
        """Gives an instruction that ended in another thread a lane of its own, until it ended.

        XLA's event that says so may come long after what reads the value has started.
        """
        free: list[tuple[float, int]] = []  # (end of the last event, lane)
        moved = []
        starts = {name: _starts_by_run(device) for name, device in self.devices.items()}
        for producer, said in late:
            device, event = found.get(producer, (None, 0))
            if device is None:
                continue
            end = min(said, self._first_read(device, event, starts[device.name]))
            if end > device.ends[event]:
                moved.append((device.starts[event], end, device, event))
        for start, end, device, event in sorted(moved, key=lambda each: each[:2]):
            place = next((n for n, (until, _) in enumerate(free) if until <= start), None)
            if place is None:
                self._lane += 1
                place = len(free)
                free.append((0.0, self._lane))
            free[place] = end, free[place][1]
            device.ends[event], device.lanes[event] = end, free[place][1]

    def _first_read(self, device: Device, event: int, starts: _Starts) -> float:
        """When the first reader of an instruction starts, in the same run."""
        run, readers = device.runs[event], self._readers.get(device.names[event], ())
        return _first_after(device.starts[event], (starts.get((run, reader), ()) for reader in readers))

    def _add_kernel(self, device: Device, event: Any, runs: Sequence[tuple[str, float, float]]) -> None:
        stats = dict(event.stats)
        start, end = event.start_ns, event.end_ns
        module = _program_of(stats) or _find_running(runs, start)
        if module:
            self.modules[module] += end - start
        if module and not self._is_ours(module):
            name = OTHER
        elif not _GRAPHS.isdisjoint(stats):  # The kernels of a graph have the name of its launch.
            name = self._kernels.get(event.name, GRAPH)
        elif not module:
            name = UNNAMED
        else:
            name = str(stats.get("hlo_op") or _instruction_of(event.name))
        device.add(name, self._lane, start, end)

    def find_annotated(self, device: Device) -> list[_Span]:
        """The steps that the host marked with `StepTraceAnnotation`, if instructions ran in them."""
        starts, spans = np.sort(device.starts), sorted(self._annotations)
        counts = [np.diff(np.searchsorted(starts, span))[0] for span in spans]
        return [span for span, count in zip(spans, counts, strict=True) if count]


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


_Starts = dict[tuple[Any, str], list[float]]


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
