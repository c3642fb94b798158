# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of profiles, on traces of known times: nested events, loops, streams, steps, devices, other programs."""

from pathlib import Path
from typing import Any

import pytest

import traces
from hlotag.audits.audit import Audit
from hlotag.errors import ArgumentError, ParseError
from hlotag.profiles import Profile, trace
from hlotag.profiles.join import profile_of
from hlotag.profiles.program import Program
from hlotag.profiles.trace import Trace
from hlotag.reports import timeline
from hlotag.results.tags import Instruction, Op, Tag, TagState

MS = 1_000_000


def operation(number: int, name: str, **fields: Any) -> Op:
    return Op(number, f"stablehlo.{name}", **fields)


# Layer 0 has a product and layer 1 two, of which one is backward. A fusion computes one operation of each, with efforts 3 and 1.
OPS = [
    operation(0, "dot_general", file="/m.py", line=3),
    operation(1, "dot_general", file="/m.py", line=4),
    operation(2, "dot_general", phase="backward"),
    operation(3, "tanh"),
    operation(4, "add"),
    operation(5, "while"),
    operation(6, "sine"),
]
TAGS = [("layer", value, op) for op, value in enumerate("01101")] + [("block", "mlp", 0)]
LOOP = {"effort": 8, "caller": "while.1"}
INSTRUCTIONS = [
    Instruction("dot.1", "dot", ops=(0,), scope="a/b/c", phase="forward", flops=16, **LOOP),
    Instruction("dot.2", "dot", ops=(1,), scope="a/b", phase="forward", **LOOP),
    Instruction("dot.3", "dot", ops=(2,), scope="a", phase="backward", **LOOP),
    Instruction("tanh.1", "tanh", "fusion.1", (3,), phase="forward", effort=3),
    Instruction("add.1", "add", "fusion.1", (4,), phase="forward", effort=1),
    Instruction("while.1", "while", ops=(5,), phase="forward"),
    Instruction("sine.1", "sine", ops=(6,), phase="forward", effort=1),
    Instruction("copy.7", "copy"),
]


def program_of(name: str, tags: Any, instructions: Any, ops: Any = OPS) -> Program:
    tagged = [Tag(key, value, ops[op], TagState.KEPT) for key, value, op in tags]
    return Program(Audit(name, ops, tagged, instructions=instructions))


PROGRAM = program_of("jit_step", TAGS, INSTRUCTIONS)


def thunk(name: str, start: float, duration: float, **stats: Any) -> traces.Event:
    known = {"hlo_op": name, "hlo_module": "jit_step", "run_id": 1, "device_ordinal": 0}
    return name, int(start * MS), int(duration * MS), known | stats


def step(number: int, start: float, duration: float) -> traces.Event:
    return "step", int(start * MS), int(duration * MS), {"step_num": number}


def profiled(tmp_path: Path, planes: traces.Planes, by: Any = None, program: Program = PROGRAM) -> Profile:
    file = traces.write(tmp_path, planes)
    found = profile_of(program, program.read(Trace(file)), by, may_warm_up=True)
    for key in {row.key for row in found.rows if row.key}:
        assert sum(row.seconds for row in found.rows if row.key in ("", key)) == pytest.approx(found.total_seconds)
        assert sum(row.share for row in found.rows if row.key in ("", key)) == pytest.approx(1)
    assert sum(row.seconds for row in found.rest) + found.in_operations == pytest.approx(found.total_seconds)
    return found


def milliseconds(profile: Profile, key: str = "layer") -> dict[tuple[str, str], float]:
    """By value and phase, the time of a step; the rows without a key have no phase."""
    return {(r.value, r.phase): pytest.approx(r.seconds * 1e3, abs=1e-4) for r in profile.rows if r.key in ("", key)}


def host(*events: traces.Event, **threads: list[traces.Event]) -> traces.Planes:
    return {"/host:CPU": {"thread": list(events)} | threads}


