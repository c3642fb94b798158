# SPDX-License-Identifier: Apache-2.0
"""The truth about time by tag, which uses nothing of hlotag: an own parser of HLO text, an own clock, costs that it measures.

A program marks its parts with `part(name)`: a tag and a named scope of one name. XLA writes the scope into the names of
instructions, where the truth finds it. The truth takes three things by definition, as hlotag does:

- Within a fusion, an instruction that only chooses an element, such as a transpose, takes no time: XLA emits no loop for it.
- Reading and writing memory is not divided: it belongs to the instruction that computes the value. A fusion of moves alone
  divides by the elements that each moves.
- An event that runs branches is divided as if all of them ran.

Not judged ("untold") is the time of what XLA made, such as a copy: it has no name. hlotag has rows of its own for it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData

import hlotag
from hlotag.audits.collect import audit_and_compile
from hlotag.profiles.record import options_of
from time_costs import cost_of, product_cost, reduction_cost

_PART = re.compile(r"\bpart_(\w+?)\b")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (.*)$")
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,]*)\]")
_NOTHING = {"parameter", "constant", "bitcast", "tuple", "get-tuple-element", "after-all", "opt-barrier"}
# In a fusion, these only choose which element is read.
_RENUMBERS = {"broadcast", "reshape", "reverse", "slice", "transpose"}
_COLLECTIVES = {"all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter"}
_YNN = '"kind":"__ynn_fusion"'
_PRODUCTS = {"dot", "convolution"}
_RUNS_OTHERS = {"fusion", "while", "call", "conditional"}


@contextmanager
def part(name: str) -> Iterator[None]:
    """A block that is tagged, and named, as a part of the program."""
    with hlotag.tagged({"part": name}), jax.named_scope(f"part_{name}"):
        yield


@dataclass
class Text:
    """An instruction in HLO text."""

    name: str
    opcode: str
    shape: str
    operands: list[str]
    rest: str
    computation: str

    @property
    def elements(self) -> int:
        """The elements of the first array of the result."""
        found = _ARRAY.search(self.shape)
        return math.prod(int(size) for size in found[2].split(",") if size) if found else 0

    @property
    def dimensions(self) -> list[int]:
        """The dimensions of the first array of the result."""
        found = _ARRAY.search(self.shape)
        return [int(size) for size in found[2].split(",") if size] if found else []

    @property
    def op_name(self) -> str:
        """The name in the metadata."""
        found = re.search(r'op_name="((?:[^"\\]|\\.)*)"', self.rest)
        return found[1] if found else ""

    @property
    def called(self) -> list[str]:
        """The computations of a fusion, a call or a loop."""
        names = re.findall(r"(?:calls|to_apply|body|true_computation|false_computation)=%?([\w.-]+)", self.rest)
        branches = re.search(r"branch_computations=\{([^}]*)\}", self.rest)
        return names + ([each.strip().removeprefix("%") for each in branches[1].split(",")] if branches else [])


@dataclass
class Module:
    """The computations of a module, by name."""

    computations: dict[str, list[Text]] = field(default_factory=lambda: defaultdict(list))
    instructions: dict[str, Text] = field(default_factory=dict)


def parse(text: str) -> Module:
    """Parses the text of a module."""
    module, computation = Module(), ""
    for line in text.splitlines():
        if (start := _COMPUTATION.match(line)) and " = " not in line.partition("(")[0]:
            computation = start[1]
        elif computation and (found := _INSTRUCTION.match(line)):
            made = _instruction(found[1], found[2], computation)
            module.computations[computation].append(made)
            module.instructions[made.name] = made
    return module


def _instruction(name: str, text: str, computation: str) -> Text:
    depth, at = 0, 0
    if text.startswith("("):  # The shape of a tuple.
        for at, letter in enumerate(text):  # noqa: B007
            depth += (letter == "(") - (letter == ")")
            if not depth:
                break
        at += 1
    else:
        at = text.index(" ")
    shape, rest = text[:at], text[at:].strip()
    opcode, _, rest = rest.partition("(")
    depth, end = 1, 0
    for end, letter in enumerate(rest):  # noqa: B007
        depth += (letter == "(") - (letter == ")")
        if not depth:
            break
    operands = re.findall(r"%([\w.-]+)", rest[:end]) or re.findall(
        r"([a-zA-Z_][\w.-]*)(?=,|$)", re.sub(r"/\*.*?\*/", "", rest[:end])
    )
    return Text(name, opcode.strip(), shape, operands, rest[end + 1 :], computation)


def _numbers(text: str, name: str) -> list[int]:
    found = re.search(name + r"=\{([\d,]*)\}", text)
    return [int(size) for size in found[1].split(",") if size] if found else []


def _trips(instruction: Text) -> int:
    found = re.search(r'"known_trip_count":\{"n":"(\d+)"', instruction.rest) if instruction.opcode == "while" else None
    return int(found[1]) if found else 1


def work_of(module: Module, instruction: Text) -> float:
    """The work of one run: flops of products, else elements; for what runs others, the work of these."""
    opcode = instruction.opcode
    if opcode in _RUNS_OTHERS:
        inside = (each for name in instruction.called for each in module.computations[name])
        return sum(work_of(module, each) for each in inside) * _trips(instruction)
    if opcode in _NOTHING or opcode.endswith("-done"):
        return 0.0
    operands = [module.instructions[name] for name in instruction.operands if name in module.instructions]
    work = float(instruction.elements)
    if opcode == "dot":
        work *= 2 * math.prod(operands[0].dimensions[axis] for axis in _numbers(instruction.rest, "lhs_contracting_dims"))
    elif opcode == "convolution":
        labels = re.search(r"dim_labels=\w+_(\w+)->", instruction.rest)
        assert labels
        kernel = operands[1].dimensions
        work *= 2 * math.prod(kernel) / kernel[labels[1].index("o")]
    elif opcode in ("reduce", "sort", "reduce-window", "select-and-scatter"):
        work = float(max(operands[0].elements, instruction.elements))
    elif opcode == "dynamic-update-slice":
        work = float(operands[1].elements)
    elif opcode == "scatter":
        work = float(operands[-1].elements)
    return work


Place = tuple[str, str]


def _place(op_name: str, *, differentiates: bool) -> Place | None:
    """The part and phase in the first of the merged names of an instruction; None for a name without its callers."""
    name = op_name.partition(";")[0]
    if "jit(" not in name:
        return None
    parts = _PART.findall(name)
    phase = "other" if differentiates else "forward"
    if "transpose(" in name:
        phase = "recomputed" if "rematted_computation" in name else "backward"
    elif "jvp(" in name:
        phase = "forward"
    return (parts[-1] if parts else "", phase)


def cost_of_run(module: Module, instruction: Text, *, is_ynn: bool) -> float:
    """The time of an instruction beside others in its event: its work times what its opcode costs here.

    By definition, opcodes and platforms that `time_costs` does not measure cost as much as an addition.
    """
    opcode = instruction.opcode
    work = work_of(module, instruction)
    if jax.default_backend() != "cpu" or not work:
        return work
    if opcode == "dot":
        return work * product_cost()
    if opcode == "reduce":
        operand = module.instructions[instruction.operands[0]]
        reduced = _numbers(instruction.rest, "dimensions")
        length = math.prod(operand.dimensions[axis] for axis in reduced)
        return work * reduction_cost(length, is_minor=len(operand.dimensions) - 1 in reduced, is_ynn=is_ynn)
    return work * cost_of(opcode, is_ynn=is_ynn)


def shares_of(module: Module, name: str) -> dict[Place, float] | None:
    """How the time of an event divides among parts and phases, by the costs of the instructions in it.

    Instructions without a name have the rest of it. None if names do not tell: XLA made all of the event, or inlined a function
    and lost the names of its callers.
    """
    differentiates = any("transpose(" in each.op_name for each in module.instructions.values())
    event = module.instructions[name]
    inside = list(_inside(module, event, 1.0, is_ynn=False))
    computing = [run for run in inside if event.opcode != "fusion" or run[0].opcode not in _RENUMBERS]
    if not any(work_of(module, each) for each, *_ in computing):  # A fusion of moves takes the time of the moves.
        computing = inside
    found: Counter[Place | None] = Counter()
    nameless = 0.0
    for each, times, is_ynn in computing:
        cost = cost_of_run(module, each, is_ynn=is_ynn) * times
        if each.op_name:
            found[_place(each.op_name, differentiates=differentiates)] += cost
        else:
            nameless += cost
    total = sum(found.values()) + nameless
    if not any(found.values()) or found[None]:
        return None
    return {place: cost / total for place, cost in found.items() if place}


def parts_by_shape(module: Module, original: Module, name: str) -> set[str] | None:
    """The parts that a product without a name may be of: those of the program's products of its shape. None for all others."""
    products = [each for each, *_ in _inside(module, module.instructions[name], 1.0, is_ynn=False) if each.opcode in _PRODUCTS]
    if len(products) != 1:
        return None
    alike = [each for each in original.instructions.values() if _kind(each) == _kind(products[0])]
    found = [_PART.findall(each.op_name) for each in alike]
    if not all(parts or "jit(" in each.op_name for parts, each in zip(found, alike, strict=True)):
        return None  # A function whose callers the name lacks.
    return {parts[-1] if parts else "" for parts in found} or None


