# SPDX-License-Identifier: Apache-2.0
"""When an instruction ends, by what reads its value: in traces whose overlap is known because they were made so."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
import traces
from hlotag import _compat
from hlotag.hlo import HloModule
from hlotag.profiles import trace
from hlotag.profiles.dependences import find_readers
from hlotag.profiles.join import profile_of
from hlotag.profiles.trace import Trace
from hlotag.results.tags import Instruction, Op
from test_profile_trace import MS, program_of, step, thunk
from time_truth import exposed, parse

F32 = "f32[8]"
SUM = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
READERS = {
    "a chain": ("ENTRY m { x = F parameter(0)\n a = F sine(x)\n ROOT b = F cosine(a) }", {"x": {"a"}, "a": {"b"}}),
    "elements of tuples": (
        "ENTRY m { x = F parameter(0)\n a = F sine(x)\n b = F cosine(x)\n t = (F, F) tuple(a, b)\n"
        " e = F get-tuple-element(t), index=1\n c = F bitcast(e)\n ROOT d = F tanh(c) }",
        {"x": {"a", "b"}, "b": {"d"}},
    ),
    "what is in a fusion is the fusion": (
        "f { p = F parameter(0)\n ROOT s = F sine(p) }\nENTRY m { x = F parameter(0)\n a = F tanh(x)\n"
        " ROOT u = F fusion(a), kind=kLoop, calls=f }",
        {"x": {"a"}, "a": {"u"}},
    ),
    "what a loop runs": (
        "body { p = (F) parameter(0)\n e = F get-tuple-element(p), index=0\n s = F sine(e)\n ROOT t = (F) tuple(s) }\n"
        "cond { q = (F) parameter(0)\n ROOT k = pred[] constant(false) }\n"
        "ENTRY m { x = F parameter(0)\n a = F tanh(x)\n i = (F) tuple(a)\n w = (F) while(i), condition=cond, body=body\n"
        " r = F get-tuple-element(w), index=0\n ROOT z = F cosine(r) }",
        {"x": {"a"}, "a": {"w", "p", "s", "q", "k"}, "p": {"s"}, "w": {"z"}, "s": {"z"}},
    ),
    "an asynchronous pair is read where its end is": (
        "ENTRY m { x = F parameter(0)\n a = F tanh(x)\n g = (F, f32[16]) all-gather-start(a), dimensions={0}\n"
        " b = F cosine(a)\n d = f32[16] all-gather-done(g)\n ROOT z = f32[16] sine(d) }",
        {"x": {"a"}, "a": {"g", "b"}, "g": {"z"}, "d": {"z"}},
    ),
    "a loop that carries a pair does not read it": (
        "body { p = ((F, f32[16])) parameter(0)\n e = (F, f32[16]) get-tuple-element(p), index=0\n"
        " ROOT t = ((F, f32[16])) tuple(e) }\ncond { q = ((F, f32[16])) parameter(0)\n ROOT k = pred[] constant(false) }\n"
        "ENTRY m { x = F parameter(0)\n g = (F, f32[16]) all-gather-start(x), dimensions={0}\n i = ((F, f32[16])) tuple(g)\n"
        " w = ((F, f32[16])) while(i), condition=cond, body=body\n r = (F, f32[16]) get-tuple-element(w), index=0\n"
        " d = f32[16] all-gather-done(r)\n ROOT z = f32[16] sine(d) }",
        {"x": {"g"}, "w": {"z"}, "p": {"z"}, "d": {"z"}},
    ),
    "what a call returns": (
        "f { p = F parameter(0)\n ROOT s = F sine(p) }\nENTRY m { x = F parameter(0)\n c = F call(x), to_apply=f\n"
        " ROOT d = F tanh(c) }",
        {"x": {"c", "p", "s"}, "p": {"s"}, "c": {"d"}, "s": {"d"}},
    ),
}


@pytest.mark.parametrize("case", READERS)
def test_readers_of_a_value(case):
    text, expected = READERS[case]
    module = HloModule(
        _compat.runtime.hlo_from_text(
            "HloModule m\n" + text.replace("F ", f"{F32} ").replace("F)", f"{F32})").replace("F,", f"{F32},")
        )
    )
    assert find_readers(module) == {name: {name, *readers} for name, readers in expected.items()}


# A product, and a collective that reads it; a second product that does not.
INSTRUCTIONS = [
    *(Instruction(name, "dot", ops=(n,), phase="forward", effort=8) for n, name in enumerate(("first", "second"))),
    *(
        Instruction(name, "all-reduce", ops=(2,), phase="forward", bytes=4, collective="all-reduce", start=name)
        for name in ("sum", "other-sum")
    ),
    Instruction("tail", "tanh", ops=(3,), phase="forward", effort=8),
]
NAMES = ("stablehlo.dot_general", "stablehlo.dot_general", "stablehlo.all_reduce", "stablehlo.tanh")
PROGRAM = program_of("jit_step", [], INSTRUCTIONS, [Op(n, name) for n, name in enumerate(NAMES)])
WHO_READS = {"first": ["sum"], "sum": ["tail"]}


def written(folder: Path, *events: tuple[str, float, float, float]) -> Path:
    """A step of 20 ms: by instruction, when it starts, when its thread goes on, and when XLA says that it has ended."""
    lines: dict[str, list[traces.Event]] = {"steps": [step(0, 0, 20)]}
    for number, (name, start, goes_on, said) in enumerate(events, 1):
        text, at, duration, stats = thunk(name, start, goes_on - start)
        lines[f"thread {number}"] = [
            (text, at, duration, {**stats, "_p": number}),
            (f"end: {name}", int(said * MS), 10, {"_c": number}),
        ]
    return traces.write(folder, {"/host:CPU": lines})


@pytest.mark.parametrize(
    ("events", "exposed", "product"),
    [
        pytest.param([("first", 0, 1, 19), ("sum", 5, 9, 9), ("tail", 9, 10, 10)], 4, 5, id="serial"),
        pytest.param([("first", 0, 1, 4), ("sum", 5, 9, 9), ("tail", 9, 10, 10)], 4, 4, id="said in time"),
        pytest.param([("first", 0, 1, 19), ("second", 1, 2, 9), ("sum", 5, 9, 9)], 0, 1 + 4 / 2, id="overlapped"),
        pytest.param([("first", 0, 1, 19), ("second", 5, 7, 7), ("sum", 5, 9, 9)], 2, 5, id="half"),
        pytest.param([("first", 0, 1, 19), ("sum", 5, 9, 9), ("other-sum", 7, 11, 11)], 6, 5, id="two in flight"),
        pytest.param([("sum", 5, 6, 19), ("tail", 9, 10, 10)], 4, 0, id="the collective itself"),
    ],
)
def test_an_instruction_has_ended_when_the_first_reader_starts(tmp_path, events, exposed, product):
    devices = Trace(written(tmp_path, *events)).of("jit_step", readers=WHO_READS)
    found = profile_of(PROGRAM, devices, [])
    assert found.exposed == pytest.approx(exposed / 1e3)
    assert sum(each.seconds for each in found.instructions if each.name == "first") == pytest.approx(product / 1e3)


def test_a_reader_in_another_run_says_nothing(tmp_path):
    lines = {"steps": [step(0, 0, 20)]}
    events = [("first", 0, 1, 1, 7), ("sum", 5, 6, 2, 6)]
    for name, start, run, producer, said in events:
        text, at, duration, stats = thunk(name, start, 1)
        lines[f"thread {producer}"] = [
            (text, at, duration, {**stats, "run_id": run, "_p": producer}),
            (f"end: {name}", said * MS, 10, {"_c": producer}),
        ]
    (device,) = Trace(traces.write(tmp_path, {"/host:CPU": lines})).of("jit_step", readers=WHO_READS)
    assert dict(zip(device.names, device.ends, strict=True))["first"] == 7 * MS


def test_a_transfer_beside_a_core_has_ended_when_it_is_read(tmp_path):
    def event(name: str, start: int, duration: int) -> traces.Event:
        return f"%{name} = f32[8]{{0}} op(%p)", start * MS, duration * MS, {}

    lines = {
        "XLA Modules": [("jit_step(1)", 0, 20 * MS, {})],
        "XLA Ops": [event("gather-start", 0, 1), event("gather-done", 3, 1), event("first", 4, 2), event("first", 9, 1)],
        "Async XLA Ops": [event("gather-start", 0, 8), event("gather-start", 5, 2)],
    }
    file = traces.write(tmp_path, {"/device:TPU:0": lines})
    (device,) = Trace(file).of("jit_step", readers={"gather-start": ["first"]})
    assert device.transfers == [("gather-start", 0, 4 * MS), ("gather-start", 5 * MS, 7 * MS)]


def test_a_serial_sum_is_exposed():
    """On this machine's compiler: the sum of a product waits for it, and all after it waits for the sum."""
    mesh = jax.make_mesh((4,), ("x",), devices=jax.devices()[:4])

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())
    def f(x, w):
        return jnp.tanh(jax.lax.psum(x.T @ w, "x")).sum(0)

    x = jax.device_put(jnp.ones((64, 512)), NamedSharding(mesh, P("x")))
    with hlotag.stage():
        (found,) = hlotag.profile(f, x, x, steps=4).transfers
    assert found.exposed >= 0.95 * found.seconds