def test_each_value_has_its_time_and_the_rest_is_named(tmp_path):
    ours = [thunk(*event) for event in (("dot.1", 1, 3), ("dot.2", 4, 2), ("dot.3", 6, 4), ("copy.7", 10, 1), ("sine.1", 14, 1))]
    found = profiled(tmp_path, host(step(0, 0, 20), *ours, thunk("other.1", 11, 2, hlo_module="jit_other")))
    layers = {("0", "forward"): 3, ("1", "forward"): 2, ("1", "backward"): 4, ("", "forward"): 1}
    rest = {("added by XLA", ""): 1, ("other programs", ""): 2, ("idle", ""): 7}
    assert milliseconds(found) == layers | rest
    assert (found.untagged, found.split, found.busy) == pytest.approx((1e-3, 0, 13e-3))
    assert [(hot.name, hot.source) for hot in found.instructions[:2]] == [("dot.3", ""), ("dot.1", "m.py:3")]


def test_a_fusion_is_divided_by_the_work_of_its_instructions(tmp_path):
    found = profiled(tmp_path, host(thunk("fusion.1", 0, 8)))
    assert milliseconds(found) == {("0", "forward"): 6, ("1", "forward"): 2, ("idle", ""): 0}
    assert found.split == pytest.approx(8e-3)
    assert [row.split for row in found.rows if row.key == "layer"] == pytest.approx([6e-3, 2e-3])


# By name: fields of the instructions in a fusion, and the parts of its time that operations 0, 1 and 2 have.
DIVISIONS = {
    "what computes has the work, not what carries": (
        [{"ops": (0,), "effort": 6}, {"ops": (1,), "carries": (2,), "effort": 2}],
        (6, 2, 0),
    ),
    "a piece of an expansion has its work": ([{"ops": (0,), "effort": 6}, {"parts": (1,), "effort": 2}], (6, 2, 0)),
    "merged operations have equal parts": ([{"ops": (0, 1), "effort": 4}, {"ops": (2,), "effort": 4}], (2, 2, 4)),
    "a loop in it counts as often as it runs": (
        [{"ops": (0,), "effort": 1, "most_runs": 3}, {"ops": (1,), "effort": 5}],
        (3, 5, 0),
    ),
    "without work, each instruction counts alike": ([{"carries": (0,)}, {"carries": (1,)}], (4, 4, 0)),
}


@pytest.mark.parametrize("case", DIVISIONS)
def test_work_belongs_to_instructions(case, tmp_path):
    fields, expected = DIVISIONS[case]
    inside = [Instruction(f"i.{n}", "add", "fusion.1", phase="forward", **each) for n, each in enumerate(fields)]
    program = program_of("jit_step", [("k", str(n), n) for n in range(3)], inside)
    found = profiled(tmp_path, host(thunk("fusion.1", 0, 8)), program=program)
    rows = {value: ms for (value, phase), ms in milliseconds(found, "k").items() if phase}
    assert rows == {str(n): ms for n, ms in enumerate(expected) if ms}


def test_a_call_without_events_inside_has_the_time_of_what_it_runs(tmp_path):
    """XLA's CPU compiler makes one event of a small loop: a call of a computation with the loop."""
    inside = [
        Instruction("call.1", "call"),
        Instruction("while.2", "while", ops=(5,), phase="forward", caller="call.1"),
        Instruction("tanh.2", "tanh", "fusion.2", (3,), phase="forward", effort=3, caller="while.2"),
        Instruction("add.2", "add", ops=(4,), phase="forward", effort=1, caller="while.2"),
    ]
    program = program_of("jit_step", TAGS, inside)
    found = profiled(tmp_path, host(thunk("call.1", 0, 8)), program=program)
    assert milliseconds(found) == {("0", "forward"): 6, ("1", "forward"): 2, ("idle", ""): 0}
    both = profiled(tmp_path, host(thunk("call.1", 0, 8), thunk("add.2", 2, 4)), program=program)
    assert milliseconds(both) == {("1", "forward"): 4, ("idle", ""): 4}