def _kind(instruction: Text) -> tuple[str, list[int]]:
    return instruction.opcode, sorted(size for size in instruction.dimensions if size > 1)


def _inside(module: Module, instruction: Text, times: float, *, is_ynn: bool) -> Iterator[tuple[Text, float, bool]]:
    """The instructions that an event runs, how often, and whether YNNPACK does."""
    if instruction.opcode not in _RUNS_OTHERS:
        yield instruction, times, is_ynn
        return
    is_ynn = is_ynn or _YNN in instruction.rest
    for computation in instruction.called:
        for inner in module.computations[computation]:
            yield from _inside(module, inner, times * _trips(instruction), is_ynn=is_ynn)


@dataclass
class Times:
    """Seconds of a step by instruction, and of the step."""

    of: dict[str, float]
    step: float

    @property
    def idle(self) -> float:
        """Seconds in which nothing ran."""
        return self.step - sum(self.of.values())


_Event = tuple[float, float, int, str]
"""Start, end, lane and instruction."""


def clock(folder: Path, module_name: str, module: Module, last: int) -> Times:
    """Measures the mean of the last steps of a trace: at each instant, each thread or stream that runs has an equal part.

    An event that holds events of others has no time but what they leave. A loop whose body has events is not counted itself.
    """
    devices, steps = _read(folder, module_name, module)
    steps = steps[-last:]
    totals: Counter[str] = Counter()
    for leaves in devices.values():
        for begin, finish in steps:
            totals.update(_sweep([event for event in leaves if begin <= event[0] < finish], finish))
    count = len(steps) * len(devices)
    length = sum(finish - begin for begin, finish in steps) / len(steps)
    return Times({name: nanoseconds / count / 1e9 for name, nanoseconds in totals.items()}, length / 1e9)