@jax.jit
def gather(w):
    return jax.lax.all_gather(w, "x", tiled=True)


def in_turns(weights, x):
    """Each gather waits for the layer before, and each layer for its gather: nothing can overlap."""
    for w in weights:
        x = jnp.tanh(x @ gather(w + x[0, 0]))
    return jax.lax.pmean(x.sum(), "x")


def sharded(weights, x):
    """A step of FSDP, in which the compiler decides what overlaps."""

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ gather(w))
        return (x**2).sum()

    return jax.grad(loss)(weights, x)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "out"), [(in_turns, P()), (sharded, P("x"))], ids=["in turns", "sharded weights"])
def test_exposed_is_that_of_an_independent_count(program, out, tmp_path):
    mesh = jax.make_mesh((4,), ("x",), devices=jax.devices()[:4])
    f = jax.jit(jax.shard_map(program, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=out, check_vma=False))
    arguments = jax.device_put(([jnp.ones((512, 512)) * 0.01] * 4, jnp.ones((256, 512))), NamedSharding(mesh, P("x")))
    compiled = f.lower(*arguments).compile()
    jax.block_until_ready(compiled(*arguments))
    with jax.profiler.trace(tmp_path):
        for number in range(5):
            with jax.profiler.StepTraceAnnotation("step", step_num=number):
                jax.block_until_ready(compiled(*arguments))
    found = hlotag.read_profile(tmp_path, by="operation")
    module = parse(compiled.as_text())
    assert found.exposed / found.total_seconds == pytest.approx(exposed(tmp_path, found.name, module, len(found.steps)), abs=0.01)
    if program is in_turns:
        assert found.exposed == pytest.approx(sum(each.seconds for each in found.transfers), rel=0.02)