# By name: the events of a step of 10 ms, those of a second thread, the milliseconds of layer 0 and of both phases of layer 1, and
# in how many events each instruction ran.
OVERLAPS = {
    "loops and what runs in an instruction count once": (
        [thunk("while.1", 0, 10), thunk("dot.1", 1, 6), thunk("dot.2", 2, 1), thunk("dot.2", 4, 2), thunk("dot.3", 8, 1)],
        *([], (3, 3, 1), {"dot.1": 1, "dot.2": 2, "dot.3": 1}),
    ),
    "events that only overlap count once": (
        [thunk("dot.1", 0, 6), thunk("dot.2", 4, 5)],
        [],
        (4, 5, 0),
        {"dot.1": 1, "dot.2": 1},
    ),
    "threads that run at once share the time": (
        *([thunk("dot.1", 0, 6)], [thunk("dot.2", 4, 4)], (5, 3, 0), {"dot.1": 1, "dot.2": 1}),
    ),
    "an instruction may end in another thread": (
        [thunk("dot.1", 0, 1, _p=7), thunk("dot.2", 1, 1, _p=8), thunk("dot.3", 3, 1, _p=9)],
        [(f"end: dot.{n}", end * MS, 10, {"_c": 6 + n}) for n, end in ((1, 8), (2, 2), (3, 6))],
        *((6, 0.5, 1.5), {"dot.1": 1, "dot.2": 1, "dot.3": 1}),
    ),
}
PLACES = ("0", "forward"), ("1", "forward"), ("1", "backward")


@pytest.mark.parametrize("case", OVERLAPS)
def test_time_counts_once(case, tmp_path):
    first, second, expected, counts = OVERLAPS[case]
    found = profiled(tmp_path, host(step(0, 0, 10), *first, second=second))
    layers = {place: ms for place, ms in zip(PLACES, expected, strict=True) if ms}
    assert milliseconds(found) == layers | {("idle", ""): 10 - sum(expected)}
    if not second:
        assert {(r.value, r.phase): pytest.approx(r.busy * 1e3) for r in found.rows if r.key == "layer"} == layers
    assert {hot.name: hot.events for hot in found.instructions} == counts


def test_a_trace_of_another_program_is_an_error(tmp_path):
    with pytest.raises(ParseError, match=r"are of different programs: the trace has dot\.9, which the audit lacks; audit the"):
        profiled(tmp_path, host(step(0, 0, 10), thunk("dot.1", 0, 6), thunk("dot.9", 6, 1)))


def test_slow_first_steps_are_left_out(tmp_path):
    lengths = (9, 2, 2, 2, 3)
    events = [e for n, length in enumerate(lengths) for e in (step(n, 10 * n, length), thunk("dot.1", 10 * n, length))]
    found = profiled(tmp_path, host(*events))
    assert found.steps == pytest.approx((2e-3, 2e-3, 2e-3, 3e-3))
    assert found.notes == ("Left out as warm-up: 1 first step, which took 9 ms.",)


def test_threads_that_run_at_once_are_both_busy(tmp_path):
    found = profiled(tmp_path, host(step(0, 0, 10), thunk("dot.1", 0, 6), second=[thunk("dot.2", 4, 4)]))
    assert [row.busy for row in found.rows if row.key == "layer"] == pytest.approx([6e-3, 4e-3])
    assert found.busy == pytest.approx(10e-3)


def test_time_between_steps_does_not_count(tmp_path):
    first = step(0, 0, 4), thunk("dot.1", 1, 2), thunk("dot.1", 5, 1)
    second = step(1, 10, 6), thunk("dot.1", 11, 4), thunk("dot.1", 15, 9)
    found = profiled(tmp_path, host(*first, *second))
    assert found.steps == pytest.approx((4e-3, 6e-3))
    (row,) = [row for row in found.rows if row.key == "layer"]
    assert (row.steps, row.seconds, row.events) == (pytest.approx((2e-3, 5e-3)), pytest.approx(3.5e-3), 1.5)


def test_without_annotations_each_run_is_a_step(tmp_path):
    runs = [thunk("dot.1", 0, 2), thunk("dot.2", 2, 2), thunk("dot.1", 10, 3, run_id=2), thunk("dot.2", 14, 3, run_id=2)]
    found = profiled(tmp_path, host(*runs))
    assert found.steps == pytest.approx((4e-3, 7e-3))


