# SPDX-License-Identifier: Apache-2.0
"""Do work, time and memory of a function that layers share belong to the layer that calls it?"""

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag.audits import dumps

LAYERS = 3
SIZE = 128
PRODUCT = 2 * SIZE**3


@jax.jit
def block(weight, x):
    with jax.named_scope("inner"):
        return jax.nn.gelu(jnp.where(x > 0, x @ weight, 0)) + x


def loss(weights, x):
    for number, weight in enumerate(weights):
        with jax.named_scope(f"layer{number}"):
            x = block(weight, x)
    return (x**2).mean()


ARGS = [jnp.eye(SIZE) * 0.1] * LAYERS, jnp.ones((SIZE, SIZE))
LAYER_NAMES = {f"layer{number}" for number in range(LAYERS)}


@pytest.fixture(params=["stage", "no stage"])
def stage(request):
    with hlotag.stage() if request.param == "stage" else hlotag.stage(None):
        yield


@pytest.mark.usefixtures("stage")
def test_work_and_memory_of_a_shared_function_are_those_of_its_callers():
    audit = hlotag.audit(jax.jit(jax.grad(loss)), *ARGS, effects=False, memory=True)
    assert any(len(each.owners) > 1 for each in audit.instructions)  # Constants joined with their users.
    flops = {}
    for row in audit.costs_by("scope"):
        flops[row.value] = flops.get(row.value, 0) + row.flops
    assert {scope for scope, amount in flops.items() if amount} <= {"", *(f"{layer}/inner" for layer in LAYER_NAMES)}
    # One forward product and two backward ones; the first layer's input has no gradient.
    for number in range(LAYERS):
        assert flops[f"layer{number}/inner"] == pytest.approx(PRODUCT * (2 if number == 0 else 3), rel=0.1)
    in_memory = {row.value.partition("/")[0] for row in audit.costs_by("scope") if row.key and row.memory}
    assert in_memory - {""} and in_memory <= {"", *LAYER_NAMES}


@pytest.mark.usefixtures("stage")
def test_time_of_a_shared_function_is_that_of_its_callers():
    profile = hlotag.profile(jax.jit(jax.grad(loss)), *ARGS, by="scope", steps=2)
    assert {row.value.partition("/")[0] for row in profile.rows if row.key and row.value} == LAYER_NAMES


def test_a_dump_says_which_layer_calls_a_shared_function(tmp_path):
    options = {"xla_dump_to": f"{tmp_path}", "xla_dump_hlo_as_proto": True}
    with hlotag.stage(None):
        jax.jit(jax.grad(loss)).lower(*ARGS).compile(options)
    audit = dumps.audit_dumps(tmp_path)
    flops = {}
    for row in audit.costs_by("scope"):
        flops[row.value] = flops.get(row.value, 0) + row.flops
    for number in range(LAYERS):
        assert flops[f"layer{number}/inner"] == pytest.approx(PRODUCT * (2 if number == 0 else 3), rel=0.1)
