# SPDX-License-Identifier: Apache-2.0
"""Exposed communication, on traces whose times are counted by hand, and on a real one of several devices."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
import traces
from hlotag.profiles import Profile
from hlotag.profiles.dependences import Independence
from hlotag.profiles.join import profile_of
from hlotag.profiles.trace import Trace
from hlotag.results.tags import Instruction, Op
from test_profile_trace import MS, host, profiled, program_of, step, thunk

# Layer 0 computes, and has a sum that XLA inserted for its product; layer 1 gathers, by an asynchronous pair.
OPS = [
    Op(0, "stablehlo.dot_general", type="f32[8]", file="/m.py", line=3),
    Op(1, "stablehlo.all_gather", scope="b"),
    Op(2, "all-reduce", inserted=True, derived_from=(0,), serves=(0,)),
]
TAGS = [("layer", "0", 0), ("layer", "1", 1)]
GATHER = {"ops": (1,), "scope": "b", "phase": "forward", "collective": "all-gather", "start": "all-gather-start.1", "group": 4}
INSTRUCTIONS = [
    Instruction("dot.1", "dot", ops=(0,), scope="a", phase="forward", effort=8),
    Instruction("all-gather-start.1", "all-gather-start", bytes=1024, **GATHER),
    Instruction("all-gather-done.1", "all-gather-done", **GATHER),
    Instruction(
        *("all-reduce.2", "all-reduce"), ops=(2,), bytes=4, phase="backward", collective="all-reduce", start="all-reduce.2"
    ),
    Instruction("while.1", "while"),
]
INSTRUCTIONS[0] = INSTRUCTIONS[0]._replace(caller="while.1")
PROGRAM = program_of("jit_step", TAGS, INSTRUCTIONS, OPS)
START, DONE, SUM = "all-gather-start.1", "all-gather-done.1", "all-reduce.2"


def cpu(*events):
    """Threads of the host: (name, start, duration) of each event, by thread."""
    lines = {f"thread {n}": [thunk(*event) for event in thread] for n, thread in enumerate(events)}
    return {"/host:CPU": {"steps": [step(0, 0, 20)]} | lines}


def gpu(*streams):
    stats = {"hlo_module": "jit_step", "program_id": 4}
    lines = {
        f"Stream #{n}": [(f"kernel {name}", start * MS, ms * MS, stats | {"hlo_op": name}) for name, start, ms in stream]
        for n, stream in enumerate(streams)
    }
    return {"/device:GPU:0": lines} | host(step(0, 0, 20))


def tpu(core, beside):
    text = lambda name: f"%{name} = f32[8]{{0}} op(%p)"
    return {
        "/device:TPU:0": {
            "XLA Modules": [("jit_step(1)", 0, 20 * MS, {})],
            "XLA Ops": [(text(name), start * MS, ms * MS, {}) for name, start, ms in core],
            "Async XLA Ops": [(text(name), start * MS, ms * MS, {}) for name, start, ms in beside],
        }
    }


# By name: a trace, and in milliseconds of the gather and the sum (time, exposed).
CASES = {
    "one after the other": (cpu([("dot.1", 0, 4), (SUM, 4, 3), ("dot.1", 7, 2)]), {SUM: (3, 3)}),
    "partly beside a product": (cpu([("dot.1", 0, 6)], [(SUM, 4, 5)]), {SUM: (5, 3)}),
    "a loop around both hides nothing": (cpu([("while.1", 0, 10), ("dot.1", 0, 2), (SUM, 2, 6)]), {SUM: (6, 6)}),
    "another program hides it": (
        {"/host:CPU": {"steps": [step(0, 0, 20)], "t": [thunk(SUM, 0, 4)], "u": [thunk("x", 0, 3, hlo_module="other")]}},
        {SUM: (4, 1)},
    ),
    "a pair, from start to done": (
        cpu([(START, 0, 1), ("dot.1", 1, 6), (DONE, 7, 3)]),
        {START: (10, 4)},  # 1 before the product, 3 after it
    ),
    "a pair that runs twice": (
        cpu([(START, 0, 1), ("dot.1", 1, 3), (DONE, 4, 1), (START, 6, 1), (DONE, 7, 1)]),
        {START: (7, 4)},
    ),
    "two at once share what is exposed": (cpu([(SUM, 0, 6)], [(START, 2, 4)]), {SUM: (6, 4), START: (4, 2)}),
    "streams": (gpu([("dot.1", 0, 5), ("dot.1", 9, 1)], [(START, 3, 5)]), {START: (5, 3)}),
    "a transfer beside the core": (
        tpu([(START, 0, 0), ("dot.1", 0, 6), (DONE, 6, 4)], [(START, 0, 10)]),
        {START: (10, 4)},
    ),
    "a transfer that is done early": (tpu([("dot.1", 0, 6), (DONE, 6, 0)], [(START, 0, 5)]), {START: (5, 0)}),
    "the end of the step": (cpu([("dot.1", 0, 1), (SUM, 18, 9)]), {SUM: (2, 2)}),
}


@pytest.mark.parametrize("case", CASES)
def test_exposed_time_is_that_of_a_count_by_hand(case, tmp_path):
    planes, expected = CASES[case]
    found = profiled(tmp_path, planes, program=PROGRAM)
    counted = {each.name: (each.seconds * 1e3, each.exposed * 1e3) for each in found.transfers}
    assert counted == {name: pytest.approx(times, abs=1e-4) for name, times in expected.items()}
    exposed = sum(times[1] for times in expected.values())
    assert found.exposed == pytest.approx(exposed / 1e3, abs=1e-7)
    assert f" {exposed / 20:.0%} of it is exposed communication." in found.sentence
    rows = {row.value: row.exposed * 1e3 for row in found.rows if row.exposed}
    by_layer = {"0": expected.get(SUM, (0, 0))[1], "1": expected.get(START, (0, 0))[1]}
    assert rows == {layer: pytest.approx(ms, abs=1e-4) for layer, ms in by_layer.items() if ms}


def test_a_collective_says_what_it_is_for(tmp_path):
    found = profiled(tmp_path, cpu([("dot.1", 0, 6), (SUM, 6, 1)], [(START, 0, 1)]), program=PROGRAM)
    first, second = (dataclasses.replace(each, seconds=0, exposed=0) for each in found.transfers)
    assert (first.name, first.collective, first.bytes, first.group, first.operation, first.source, first.tags) == (
        *(SUM, "all-reduce", 4, 0, "dot_general f32[8]", "m.py:3"),
        ("layer=0",),
    )
    assert (second.name, second.bytes, second.group, second.scope, second.phase) == (START, 1024, 4, "b", "forward")
    assert Profile.from_json(found.to_json(), "p.json").transfers == found.transfers
    text = str(found)
    assert "exposed" in text and "1.0 KiB" in text and SUM in text
    found.to_html(tmp_path / "page.html")
    assert "Communication" in (tmp_path / "page.html").read_text()


def test_a_program_without_collectives_has_no_column(tmp_path):
    found = profiled(tmp_path, host(thunk("dot.1", 0, 3)), program=PROGRAM)
    assert found.transfers == () and "exposed" not in str(found) and "exposed" not in found.sentence


def test_devices_that_exchange():
    """A product sharded in its sum: each device's gather and sum are found, and rows and rest are the step."""
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("a", "b"))
    sharded = lambda *names: NamedSharding(mesh, P(*names))

    @jax.jit
    def f(x, w):
        with hlotag.tagged({"layer": "1"}):
            y = jax.lax.with_sharding_constraint(x @ w, sharded("a", None))
        with hlotag.tagged({"layer": "2"}):
            return jnp.tanh(jax.lax.with_sharding_constraint(y, sharded(None, None))) * 2.0

    x = jax.device_put(jnp.ones((512, 512)), sharded("a", "b"))
    w = jax.device_put(jnp.ones((512, 512)), sharded("b", None))
    with hlotag.stage():
        found = hlotag.profile(f, x, w, steps=3)
        audit = hlotag.audit(f, x, w)
    kinds = {each.collective: each for each in found.transfers}
    assert kinds.keys() == {"all-reduce", "all-gather"}
    assert (kinds["all-reduce"].group, kinds["all-gather"].group) == (2, 2)
    assert (kinds["all-reduce"].bytes, kinds["all-gather"].bytes) == (2 * 512 * 512, 4 * 512 * 512)
    for each in found.transfers:
        assert 0 <= each.exposed <= each.seconds * (1 + 1e-9) and each.events == pytest.approx(1)
    assert "all-reduce" in {op.name for op in audit.ops} or any(i.collective == "all-reduce" for i in audit.instructions)
    layers = [row.seconds for row in found.rows if row.key in ("layer", "")]
    assert math.fsum(layers) == pytest.approx(found.total_seconds) and found.exposed <= found.total_seconds