def test_devices_have_their_mean(tmp_path):
    both = [step(0, 0, 10), thunk("dot.1", 0, 6), thunk("dot.1", 1, 2, device_ordinal=1)]
    found = profiled(tmp_path, host(*both))
    assert found.devices == ("CPU:0", "CPU:1")
    assert milliseconds(found) == {("0", "forward"): 4, ("idle", ""): 6}
    assert found.notes[0].startswith("60% of the time is idle. On CPU, the profiler itself takes a moment")


def test_kernels_of_a_gpu(tmp_path):
    """Streams run at once; kernels of a graph are found by their name, and lines that XProf derived do not count."""
    graph, ours = {"cuda_graph_id": 3, "hlo_op": "command_buffer_1"}, {"hlo_module": "jit_step", "program_id": 4}
    streams = {
        "Stream #1(Compute)": [
            ("sm90_gemm", 0, 4 * MS, ours | {"hlo_op": "dot.1"}),
            ("dot_2", 4 * MS, 2 * MS, ours | graph),
            ("cublas_kernel", 6 * MS, 1 * MS, ours | graph),
            ("MemcpyH2D", 7 * MS, 1 * MS, {}),
        ],
        "Stream #2(Compute)": [("sm90_gemm", 2 * MS, 2 * MS, ours | {"hlo_op": "dot.3"})],
        "Framework Ops": [("dot_general", 0, 8 * MS, ours | {"hlo_op": "dot.1"})],
    }
    found = profiled(tmp_path, {"/device:GPU:0": streams} | host(step(0, 0, 10)))
    assert found.devices == ("/device:GPU:0",)
    layers = {("0", "forward"): 3, ("1", "backward"): 1, ("1", "forward"): 2}
    rest = {("command buffers", ""): 1, ("without a name", ""): 1, ("idle", ""): 2}
    assert milliseconds(found) == layers | rest
    assert found.notes[-1].startswith("10% of the time is in command buffers. Kernels of command buffers that have a library's")
    inside = Instruction("sort.5", "sort", "fusion.9", (0,))
    alike = program_of("m", [], [*(Instruction(name, "dot", ops=(0,)) for name in ("dot.1", "dot.2", "dot-2")), inside])
    assert alike.kernels == {"dot_1": "dot.1", "sort_5": "fusion.9", "fusion_9": "fusion.9"}


def test_runs_on_a_gpu_begin_with_what_runs_once(tmp_path):
    """A product may be two kernels, what a loop runs comes often, and another program's graph has kernels of the same name."""
    ours, graph = {"hlo_module": "jit_step"}, {"hlo_module": "jit_other", "cuda_graph_id": 3}

    def run(start: int) -> list[traces.Event]:
        names = [("dot.1", 0), ("sine.1", 1), ("sine.1", 2), ("fusion.1", 3)]
        return [("k", (start + at) * MS, MS, ours | {"hlo_op": name}) for name, at in names]

    stream = [*run(0), ("fusion_1", 5 * MS, MS, graph), *run(8), *run(20)]
    sort = Instruction("sine.1", "sine", ops=(6,), phase="forward", effort=1)
    program = program_of("jit_step", TAGS, [*INSTRUCTIONS[:6], sort])
    found = profiled(tmp_path, {"/device:GPU:0": {"Stream #1(Compute)": stream}}, program=program)
    assert found.steps == pytest.approx((4e-3, 4e-3, 4e-3))


def test_instructions_of_a_tpu(tmp_path):
    """Events have the text of instructions and no module: the line of modules says which program ran, and when."""
    lines = {
        "XLA Modules": [
            (name, start * MS, duration * MS, {})
            for name, start, duration in (("jit_step(123)", 0, 10), ("jit_other(4)", 10, 5), ("jit_step(123)", 20, 8))
        ],
        "XLA Ops": [
            ("%while.1 = (f32[8]) while(%t), body=%b", 0, 9 * MS, {}),
            *(
                (f"%dot.{n} = f32[8]{{0}} fusion(%p), calls=%c", at * MS, ms * MS, {})
                for n, at, ms in ((1, 1, 4), (2, 11, 4), (3, 21, 6))
            ),
        ],
        "Async XLA Ops": [("%all-gather-start.1", 0, 4 * MS, {})],
        "Steps": [("0", 0, 28 * MS, {})],
    }
    found = profiled(tmp_path, {"/device:TPU:0": lines} | host(step(0, 0, 40)))
    assert found.steps == pytest.approx((10e-3, 8e-3))
    assert milliseconds(found) == {("0", "forward"): 2, ("1", "backward"): 3, ("idle", ""): 4}
    assert found.notes == ("Transfers and asynchronous collectives overlapped the instructions for 2 ms; no row has them.",)


