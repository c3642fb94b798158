# SPDX-License-Identifier: Apache-2.0
"""A rule on a scope gives the same operations the same entries as a block around the code of that scope.

Each program runs in three layers, under a transformation, in place or as a function that the layers share. The rule's pattern is
all layers, one, or the last one.
"""

import functools
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.ode import odeint

import hlotag
from modules import ops_of
from programs import FORWARD_MODE, PROGRAMS, TRANSFORMS, B, W, X

LAYERS = {"layer_*": (0, 1, 2), "layer_1": (1,), "layer_2": (2,)}
ATTRS = {"k": "v"}
GRADS = {"grad": {"k": "derived"}, "remat": {"k": "recomputed"}}


def body(x, w, b):
    return (jnp.tanh(x @ w) * b).sum()


def scan_of_jit(x, w, b):
    return lax.scan(jax.jit(lambda c, r: (jnp.sin(c) * r, c)), b, x)[1].sum()


def in_batches(x, w, b):
    return lax.map(lambda r: jnp.sin(r) * 2, x, batch_size=3).sum() + lax.associative_scan(lambda a, b: a * b + a, w).sum()


# What JAX takes out of these loops keeps its context and loses its scope: blocks tag it, and rules do not.
TAKEN_OUT = {"rnn", "scan_of_remat"}
# What makes a function of the three layers.
KINDS = {
    name: lambda name=name: PROGRAMS[name][0] for name in PROGRAMS if "transformer" not in name and name not in TAKEN_OUT
} | {
    "jit inlined": lambda: jax.jit(body, inline=True),
    "linear jit": lambda: jax.jit(lambda x, w, b: (x * 2.0 + x @ w.T).sum()),
    "checkpoint of jit": lambda: jax.checkpoint(jax.jit(body)),
    "vmap of jit": lambda: lambda x, w, b: jax.vmap(jax.jit(lambda x: jnp.sin(x) * x.sum()))(x).sum(),
    "scan of jit": lambda: scan_of_jit,
    "loops of the library": lambda: in_batches,
    "gradient": lambda: lambda x, w, b: jax.grad(body)(x, w, b).sum(),
    "call with metadata": lambda: hlotag.xla_metadata_call2(body, {"call": "c"}),
    "odeint": lambda: lambda x, w, b: odeint(lambda y, t: jnp.sin(y) * t, x, jnp.array([0.0, 0.1]))[1].sum(),
    "where": lambda: lambda x, w, b: jnp.where(x > 0, x, x * 0.1).sum(),
    "norm": lambda: lambda x, w, b: (x / jnp.linalg.norm(x) / jnp.sqrt(jnp.var(w) + 1e-3)).sum(),
    "solve": lambda: lambda x, w, b: jnp.linalg.solve(w @ w.T + 9 * jnp.eye(8), x.T).sum() * jax.nn.logsumexp(b),
}
QUICK = [
    *[("inner_jit", "value_and_grad"), ("remat_policy", "grad"), ("jit inlined", "vmap_grad"), ("custom_vjp", "grad")],
    *[("where", "hessian"), ("sharded", "jit_grad"), ("scan of jit", "grad"), ("norm", "grad_checkpoint")],
]
CASES = [(k, t) for k in KINDS for t in TRANSFORMS if k != "odeint" and not (k == "custom_vjp" and t in FORWARD_MODE)]
slow = pytest.mark.slow


def entries(function, transform, block_of, rules=()):
    def loss(x, w, b):
        total = 0.0
        for number in range(3):
            with jax.named_scope(f"layer_{number}"), block_of(number):
                total += function(jnp.tanh(x @ w + b), w, b)
        return total**2

    jax.clear_caches()
    with hlotag.stage(rules=rules):
        return [(op.name, op.entries) for op in ops_of(jax.jit(TRANSFORMS[transform](loss)).lower(X, W, B))]


def untagged(_):
    return nullcontext()


