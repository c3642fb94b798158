# SPDX-License-Identifier: Apache-2.0
"""Time within one event is divided by how long an opcode takes, and not by flops alone."""

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlotag
from hlotag.profiles.program import Program
from hlotag.profiles.weights import weight_of

X = jnp.ones(16384)


def layers(x):
    with hlotag.tagged({"layer": "trig"}):
        for _ in range(3):
            x = jnp.cos(x)
    with hlotag.tagged({"layer": "poly"}):
        for n in range(30):
            x = x * (1.01 + 0.01 * n) + 0.25
    return x


@pytest.mark.parametrize("function", [layers, lambda x: lax.fori_loop(0, 100, lambda _, x: layers(x), x)], ids=["fusion", "loop"])
def test_three_cosines_take_longer_than_thirty_products_and_sums(function):
    """By removal of either, the cosines take 78 to 94% of the time on CPU. Of the flops they have 5%."""
    with hlotag.stage():
        program = Program(hlotag.audit(function, X, effects=False))
    name = next(each.caller or each.kernel for each in program.audit.instructions if each.opcode == "cosine")
    trig = sum(part.weight for part in program.parts(name) if program.values(part.op).get("layer") == "trig")
    assert 0.75 < trig < 0.95
    flops = {row.value: row.flops for row in program.audit.costs_by("layer")}
    assert flops["trig"] / sum(flops.values()) == pytest.approx(3 / 63, rel=0.01)  # Work stays XLA's.


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_a_table_has_simple_operations_as_its_unit(platform):
    assert weight_of(platform, "add", "f32") == weight_of(platform, "subtract", "bf16") == 1
    assert weight_of(platform, "exponential", "f32") > 10
    assert weight_of("tpu", "exponential", "f32") == 1


def test_a_library_of_cpu_kernels_is_faster_than_a_loop():
    """By removal on CPU, two trigonometric functions take about a tenth of this fusion, and the sums of short rows most of it."""

    def forces(x):
        with hlotag.tagged({"layer": "distance"}):
            offset = x[:, None] - x[None]
            r = jnp.sqrt((offset**2).sum(-1) + 0.1)
        with hlotag.tagged({"layer": "wave"}):
            force = jnp.sin(4 * r) * jnp.cos(r)
        return (force[..., None] * offset).sum(1)

    with hlotag.stage():
        profile = hlotag.profile(forces, jnp.ones((256, 3)), steps=1)
    program = profile.program
    sine = next(each for each in program.audit.instructions if each.opcode == "sine")
    assert sine.fusion.startswith("ynn") is (jax.__version_info__ >= (0, 12))
    if not sine.fusion.startswith("ynn"):
        return
    parts = Counter()
    for part in program.parts(sine.kernel):
        parts[program.values(part.op).get("layer")] += part.weight
    assert parts["wave"] < 0.25
    assert parts["distance"] > 0.6
