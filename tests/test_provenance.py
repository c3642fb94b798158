# SPDX-License-Identifier: Apache-2.0
"""Rules find what they should for every shape of location that JAX writes: tracebacks long, short, and none; forged names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlotag.passes.rules import Rule
from modules import ops_of

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)

RULES = [
    Rule({"attention": 1}, scope="decoder/attention"),
    Rule({"forward": 1}, scope="*", phase="forward"),
    Rule({"backward": 1}, scope="*", phase="backward"),
    Rule({"here": 1}, source="test_provenance.py"),
]
SETTINGS = [
    *({"jax_include_full_tracebacks_in_locations": full} for full in (True, False)),
    *({"jax_traceback_in_locations_limit": limit} for limit in (0, 1, 3)),
]


@pytest.fixture
def configure():
    def change(settings):
        for name, value in settings.items():
            jax.config.update(name, value)
        jax.clear_caches()  # Traces have the frames that the setting of their time kept.

    former = {name: jax.config.values[name] for settings in SETTINGS for name in settings}
    yield change
    change(former)


def program():
    """A scan, an inner jit and a checkpoint in scopes, differentiated."""

    @jax.jit
    def inner(x):
        return jnp.tanh(x) * 2

    @jax.checkpoint
    def layer(x, w):
        with jax.named_scope("attention"):
            return inner(x @ w)

    def loss(w, x):
        with jax.named_scope("decoder"):
            x, _ = jax.lax.scan(lambda x, w: (layer(x, w), None), layer(x, w[0]), w)
        return (x**2).sum()

    return jax.value_and_grad(loss)


def tagged(keys):
    """For each operation in order its kind and which rules found it."""
    with hlotag.stage(rules=RULES):
        lowered = jax.jit(program()).lower(np.stack([X, X]), X)
    return [(op.name, *(key in op.entries for key in keys)) for op in ops_of(lowered)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_rules_match_under_every_setting_of_tracebacks(settings, configure):
    keys = ("attention", "forward", "backward", "here")
    expected = tagged(keys)
    assert all(any(row[column] for row in expected) for column in (1, 2, 3, 4))
    configure(settings)
    assert tagged(keys) == expected


def test_a_rule_takes_no_round_of_a_loop_for_a_helper_of_the_next():
    """`exp2` lowers to a product and its exponential, at one location in all rounds."""

    def rounds(x):
        for _ in range(2):
            x = jax.lax.exp2(x)
        return x

    with hlotag.stage(rules=[Rule({"k": "v"}, op="multiply")]):
        ops = ops_of(jax.jit(rounds).lower(X))
    entries = {kind: [op.entries for op in ops if op.name == f"stablehlo.{kind}"] for kind in ("multiply", "exponential")}
    assert entries == {"multiply": [{"k": "v"}] * 2, "exponential": [{}] * 2}
