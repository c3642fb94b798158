# SPDX-License-Identifier: Apache-2.0
"""Activations of a scan over layers: saved in the device's memory, or in the host's by a rematerialization policy."""

from functools import partial

import jax
import jax.numpy as jnp
from compiling import run, whole
from jax.ad_checkpoint import checkpoint_name

LAYERS, BATCH, WIDTH = 8, 8192, 512


def layer(x, w):
    hidden = checkpoint_name(jnp.tanh(x @ w), "hidden")
    return jnp.sin(hidden @ w), None


def gradient(policy, w, x):
    return jax.grad(lambda w: jax.lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].sum())(w)


def recipe(mesh):
    policies = jax.checkpoint_policies
    offload = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    shapes = whole((LAYERS, WIDTH, WIDTH)), whole((BATCH, WIDTH))
    return {
        "saved on the device": (partial(gradient, policies.save_only_these_names("hidden")), *shapes),
        "saved on the host": (partial(gradient, offload), *shapes),
    }


if __name__ == "__main__":
    run(recipe, 1)
