# SPDX-License-Identifier: Apache-2.0
"""A gather of the second layer's weights and the first layer's product as one scheduling group, with a stream for H100."""

from functools import partial

import jax
import jax.numpy as jnp
from compiling import run, spread, whole
from jax.sharding import PartitionSpec as P

import hlotag

GROUP = {"_scheduling_group_id": "1"}


def product(x, w):
    return x @ w


def grouped_product(x, w):
    with hlotag.tagged(GROUP):
        return x @ w


@hlotag.xla_metadata_call(_xla_stream_annotation="1", inlineable="false", **GROUP)
def streamed_product(x, w):
    return x @ w


def layers(x, first, second, third, *, group, product):
    with hlotag.tagged(group):
        gathered = jax.lax.all_gather(second, "i", tiled=True)
    hidden = jnp.tanh(product(x, first))
    last = jax.lax.all_gather(third, "i", tiled=True)
    return jnp.tanh(hidden @ gathered) @ last


def recipe(mesh):
    size = (2048, 2048)
    shapes = spread(size), whole(size), spread(size), spread(size)
    variants = {
        "without": partial(layers, group={}, product=product),
        "with a group": partial(layers, group=GROUP, product=grouped_product),
        "with a group, the product on a stream": partial(layers, group=GROUP, product=streamed_product),
    }
    places = P("i"), P(), P("i"), P("i")
    return {
        name: (jax.shard_map(step, mesh=mesh, in_specs=places, out_specs=P("i"), check_vma=False), *shapes)
        for name, step in variants.items()
    }


if __name__ == "__main__":
    run(recipe, 4)
