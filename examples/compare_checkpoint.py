# SPDX-License-Identifier: Apache-2.0
"""A checkpoint policy by layer: where does the memory of the peak go, and what does it cost in flops?

    hlotag compare saved=examples/compare_checkpoint.py:saved first=examples/compare_checkpoint.py:first \\
        every=examples/compare_checkpoint.py:every products=examples/compare_checkpoint.py:products \\
        --rules examples/compare_checkpoint.toml

The file of rules tags layers by their scope, so the rows are layers: `--fail-if 'memory>+0%'` guards the peak.
"""

import jax
import jax.numpy as jnp

LAYERS, WIDTH, ROWS = 4, 128, 2048


def layer(x, w):
    hidden = jnp.sin(jnp.tanh(x @ w[0]))
    return x + jnp.tanh(hidden @ w[1])


def gradient(policies):
    """A gradient in which the layers of `policies` are checkpointed, by number, and its arguments."""

    def loss(weights, x):
        for number, w in enumerate(weights):
            saving = jax.checkpoint(layer, policy=policies[number]) if number in policies else layer
            with jax.named_scope(f"layer_{number}"):
                x = saving(x, w)
        return (x**2).sum()

    weights = jax.random.normal(jax.random.key(0), (LAYERS, 2, WIDTH, WIDTH)) / WIDTH**0.5
    return jax.grad(loss), (list(weights), jnp.ones((ROWS, WIDTH)))


def saved():
    return gradient({})


def first():
    """The first half of the layers: their values wait longest."""
    return gradient(dict.fromkeys(range(LAYERS // 2)))


def every():
    return gradient(dict.fromkeys(range(LAYERS)))


def products():
    """Every layer, and the results of products are saved."""
    return gradient(dict.fromkeys(range(LAYERS), jax.checkpoint_policies.dots_saveable))
