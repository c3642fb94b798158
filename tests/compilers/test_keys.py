# SPDX-License-Identifier: Apache-2.0
"""Which keys change what the compilers make, where Audit.effects gives no verdict: against a key that nobody reads."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hlo_text import without_names

import hlotag
from compilers import KINDS, Compiler
from test_effects import FOUR, LAYERS, ONE, P, X, block, layers, mapped

PLATFORM = os.environ["HLOTAG_COMPILERS"]
NEW = jax.__version_info__ >= (0, 12)


def softmax(x, **attrs):
    with block(**attrs):
        return jax.nn.softmax(x)


def product(x, w, **attrs):
    with block(**attrs):
        return jnp.sin(x) @ w


def invariant(x, w, **attrs):
    with block(**attrs):
        return jax.lax.fori_loop(0, 8, lambda _, y: jnp.sin(y @ jnp.tanh(w)) + y, x)


def gathered_product(x, w, **attrs):
    def run(x, w):
        with block(**attrs):
            return jax.lax.all_gather(x, "i", tiled=True) @ w

    return mapped(run, (P("i"), P(None, "i")), P(None, "i"))(x, w)


def collectives(x, y, **attrs):
    def run(x, y):
        with block(**attrs):
            return jax.lax.psum(jnp.sin(x), "i"), jax.lax.all_gather(jnp.cos(y), "i")

    return mapped(run, (P("i"), P("i")), (P(), P()))(x, y)


def delayed(x, *weights, **attrs):
    return mapped(partial(layers, product=jnp.matmul, group=attrs), *LAYERS)(x, *weights)


# By key: a value, a program, the devices, and the compilers whose module it changes.
ROWS: dict[str, tuple[str, Any, int, int, set[str]]] = {
    "MAXIMAL_FUSE": ("a", softmax, 1, ONE, set()),
    "grad_x": ("true", product, 2, ONE, set()),
    "_xla_disable_loop_instr_hoisting": ("true", invariant, 2, ONE, {"tpu"}),
    "_xla_collective_matmul": ("lhs_ag", gathered_product, 2, FOUR, set()),
    "collective_group_key": ("a", collectives, 2, FOUR, {"gpu"} if NEW else set()),
    "scheduler_hint": ("force_delay", delayed, 4, FOUR, set()),
}


def compiled(compiler: Compiler, program: Any, count: int, **attrs: str) -> str:
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage(hlo=False):
        return without_names(compiler.lower(partial(program, **attrs), *(np.ones_like(X),) * count).compile().as_text())


@pytest.mark.parametrize("key", ROWS)
def test_a_key_changes_the_module(key):
    value, program, count, devices, readers = ROWS[key]
    compiler = list(KINDS[PLATFORM].values())[devices]()
    changed = compiled(compiler, program, count, **{key: value}) != compiled(compiler, program, count, nobody=value)
    assert changed is (PLATFORM in readers)