BY = {
    "scope:2": ({"a/b": 5, "a": 4, "": 1}, None),
    "scope": ({"a/b/c": 3, "a/b": 2, "a": 4, "": 1}, None),
    "source": ({"m.py:3": 3, "m.py:4": 2, "": 5}, None),
    "operation": ({"dot_general": 9, "sine": 1}, None),
    "layer, block": ({"0, mlp": 3, "1, -": 6, "": 1}, ("layer", "block")),
    "layer": ({"0": 3, "1": 6, "": 1}, ["layer"]),
}


@pytest.mark.parametrize("title", BY)
def test_what_to_group_by(tmp_path, title):
    expected, by = BY[title]
    events = [thunk("dot.1", 0, 3), thunk("dot.2", 3, 2), thunk("dot.3", 5, 4), thunk("sine.1", 9, 1)]
    found = profiled(tmp_path, host(*events), by or title)
    (rows,) = found.break_down()
    assert (rows.title, {value: pytest.approx(rows.sum(value) * 1e3) for value in rows.lines}) == (title, expected)
    assert next(filter(None, rows.lines)) == max(expected, key=lambda value: (bool(value), expected[value]))


def test_a_loop_without_trips_belongs_to_its_operations():
    inside = Instruction("dot.1", "dot", "fusion.1", (0,), phase="forward", effort=8, most_runs=0)
    program = program_of("m", TAGS, [inside, Instruction("copy.1", "copy", "fusion.1", effort=3)])
    assert [(part.op.id, part.weight) for part in program.parts("fusion.1")] == [(0, 1.0)]


def test_values_without_a_part_of_the_time_are_not_listed():
    """A sort applies a comparison, which has no work of its own and may be an operation's of another layer."""
    inside = [Instruction("sort.1", "sort", ops=(0,), effort=8), Instruction("less.1", "compare", "sort.1", (1,))]
    assert program_of("m", TAGS, inside).values_by_work("sort.1")["layer"] == ["0"]


def test_a_key_that_no_operation_has_is_an_error():
    with pytest.raises(ArgumentError, match=r"'layr'.*choose from layer, block, source, scope, scope:N, operation"):
        PROGRAM.grouping("layr")
    named = program_of("m", [("source", "x", 0)], INSTRUCTIONS)
    ((_, read),) = named.grouping("tag:source")
    assert read(named.parts("dot.1")[0]) == "x"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no file .*xplane.pb; name the folder"),
        (b"\x08\x08nonsense", "not a trace"),
        (host(thunk("dot.1", 0, 1, hlo_module="jit_f")), "no instruction of jit_step ran.*programs in the trace: jit_f"),
        (host(("a", 0, 1, {})), "programs in the trace: none"),
    ],
)
def test_what_is_no_trace_of_the_program_is_an_error(tmp_path, content, message):
    if isinstance(content, bytes):
        (tmp_path / "a.xplane.pb").write_bytes(content)
    elif content:
        traces.write(tmp_path, content)
    with pytest.raises(ParseError, match=message):
        Trace(trace.find(tmp_path)).of("jit_step")


def written_timeline(tmp_path: Path, planes: traces.Planes) -> dict[str, list[dict[str, Any]]]:
    """By track, its slices."""
    devices = Trace(traces.write(tmp_path, planes)).of("jit_step")
    written = timeline.events(PROGRAM, devices)
    names = {event["tid"]: event["args"]["name"] for event in written if event["name"] == "thread_name"}
    return {names[tid]: [e for e in written if e["ph"] == "X" and e["tid"] == tid] for tid in names}


