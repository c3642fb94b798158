# SPDX-License-Identifier: Apache-2.0
"""A step, and variants of which the answer is known: what `hlotag compare` must say of each. Their time is that of products."""

import os

import jax
import jax.numpy as jnp

import hlotag

LAYERS, WIDTH, ROWS = 10, 128, 2048


def layer(x, w):
    return jnp.tanh(x @ w)


def make(layers=LAYERS, kind=jnp.float32, layer=layer):
    """A gradient by its first argument, and the arguments."""

    def loss(x, weights):
        for number, w in enumerate(weights):
            with hlotag.tagged({"half": ("first", "second")[2 * number // layers]}), jax.named_scope(f"layer_{number}"):
                x = layer(x, w)
        return (x**2).sum()

    weights = jax.random.normal(jax.random.key(0), (layers, WIDTH, WIDTH), kind) / WIDTH**0.5
    return jax.grad(loss), (jax.random.normal(jax.random.key(1), (ROWS, WIDTH), kind), list(weights))


def step():
    return make()


def ruled():
    """A rule whose key nobody reads."""
    hlotag.enable(rules=[hlotag.Rule({"part": "mlp"}, scope="layer_1")])
    return make()


def crash():
    """XLA ends the process of an unknown flag."""
    os.environ["XLA_FLAGS"] = "--xla_no_such_flag=1"
    return make()


def broken():
    """A product of shapes that do not fit."""
    return make(layer=lambda x, w: x @ w.T[:3])


def reordered():
    """The products sum from the last element to the first one."""
    return make(layer=lambda x, w: jnp.tanh(x[:, ::-1] @ w[::-1]))


def longer():
    """A fifth more products."""
    return make(LAYERS * 12 // 10)


def shorter():
    """Half of the products."""
    return make(LAYERS // 2)


def remat():
    """Three products of a layer instead of two."""
    return make(layer=jax.checkpoint(layer))


def bfloat16():
    """Values of half the size."""
    return make(kind=jnp.bfloat16)


def chunked():
    """Half of the rows at a time: half of the saved values."""
    gradient, (x, weights) = make()

    def by_halves(x, weights):
        halves = jax.lax.map(lambda half: gradient(half, weights), x.reshape(2, ROWS // 2, WIDTH))
        return halves.reshape(ROWS, WIDTH)

    return by_halves, (x, weights)
