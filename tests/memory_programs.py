# SPDX-License-Identifier: Apache-2.0
"""Gradients whose activations are known, for tests of memory: each layer keeps two, or its argument with a checkpoint."""

import jax
import jax.numpy as jnp
from jax import lax

import hlotag

RULES = [hlotag.Rule({"layer": "{n}"}, scope="layer_{n}")]


def layer(x, w):
    return jnp.tanh(jnp.sin(jnp.tanh(x @ w)) * 2)


def training_step(*, remat):
    def loss(weights, x):
        for n, w in enumerate(weights):
            with jax.named_scope(f"layer_{n}"):
                x = (jax.checkpoint(layer) if remat else layer)(x, w)
        return (x**2).sum()

    return jax.grad(loss)


def looped(weights, x):
    def loss(stacked):
        with jax.named_scope("layer_0"):
            return lax.scan(lambda c, w: (layer(c, w), None), x, stacked)[0].sum()

    return jax.grad(loss)(jnp.stack(weights))