def exposed(folder: Path, module_name: str, module: Module, last: int) -> float:
    """The part of the last steps of a trace in which a device runs a collective and nothing else; the mean over devices."""
    devices, steps = _read(folder, module_name, module)
    steps = steps[-last:]
    alone = 0.0
    for leaves in devices.values():
        for begin, finish in steps:
            inside = [event for event in leaves if begin <= event[0] < finish]
            instants = sorted({instant for start, end, *_ in inside for instant in (start, min(end, finish))})
            for at, until in itertools.pairwise(instants):
                running = [module.instructions[name].opcode for start, end, _, name in inside if start <= at < end]
                alone += (until - at) * bool(running and _COLLECTIVES.issuperset(running))
    return alone / len(devices) / sum(finish - begin for begin, finish in steps)


def _read(folder: Path, module_name: str, module: Module) -> tuple[dict[object, list[_Event]], list[tuple[float, float]]]:
    """By device, the events that hold no other instruction's; and the steps.

    What XLA says of the end of an instruction is late where a user of its value has started.
    """
    file = max(folder.rglob("*.xplane.pb"), key=lambda each: each.stat().st_mtime_ns)
    devices: dict[object, list[_Event]] = defaultdict(list)
    steps: list[tuple[float, float]] = []
    ends: dict[object, float] = {}
    starts: dict[object, tuple[object, int]] = {}
    runs: dict[tuple[object, object, str], list[float]] = defaultdict(list)
    run_of: dict[object, object] = {}
    lane = 0
    for plane in ProfileData.from_serialized_xspace(file.read_bytes()).planes:
        for line in plane.lines:
            lane += 1
            for event in line.events:
                stats = dict(event.stats)
                if stats.get("hlo_module") == module_name and "hlo_op" in stats:
                    device = stats.get("device_ordinal", plane.name)
                    starts[stats.get("_p")] = device, len(devices[device])
                    run_of[stats.get("_p")] = stats.get("run_id")
                    runs[device, stats.get("run_id"), str(stats["hlo_op"])].append(event.start_ns)
                    devices[device].append((event.start_ns, event.end_ns, lane, str(stats["hlo_op"])))
                elif event.name.startswith("end: "):
                    ends[stats.get("_c")] = event.start_ns
                elif "step_num" in stats:
                    steps.append((event.start_ns, event.end_ns))
    users = _users(module)
    for number, (producer, said) in enumerate(ends.items()):
        if producer in starts:
            device, index = starts[producer]
            start, was, _, name = devices[device][index]
            read = (at for user in users[name] for at in runs.get((device, run_of[producer], user), ()) if at > start)
            end = min(said, min(read, default=said))
            if end > was:
                devices[device][index] = start, end, -1 - number, name
    leaves = {}
    for device, events in devices.items():
        seen = {event[3] for event in events}
        leaves[device] = [event for event in events if not _holds(module, event[3], seen)]
    return leaves, sorted(steps)