def named(number: int, count: int):
    """Steps of one name that differ in how many products they have."""

    def step(x):
        for _ in range(count):
            x = hlotag.tag(jnp.tanh(x @ x), {"program": str(number)})
        return x

    return jax.jit(step)


def test_programs_of_one_name_are_told_apart(tmp_path):
    x = jnp.ones((256, 256)) * 0.01
    with hlotag.stage():
        steps = [named(1, 1), named(2, 8)]
        audits = [hlotag.audit(each, x) for each in steps]
        compiled = [each.lower(x).compile() for each in steps]
    with jax.profiler.trace(tmp_path):
        for each in compiled:
            jax.block_until_ready(each(x))
    ran = Trace(trace.find(tmp_path)).programs
    assert [trace.split_name(program)[0] for program in ran] == ["jit_step", "jit_step"]
    for number, audit in enumerate(audits, 1):
        found = hlotag.read_profile(tmp_path, audit)
        assert {row.value for row in found.rows if row.key and row.value} == {str(number)}
        assert any("2 programs of this name" in note for note in found.notes)
    alone = [hlotag.read_profile(tmp_path, module=program) for program in ran]
    assert [{row.value for row in found.rows if row.value and row.key} for found in alone] == [{"2"}, {"1"}]
    assert not any("of this name" in note for found in alone for note in found.notes)


def test_another_compilation_of_the_program_is_read_by_the_module_that_ran(tmp_path):
    """Names of instructions differ, so an audit's would lose the time of those that it does not know."""
    x = jnp.ones((128, 128)) * 0.01
    layer = jax.jit(lambda x: jnp.tanh(x @ x))

    def step(x):
        for n in range(3):
            with hlotag.tagged({"layer": str(n)}):
                x = layer(x)
        return x

    with hlotag.stage():
        audit = hlotag.audit(step, x)
        other = jax.jit(step).lower(x).compile({"xla_cpu_enable_fast_math": True, "xla_disable_hlo_passes": "fusion"})
    with jax.profiler.trace(tmp_path):
        for _ in range(3):
            jax.block_until_ready(other(x))
    found, alone = hlotag.read_profile(tmp_path, audit), hlotag.read_profile(tmp_path)
    seconds = {row.value: row.seconds for row in alone.rows if row.key == "layer"}
    assert {row.value: pytest.approx(row.seconds) for row in found.rows if row.key == "layer"} == seconds
    assert seconds.keys() == {"0", "1", "2"}
