# SPDX-License-Identifier: Apache-2.0
"""Exports with symbolic shapes, everything in them tagged: JAX makes parts of their modules outside of what the stage wraps, and
StableHLO refuses tags on some of their operations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import hlotag

SEED = np.array([1, 2, 3, 4], np.uint32)
PROGRAMS = {
    "gradient": lambda x: jax.grad(lambda x: (jnp.tanh(x @ x.T) ** 2).sum())(x),
    "dynamic_top_k": lambda x: lax.top_k(x.T, x.shape[0])[0],
    "dynamic_approx_top_k": lambda x: lax.approx_max_k(x.T, x.shape[0])[0],
    "dynamic_reduce_window": lambda x: jnp.cumsum(x, 0),
    "dynamic_rng_bit_generator": lambda x: lax.rng_bit_generator(SEED, x.shape)[1],
    "loop over a symbolic dimension": lambda x: lax.fori_loop(0, x.shape[0], lambda i, sums: sums + x[i], x[0]),
}


def exported(program):
    jax.clear_caches()
    (b,) = export.symbolic_shape("b", constraints=["b >= 4"])
    made = export.export(jax.jit(program))(jax.ShapeDtypeStruct((b, 6), np.float32))
    return export.deserialize(made.serialize())


def results(program):
    made = exported(program)
    five, seven = (np.linspace(-1, 1, 6 * n, dtype=np.float32).reshape(n, 6) for n in (5, 7))
    return [np.asarray(made.call(five)), np.asarray(jax.jit(made.call)(seven))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_tagged_programs_compile_and_give_what_they_gave(name):
    expected = results(PROGRAMS[name])
    with hlotag.stage(rules=[hlotag.Rule({"rule": "v"}, op="*", grad={"rule": "g"})]):
        by_rule = results(PROGRAMS[name])
    with hlotag.stage(), hlotag.tagged({"block": "v"}, grad={"block": "g"}):
        by_block = results(PROGRAMS[name])
    for found in (by_rule, by_block):
        assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_nothing_reserved_is_in_what_jax_adds_to_an_export():
    with hlotag.stage(), hlotag.tagged({"k": "v"}, grad={"k": "g"}):
        text = exported(PROGRAMS["gradient"]).mlir_module()
    assert 'k = "v"' in text
    assert 'k = "g"' in text
    assert "hlotag." not in text
