# SPDX-License-Identifier: Apache-2.0
"""An activation that is to be one fusion with its product, and a limit that keeps what follows out of a fusion."""

import jax.numpy as jnp
from compiling import run, whole

import hlotag


def activation(x, w):
    return jnp.tanh(x @ w)


def recipe(mesh):
    def step(inner, x, w):
        y = jnp.sin(x)
        return inner(y, w) + jnp.cos(y @ y)

    def limited(x, w):
        with hlotag.fuse_limit():
            return activation(x, w)

    variants = {"without": activation, "must fuse": hlotag.must_fuse_call("a")(activation), "with a limit": limited}
    return {
        name: (lambda x, w, inner=inner: step(inner, x, w), whole((512, 512)), whole((512, 512)))
        for name, inner in variants.items()
    }


if __name__ == "__main__":
    run(recipe, 1)