def _users(module: Module) -> dict[str, set[str]]:
    """By instruction, what cannot start before it has ended: the users of its value, what these run, and itself."""
    found: dict[str, set[str]] = defaultdict(set)
    fused = {name for each in module.instructions.values() if each.opcode == "fusion" for name in each.called}
    for each in module.instructions.values():
        if each.computation in fused or each.opcode in ("bitcast", "get-tuple-element", "tuple"):
            continue
        pending = [each]
        for user in pending:  # The list grows.
            if user.opcode in ("while", "call", "conditional"):
                pending += [inner for name in user.called for inner in module.computations[name]]
        found[each.name].add(each.name)
        for made in {made for operand in each.operands for made in _made(module, operand)}:
            found[made] |= {user.name for user in pending}
    return found


def _made(module: Module, name: str, element: int | None = None) -> set[str]:
    """The instructions whose results a value is, or an element of it."""
    each = module.instructions.get(name)
    if each is None:
        return set()
    if each.opcode == "get-tuple-element":
        index = re.search(r"index=(\d+)", each.rest)
        return _made(module, each.operands[0], int(index[1]) if index else None)
    if each.opcode in ("tuple", "bitcast"):
        chosen = each.operands if element is None or each.opcode == "bitcast" else [each.operands[element]]
        return {made for operand in chosen for made in _made(module, operand)}
    inner = each.called if each.opcode in ("call", "while") else []
    return {name, *(made for called in inner for made in _made(module, module.computations[called][-1].name, element))}


