# SPDX-License-Identifier: Apache-2.0
"""A value tag costs no memory: autodiff saves what it saves without the tag, and XLA allocates as much."""

from collections import Counter
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag

LAYERS, ROWS, WIDTH = 4, 64, 8
WEIGHTS = jnp.ones((LAYERS, WIDTH, 4 * WIDTH)), jnp.ones((LAYERS, 4 * WIDTH, WIDTH))
X = jnp.ones((ROWS, WIDTH))


def layer(tag, x, w):
    return tag(tag(jnp.exp(x @ w[0])) @ w[1])


def named(tag, x, w):
    return tag(checkpoint_name(tag(jnp.exp(x @ w[0])), "wide") @ w[1])


def in_jit(tag, x, w):
    return jax.jit(partial(layer, tag))(x, w)


def in_a_branch(tag, x, w):
    return lax.cond(x[0, 0] > 0, partial(layer, tag), lambda x, w: x, x, w)


def in_a_loop(tag, x, w):
    return lax.fori_loop(0, 3, lambda _, x: layer(tag, x, w), x)


def under_vmap(tag, x, w):
    return jax.vmap(partial(layer, tag), (0, None))(x, w)


def with_own_gradient(tag, x, w):
    """The forward rule returns the tagged value and saves it untagged."""

    def forward(x):
        y = jnp.exp(x)
        return tag(y), y

    exp = jax.custom_vjp(lambda x: tag(jnp.exp(x)))
    exp.defvjp(forward, lambda y, g: (tag(y * g),))
    return exp(x @ w[0]) @ w[1]


def with_own_jvp(tag, x, w):
    exp = jax.custom_jvp(jnp.exp)

    @exp.defjvp
    def rule(primals, tangents):
        y = exp(*primals)
        return tag(y), tag(y * tangents[0])

    return exp(x @ w[0]) @ w[1]


def checkpointed(policy, tag, x, w, body=named):
    return jax.checkpoint(partial(body, tag), policy=policy)(x, w)


POLICIES = jax.checkpoint_policies
BODIES = {
    "a layer": layer,
    "in jit": in_jit,
    "in a branch": in_a_branch,
    "in a loop": in_a_loop,
    "under vmap": under_vmap,
    "with a gradient of its own": with_own_gradient,
    "with a jvp of its own": with_own_jvp,
    "checkpoint": partial(checkpointed, None),
    "dots_saveable": partial(checkpointed, POLICIES.dots_saveable),
    "everything_saveable": partial(checkpointed, POLICIES.everything_saveable),
    "everything_saveable, no names": partial(checkpointed, POLICIES.everything_saveable, body=layer),
    "save_only_these_names": partial(checkpointed, POLICIES.save_only_these_names("wide")),
    "save_anything_except_these_names": partial(checkpointed, POLICIES.save_anything_except_these_names("other")),
}


def scanned(body, weights, x):
    return (lax.scan(lambda x, w: (body(x, w), None), x, weights)[0] ** 2).sum()


def unrolled(body, weights, x):
    for n in range(2):
        x = body(x, (weights[0][n], weights[1][n]))
    return (x**2).sum()


TAGS = {
    "jax": lambda value: set_xla_metadata(value, layer="wide"),
    "hlotag": lambda value: hlotag.tag(value, {"layer": "wide"}),
}


def residuals(split, loss):
    """By type, the distinct values that pass from the forward to the backward pass, or to the tangents."""
    jaxpr = jax.make_jaxpr(lambda *args: jax.tree.leaves(split(loss, *args)[1]))(WEIGHTS, X).jaxpr
    return Counter(str(aval) for aval in {id(var): var.aval for var in jaxpr.outvars}.values())


def outputs_of_scans(gradient):
    jaxpr = jax.make_jaxpr(gradient)(WEIGHTS, X).jaxpr
    return [[str(var.aval) for var in equation.outvars] for equation in jaxpr.eqns if equation.primitive.name == "scan"]


def allocated(program):
    return jax.jit(program).lower(WEIGHTS, X).compile().memory_analysis().temp_size_in_bytes


def without_a_tag(value):
    return value


@pytest.mark.parametrize("around", [scanned, unrolled])
@pytest.mark.parametrize("body", BODIES)
def test_a_tag_costs_no_memory(staged, body, around):
    def costs(tag):
        loss = partial(around, partial(BODIES[body], tag))
        gradient = jax.grad(loss)
        return allocated(gradient), outputs_of_scans(gradient), residuals(jax.vjp, loss), residuals(jax.linearize, loss)

    assert costs(TAGS["hlotag"]) == costs(without_a_tag)


@pytest.mark.parametrize("tag", TAGS.values(), ids=TAGS)
def test_a_scan_stacks_each_value_once(staged, tag):
    """The derivative of the exponential and the second product read one array; the first product reads its input."""
    forward, _ = outputs_of_scans(jax.grad(partial(scanned, partial(layer, tag))))
    wide, narrow = f"float32[{LAYERS},{ROWS},{4 * WIDTH}]", f"float32[{LAYERS},{ROWS},{WIDTH}]"
    assert sorted(forward) == sorted([f"float32[{ROWS},{WIDTH}]", narrow, wide])


def gradient_of(loss):
    return jax.grad(loss, (0, 1))


def squared(gradient):
    return lambda *args: sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient(*args)))


DERIVATIVES = {
    "forward over reverse": lambda loss: lambda *args: jax.jvp(gradient_of(loss), args, args)[1],
    "reverse over reverse": lambda loss: gradient_of(squared(gradient_of(loss))),
    "linearized": lambda loss: lambda *args: jax.linearize(gradient_of(loss), *args)[1](*args),
    "of a gradient under vmap": lambda loss: jax.vmap(gradient_of(lambda w, x: loss(w, x[None])), (None, 0)),
}


@pytest.mark.parametrize("transform", DERIVATIVES)
def test_other_derivatives_cost_no_memory(staged, transform):
    def costs(tag):
        derivative = DERIVATIVES[transform](partial(scanned, partial(layer, tag)))
        return allocated(derivative), outputs_of_scans(derivative)

    assert costs(TAGS["hlotag"]) == costs(without_a_tag)
