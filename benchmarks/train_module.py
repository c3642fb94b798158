# SPDX-License-Identifier: Apache-2.0
"""The module that the benchmarks run on: an unrolled transformer training step, as large as the number of layers makes it."""

from __future__ import annotations

from contextlib import nullcontext

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

HEADS, WIDTH, VOCABULARY, LENGTH, BATCH = 4, 64, 96, 32, 4


def parameters(layers: int):
    shapes = {
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
        "scale": (2, WIDTH),
    }
    return {
        "embedding": jax.ShapeDtypeStruct((VOCABULARY, WIDTH), jnp.float32),
        "layers": [{name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()} for _ in range(layers)],
    }


def normalize(x, scale):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * scale


def block_of(number):
    """A block around a layer, which benchmarks replace."""
    return nullcontext()


def layer(x, p):
    with set_xla_metadata(block="attention"):
        q, k, v = jnp.split((normalize(x, p["scale"][0]) @ p["qkv"]).reshape(BATCH, LENGTH, HEADS, -1), 3, axis=-1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9))
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["out"]
    hidden = set_xla_metadata(jax.nn.gelu(normalize(x, p["scale"][1]) @ p["up"]), value="gelu")
    return x + set_xla_metadata(hidden @ p["down"], value="down")


def loss(p, tokens):
    x = p["embedding"][tokens[:, :-1]]
    for number, weights in enumerate(p["layers"]):
        with jax.named_scope(f"layer_{number}"), block_of(number):
            x = layer(x, weights)
    logits = jax.nn.log_softmax(x @ p["embedding"].T)
    return -jnp.take_along_axis(logits, tokens[:, 1:, None], -1).mean()


def train_step(p, m, v, tokens):
    """Loss, gradients and Adam."""
    value, g = jax.value_and_grad(loss)(p, tokens)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
    return jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v, value


def trace(layers: int):
    """The traced training step of that many layers."""
    p = parameters(layers)
    return jax.jit(train_step).trace(p, p, p, jax.ShapeDtypeStruct((BATCH, LENGTH + 1), jnp.int32))


def lower(layers: int):
    """The lowered training step of that many layers."""
    return trace(layers).lower()