def _holds(module: Module, name: str, seen: set[str]) -> bool:
    """Whether an instruction is a loop, a branch or a call whose instructions have events of their own."""
    instruction = module.instructions.get(name)
    if instruction is None or instruction.opcode not in ("while", "call", "conditional"):
        return False
    inside = {each.name for computation in instruction.called for each in module.computations[computation]}
    return bool(inside & seen) or any(_holds(module, each, seen) for each in inside)


def _sweep(events: list[_Event], finish: float) -> Counter[str]:
    """Divides time among events: at each instant, equally among lanes, and in a lane to the event that began last."""
    instants = sorted({instant for start, end, *_ in events for instant in (start, min(end, finish))})
    found: Counter[str] = Counter()
    pending = sorted(events)
    running: list[_Event] = []
    for begin, end in itertools.pairwise(instants):
        while pending and pending[0][0] <= begin:
            running.append(pending.pop(0))
        running = [event for event in running if min(event[1], finish) > begin]
        lanes = {lane: name for _, _, lane, name in running}
        for name in lanes.values():
            found[name] += (end - begin) / len(lanes)
    return found


@dataclass
class Verdict:
    """How far a profile is from the truth, as parts of a step.

    Attributes:
        wrong: In a wrong part or phase, among what the truth can tell.
        untold: In events whose names do not tell.
        misplaced: At a wrong instruction.
        vanished: Idle, although an instruction ran.
    """

    wrong: float
    untold: float
    misplaced: float
    vanished: float


def judge(module: Module, original: Module, times: Times, profile: hlotag.profiles.Profile) -> Verdict:
    """Compares a profile with the truth about the same trace, event by event: errors in two events do not cancel.

    `original` is the module before optimization. Of a product without a name, only the part is judged.
    """
    assert profile.program is not None
    wrong = untold = 0.0
    for name, seconds in times.of.items():
        if name not in module.instructions:
            untold += seconds
            continue
        ours: Counter[Place] = Counter()
        for each in profile.program.parts(name):
            ours[profile.program.values(each.op).get("part", ""), each.phase] += each.weight
        truth = shares_of(module, name)
        if truth is None and (parts := parts_by_shape(module, original, name)):
            wrong += seconds * sum(weight for (part, _), weight in ours.items() if part not in parts)
            continue
        if truth is None:
            untold += seconds
            continue
        wrong += seconds * sum(max(0.0, share - ours[place]) for place, share in truth.items())
        untold += seconds * (1 - sum(truth.values()))
    found = {hot.name: hot.seconds for hot in profile.instructions}
    misplaced = sum(abs(found.get(name, 0.0) - times.of.get(name, 0.0)) for name in found.keys() | times.of.keys()) / 2
    idle = sum(row.seconds for row in profile.rest if row.value == "idle")
    return Verdict(*(part / times.step for part in (wrong, untold, misplaced, idle - times.idle)))


_STEPS = 4


def judge_program(make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]], folder: Path) -> Verdict:
    """Compiles, traces and profiles a program, a function and its arguments; judges the profile. Leaves the trace in `folder`."""
    function, arguments = make()
    with hlotag.stage():
        program = audit_and_compile(function, arguments, {}, options_of)
        original = parse(jax.jit(function).lower(*arguments).as_text("hlo", debug_info=True))
    module = parse(program.compiled.as_text())
    jax.block_until_ready(program.compiled(*arguments))
    with jax.profiler.trace(folder):
        for number in range(_STEPS):
            with jax.profiler.StepTraceAnnotation("step", step_num=number):
                jax.block_until_ready(program.compiled(*arguments))
    profile = hlotag.read_profile(folder, program.audit)
    return judge(module, original, clock(folder, program.audit.name, module, len(profile.steps)), profile)


def show(name: str, found: Verdict) -> str:
    """A line on a program."""
    return f"{name:24}wrong {found.wrong:6.1%}   vanished {abs(found.vanished):6.1%}   untold {found.untold:6.1%}"