def check(kind, transform, share):
    for pattern, layers in LAYERS.items():
        blocks = {n: hlotag.tagged(ATTRS, **GRADS) for n in layers}
        expected = entries(share(KINDS[kind]()), transform, lambda n, blocks=blocks: blocks.get(n, nullcontext()))
        assert any("k" in each for _, each in expected)
        got = entries(share(KINDS[kind]()), transform, untagged, rules=[hlotag.Rule(ATTRS, scope=pattern, **GRADS)])
        differ = [(n, a, b) for n, (a, b) in enumerate(zip(got, expected, strict=True)) if a != b]
        assert not differ, f"{pattern}: {len(differ)} of {len(got)} operations differ: {differ[:5]}"


@pytest.mark.parametrize(
    ("kind", "transform"), [*QUICK, *(pytest.param(*case, marks=slow) for case in CASES if case not in QUICK)]
)
def test_rule_is_block(kind, transform):
    check(kind, transform, jax.jit)


@pytest.mark.parametrize(("kind", "transform"), [*QUICK, ("odeint", "grad")])
def test_rule_is_block_in_place(kind, transform):
    check(kind, transform, lambda function: function)


@slow
@pytest.mark.skipif(not hasattr(jax.config, "jax_remat3"), reason="this jax has no second implementation of checkpoint")
@pytest.mark.parametrize("kind", ["checkpoint of jit", "remat_policy"])
@pytest.mark.parametrize("transform", ["grad", "vmap_grad", "grad_of_grad", "grad_checkpoint"])
def test_rule_is_block_under_remat3(kind, transform, request):
    jax.config.update("jax_remat3", True)
    request.addfinalizer(lambda: jax.config.update("jax_remat3", False))
    check(kind, transform, jax.jit)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_scope_within_a_shared_function(transform):
    """The path of a scope begins outside of the function, where its callers are."""

    def shared(block):
        return jax.jit(jax.named_scope("inner")(lambda *args: block(body)(*args)))

    by_block = entries(shared(hlotag.tagged(ATTRS, **GRADS)), transform, untagged)
    rules = [hlotag.Rule(ATTRS, scope="layer_?/inner", **GRADS)]
    assert entries(shared(lambda f: f), transform, untagged, rules) == by_block
    assert any("k" in each for _, each in by_block)


def test_rules_trace_a_shared_function_once_and_lower_it_once_for_equal_tags():
    traces = []

    @jax.jit
    def shared(x):
        traces.append(1)
        return jnp.sin(x)

    def model(x):
        for number in range(40):
            with jax.named_scope(f"layer_{number}"), jax.named_scope("mlp"):
                x = shared(x)
        return x

    for scope, value, functions in [("layer_*", "v", 1), ("layer_3?/mlp", "v", 2), ("layer_{n}/mlp", "{n}", 40)]:
        jax.clear_caches()
        traces.clear()
        with hlotag.stage(rules=[hlotag.Rule({"k": value}, scope=scope)]):
            text = jax.jit(model).lower(X).as_text()
        assert (len(traces), text.count("func.func private")) == (1, functions), scope


def test_what_rounds_a_saved_value_has_the_tags_of_a_block():
    """JAX rounds it for the equation that names it, which lowers to no operation."""

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names("saved"))
    def named(x, w, b):
        return (jnp.cos(checkpoint_name(jnp.sin(x @ w), "saved")) * b).sum()

    def saves(block, rules=()):
        def loss(x, w, b):
            with block:
                return named(x, w, b)

        with hlotag.stage(rules=rules):
            return [(op.name, op.entries) for op in ops_of(jax.jit(jax.grad(loss)).lower(X, W, B)) if op.entries]

    expected = saves(hlotag.tagged(ATTRS, **GRADS))
    assert ("stablehlo.reduce_precision", ATTRS) in expected
    assert saves(nullcontext(), [hlotag.Rule(ATTRS, op="*", **GRADS)]) == expected
    rounding = saves(nullcontext(), [hlotag.Rule(ATTRS, op="reduce_precision", phase="forward")])
    assert rounding == [("stablehlo.reduce_precision", ATTRS)]
