# SPDX-License-Identifier: Apache-2.0
"""A decoder that scans over its layers, as large models are written: `jax.checkpoint` with policies, and unrolled."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

import ground_truth
from ground_truth import EMBEDDING, TOKENS, Program, block_params, norm

POLICIES = jax.checkpoint_policies


def rotated(x):
    """By angles that are the same for all layers, so that JAX takes them out of a loop over them."""
    angles = jnp.arange(x.shape[0])[:, None] / 100.0 ** (jnp.arange(2) / 2)
    sin, cos = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def decoder_layer(x, p):
    h = norm(x, p["s1"])
    q, k, v = ((h @ p[n]).reshape(*x.shape[:1], 2, -1) for n in "qkv")
    q, k, v = checkpoint_name(rotated(q), "query"), rotated(k), checkpoint_name(v, "value")
    scores = jnp.einsum("qhd,khd->hqk", q, k) * 0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -1e9)
    x = x + jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v).reshape(x.shape) @ p["o"]
    return x + (jax.nn.silu(norm(x, p["s2"]) @ p["up"]) * (x @ p["up"])) @ p["down"], None


def decoder(unroll: int = 1, **checkpoint: Any) -> Program:
    layer = jax.checkpoint(decoder_layer, prevent_cse=False, **checkpoint) if checkpoint else decoder_layer

    def model(params, embedding):
        return lax.scan(layer, embedding[TOKENS], params, unroll=unroll)[0]

    def loss(params, embedding):
        return ground_truth.loss_of(model(params, embedding) @ embedding.T, TOKENS)

    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *block_params(6))
    return Program(loss, (stacked, EMBEDDING), runs_repeatedly=True)


DECODERS = {
    "decoder, unrolled": decoder(unroll=3),
    "decoder, remat": decoder(policy=None),
    "decoder, remat of names": decoder(policy=POLICIES.save_only_these_names("query", "value")),
    "decoder, remat but for products": decoder(policy=POLICIES.dots_saveable),
    "decoder, remat, unrolled": decoder(unroll=3, policy=None),
    "decoder, remat but for products, unrolled": decoder(unroll=3, policy=POLICIES.dots_saveable),
}
