# SPDX-License-Identifier: Apache-2.0
"""What the compilers obey of a transformer's train step on four devices, its layers scanned and unrolled.

Weights are sharded and gathered under shard_map, activations are offloaded by a rematerialization policy; two calls are tagged.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from effect_programs import OFFLOADING
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import block, mapped
from conftest import PLATFORM
from hlotag.audits import Verdict
from test_effects import NOT_READ, NOT_SEEN, OUT, effects

LAYERS, BATCH, LENGTH, WIDTH, HEADS = 2, 32, 32, 256, 2


def activation(x, w):
    return jnp.tanh(x @ w)


project = hlotag.xla_metadata_call(jnp.matmul, inlineable="false")
head = hlotag.xla_metadata_call2(activation, {"MUST_FUSE": "head"}, ad_metadata="drop")


def attention(x, qkv):
    q, k, v = (y.reshape(*y.shape[:-1], HEADS, -1) for y in jnp.split(x @ qkv, 3, axis=-1))
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    return x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)


@partial(jax.checkpoint, policy=OFFLOADING)
def layer(x, shards):
    with block(combiner_key="weights"):
        qkv, up, down = (jax.lax.all_gather(w, "i", tiled=True) for w in shards)
    x = attention(x, qkv)
    hidden = checkpoint_name(activation(x, up), "hidden")
    return x + project(hidden, down), None


def scanned(x, weights):
    return jax.lax.scan(layer, x, weights)[0]


def unrolled(x, weights):
    for n in range(LAYERS):
        x, _ = layer(x, [w[n] for w in weights])
    return x


def train_step(*arguments, layers):
    def step(weights, last, x, y):
        def loss(weights, last):
            return jnp.square(head(layers(x, weights), last) - y).mean()

        value, gradients = jax.value_and_grad(loss, (0, 1))(weights, last)
        return jax.tree.map(lambda w, g: w - 0.1 * g, (weights, last), gradients), jax.lax.pmean(value, "i")

    shards = [P(None, "i")] * 3
    return mapped(step, (shards, P(), P("i"), P("i")), ((shards, P()), P()))(*arguments)


WEIGHTS = [np.ones((LAYERS, *shape), np.float32) for shape in ((WIDTH, 3 * WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))]
ARGUMENTS = WEIGHTS, np.ones((WIDTH, WIDTH), np.float32), *[np.ones((BATCH, LENGTH, WIDTH), np.float32)] * 2
EXPECTED = {
    "gpu": {
        "combiner_key=weights": (Verdict.SAME, "combined with none but its own"),
        "inlineable=false": (Verdict.CHANGED, "are calls"),
        "MUST_FUSE=head": (Verdict.UNREAD, NOT_READ),
    },
    "tpu": {
        "combiner_key=weights": (Verdict.UNREAD, NOT_SEEN),
        "inlineable=false": (Verdict.UNREAD, NOT_SEEN),
        "MUST_FUSE=head": (Verdict.CHANGED, "operations in "),
    },
}


@pytest.mark.parametrize("layers", [scanned, unrolled])
def test_effects_of_a_train_step(layers, four):
    found = effects(four, partial(train_step, layers=layers), *ARGUMENTS)  # pyright: ignore[reportCallIssue]
    into = {"_xla_buffer_placement=pinned_host": (Verdict.CHANGED, "into the host's memory (S(5))")}
    expected = EXPECTED[PLATFORM] | into | OUT
    assert found.keys() == expected.keys()
    for key, (verdict, said) in expected.items():
        assert found[key].verdict == verdict, found[key]
        assert said in str(found[key])
