# SPDX-License-Identifier: Apache-2.0
"""Rules for collectives that XLA inserts: schedules that they change, on compilers for GPU and TPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import Compiler
from conftest import PLATFORM
from hlotag.audits import Effect, Verdict

SIZE = 2048
LAYERS = 4


def shapes(compiler: Compiler, *places: P) -> list[jax.ShapeDtypeStruct]:
    mesh = Mesh(np.array(compiler.devices), ("i",))
    return [jax.ShapeDtypeStruct((SIZE, SIZE), jnp.bfloat16, sharding=NamedSharding(mesh, place)) for place in places]


def unrolled(x, *weights):
    for number, w in enumerate(weights):
        with jax.named_scope(f"layer_{number}"):
            x = jnp.tanh(x @ w)
    return jnp.square(x).mean()


def on_a_stream(x, first, second, third):
    """A product of whole weights, as a call on a stream, then two whose weights are gathered."""
    attrs = {"_xla_stream_annotation": "1", "inlineable": "false", "_scheduling_group_id": "7"}
    x = hlotag.xla_metadata_call2(lambda x, w: x @ w, attrs)(x, first)
    for number, w in enumerate((second, third)):
        with jax.named_scope(f"layer_{number}"):
            x = jnp.tanh(x) @ w
    return jnp.square(x).mean()


def group(number: int, **patterns) -> hlotag.Rule:
    return hlotag.Rule({"_scheduling_group_id": number}, phase="forward", **patterns)


def effects(function, arguments, rules) -> dict[str, Effect]:
    """By value, what the groups changed."""
    with hlotag.stage(rules=rules):
        return {effect.value: effect for effect in hlotag.audit(jax.jit(function), *arguments).effects}


@pytest.mark.skipif(PLATFORM != "tpu", reason="GPU's compiler runs nothing beside a gather in a group of plain products")
def test_inserted_gathers_run_beside_their_group(four):
    rules = []
    for number in range(LAYERS - 1):
        rules.append(group(10 + number, op="dot_general", scope=f"layer_{number}"))
        rules.append(group(10 + number, op="all-gather", scope=f"layer_{number + 1}", inserted=True))
    found = effects(unrolled, shapes(four, *[P("i")] * (LAYERS + 1)), rules)
    # The compiler has taken the products' ids away: a group of a product alone has nothing asynchronous. They are back in time.
    assert {value: effect.verdict for value, effect in found.items()} == dict.fromkeys(("10", "11", "12"), Verdict.CHANGED)
    for value, start in {"10": "start", "11": "start.1", "12": "start.2"}.items():
        assert f" during async-collective-{start}" in found[value].evidence
    assert "nothing during all-gather" in found["10"].without


@pytest.mark.skipif(PLATFORM != "gpu", reason="TPU has no streams")
def test_an_inserted_gather_runs_beside_a_stream(four):
    gather = {"_scheduling_group_id": 7, "combiner_key": "second"}  # Else it is combined with the other gather.
    rules = [hlotag.Rule(gather, op="all-gather", scope="layer_0", inserted=True)]
    arguments = shapes(four, P("i"), P(), P("i"), P("i"))
    assert "during all-gather" not in effects(on_a_stream, arguments, [])["7"].evidence
    assert "call-start during all-gather-start" in effects(on_a_stream, arguments, rules)["7"].evidence
