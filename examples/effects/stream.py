# SPDX-License-Identifier: Apache-2.0
"""Two independent products, one of them on a stream of its own."""

import jax.numpy as jnp
from compiling import run, whole

import hlotag


def product(x, w):
    return jnp.tanh(x @ w)


streamed = hlotag.xla_metadata_call(product, _xla_stream_annotation="1", inlineable="false")


def recipe(mesh):
    def step(first, x, w):
        return first(x, w) + jnp.cos(x @ x)

    shapes = whole((512, 512)), whole((512, 512))
    return {
        "without": (lambda x, w: step(product, x, w), *shapes),
        "with a stream": (lambda x, w: step(streamed, x, w), *shapes),
    }


if __name__ == "__main__":
    run(recipe, 1)