def spans(slices: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    return [(each["name"], each["ts"] / 1e3, (each["ts"] + each["dur"]) / 1e3) for each in slices]


# By name: the events of a thread and of a second one, and the slices of the tracks of layers.
TIMELINES = {
    "what follows each other is one slice": ([thunk("dot.1", 0, 2), thunk("dot.1", 3, 1)], [], [[("0", 0, 4)]]),
    "other work ends it": (
        [thunk("dot.1", 0, 2), thunk("copy.7", 2, 1), thunk("dot.1", 3, 1)],
        *([], [[("0", 0, 2), ("0", 3, 4)]]),
    ),
    "other work in another thread ends it": (
        [thunk("dot.1", 0, 2), thunk("dot.1", 4, 1)],
        *([thunk("copy.7", 1, 2)], [[("0", 0, 2), ("0", 4, 5)]]),
    ),
    "another program ends it": (
        [thunk("dot.1", 0, 2), thunk("x", 2, 1, hlo_module="other"), thunk("dot.1", 3, 1)],
        *([], [[("0", 0, 2), ("0", 3, 4)]]),
    ),
    "the end of a step ends it": ([thunk("dot.1", 8, 2), thunk("dot.1", 10, 1)], [], [[("0", 8, 10), ("0", 10, 11)]]),
    "a loop around it does not": (
        [thunk("while.1", 0, 9), thunk("dot.1", 0, 2), thunk("dot.1", 3, 1)],
        *([], [[("0", 0, 4)]]),
    ),
    "values that run at once have a track each": (
        [thunk("dot.1", 0, 4), thunk("dot.1", 5, 1)],
        *([thunk("dot.2", 2, 3)], [[("0", 0, 4), ("0", 5, 6)], [("1", 2, 5)]]),
    ),
    "one value in two threads is one slice": ([thunk("dot.1", 0, 4)], [thunk("dot.1", 2, 4)], [[("0", 0, 6)]]),
}


@pytest.mark.parametrize("case", TIMELINES)
def test_slices_of_a_timeline_hide_no_other_work(case, tmp_path):
    first, second, expected = TIMELINES[case]
    tracks = written_timeline(tmp_path, host(step(0, 0, 10), step(1, 10, 10), *first, second=second))
    layers = [spans(slices) for name, slices in tracks.items() if name.startswith("layer")]
    assert layers == [[(f"layer={value} forward", start, end) for value, start, end in track] for track in expected]
    assert spans(tracks["steps"])[0] == ("step 0", 0, 10)


def test_a_timeline_has_tracks_with_arguments(tmp_path):
    events = [thunk("dot.1", 0, 2), thunk("fusion.1", 2, 1), thunk("dot.2", 4, 2), thunk("copy.1", 6, 1), thunk("dot.2", 7, 1)]
    tracks = written_timeline(tmp_path, host(step(0, 0, 10), *events))
    assert list(tracks) == ["steps", "instructions", "layer", "block"]
    assert [each["name"] for each in tracks["instructions"]] == ["dot.1", "fusion.1", "dot.2", "copy.1", "dot.2"]
    about = {"operation": "dot_general", "phase": "forward", "scope": "a/b/c", "line": "/m.py:3"}
    assert tracks["instructions"][0]["args"] == {"step": 0, "flops": 16, **about}
    assert tracks["instructions"][3]["args"] == {"step": 0, "flops": 0}
    layers = [("layer=0 forward", 0, 3), ("layer=1 forward", 4, 6), ("layer=1 forward", 7, 8)]
    assert spans(tracks["layer"]) == layers
    # A slice of several lines has none.
    assert tracks["layer"][0]["args"] == {"step": 0, "phase": "forward", "instructions": 2, "flops": 16}
    assert tracks["layer"][1]["args"] == {"step": 0, "phase": "forward", "line": "/m.py:4", "instructions": 1, "flops": 0}
    assert spans(tracks["block"]) == [("block=mlp forward", 0, 2)]


def test_flops_of_a_loop_that_is_one_event_are_those_of_its_trips():
    inside = [
        Instruction("while.1", "while", ops=(5,), runs=3),
        Instruction("dot.1", "dot", ops=(0,), flops=8, runs=12, caller="while.1"),
    ]
    program = program_of("m", TAGS, inside)
    assert (program.flops("while.1"), program.flops("dot.1")) == (32, 8)
