# SPDX-License-Identifier: Apache-2.0
"""Offload by layer: of how many layers should the host keep the activations? Asks TPU v5e's compiler, without a TPU.

    hlotag compare kept=examples/compare_offload.py:kept quarter=examples/compare_offload.py:quarter \\
        half=examples/compare_offload.py:half all=examples/compare_offload.py:all_layers --by scope

Install the compiler by pip install 'jax[tpu]'. The first layers wait longest for the backward pass, so these are offloaded.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

LAYERS, ROWS, WIDTH = 16, 8192, 512
POLICY = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["kept"],
    names_which_can_be_offloaded=["offloaded"],
    offload_src="device",
    offload_dst="pinned_host",
)


def scan(weights, x, name):
    """Layers in a loop, whose activations have a name."""

    @partial(jax.checkpoint, policy=POLICY)
    def layer(x, w):
        return jnp.sin(checkpoint_name(jnp.tanh(x @ w), name) @ w), None

    return jax.lax.scan(layer, x, weights)[0]


def offload(layers):
    """A gradient, with the activations of the first layers on the host, and the shapes of its arguments."""

    def loss(first, last, x):
        for name, weights in (("offloaded", first), ("kept", last)):
            if len(weights):
                with jax.named_scope(name):
                    x = scan(weights, x, name)
        return x.sum()

    place = SingleDeviceSharding(topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0])
    shapes = (layers, WIDTH, WIDTH), (LAYERS - layers, WIDTH, WIDTH), (ROWS, WIDTH)
    return jax.grad(loss, (0, 1)), [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=place) for shape in shapes]


def kept():
    return offload(0)


def quarter():
    return offload(LAYERS // 4)


def half():
    return offload(LAYERS // 2)


def all_layers():
    return offload(LAYERS)