def test_products_that_could_hide_a_collective():
    """A gather whose operand and readers are products, beside two that have nothing to do with it."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("a",))
    rows, all_rows = NamedSharding(mesh, P("a", None)), NamedSharding(mesh, P())

    @jax.jit
    def f(x, y):
        with hlotag.tagged({"product": "free"}):
            free = jnp.tanh(y @ y) @ y
        with hlotag.tagged({"product": "before"}):
            before = x @ y
        gathered = hlotag.tag(jax.lax.with_sharding_constraint(before, all_rows), {"product": "gather"})
        with hlotag.tagged({"product": "after"}):
            return free, jnp.tanh(gathered) @ gathered

    with hlotag.stage():
        arguments = jax.device_put(jnp.ones((256, 256)), rows), jax.device_put(jnp.ones((256, 256)), all_rows)
        found = hlotag.profile(f, *arguments, steps=3)
    (gather,) = [each for each in found.transfers if each.collective == "all-gather"]
    tags = {hot.name: hot.tags for hot in found.instructions}
    free = {name for name, each in tags.items() if each == ("product=free",) and "tanh" not in name}
    assert set(gather.products) == free and len(free) == 2, tags
    assert gather.independent == pytest.approx(sum(found.seconds[name] for name in free))
    assert Profile.from_json(found.to_json(), "p.json").transfers == found.transfers
    if gather.exposed:
        assert f"{gather.name} of " in gather.overlap and " of independent products could overlap it: " in gather.overlap


def test_a_product_is_independent_of_neither_end():
    readers = {"a": {"start"}, "start": {"done"}, "done": {"b"}, "b": {"c"}, "free": {"c"}, "loop": {"loop", "a"}}
    assert Independence(readers).find("start", ["a", "b", "c", "free", "loop", "alone"]) == ["free", "alone"]


def test_a_trace_without_the_end_of_a_pair_counts_its_events(tmp_path):
    file = traces.write(tmp_path, cpu([(DONE, 2, 3), ("dot.1", 0, 1)]))
    found = profile_of(PROGRAM, Trace(file).of("jit_step"))
    assert [(each.name, each.seconds) for each in found.transfers] == [(START, pytest.approx(3e-3))]
