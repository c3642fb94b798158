# SPDX-License-Identifier: Apache-2.0
"""All but attributes is as XLA makes it without numbers in names, in programs that have names of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import hlotag

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
W = np.linspace(1, 2, 36, dtype=np.float32).reshape(6, 6)


def combined_collectives(x, w):
    """XLA writes the names of collectives that it combines as `prefix/(a:b)`."""

    def body(x, w):
        def loss(w):
            with jax.named_scope("inner"):
                h = lax.psum(x @ w, "i")
            with jax.named_scope("inner"), jax.named_scope("mean"):
                return (h * lax.pmean(x, "i")).sum()

        value, gradient = jax.value_and_grad(loss)(w)
        return lax.psum(value, "i"), lax.psum(gradient, "i")

    mesh = Mesh(np.array(jax.devices()[:4]), ("i",))
    return jax.shard_map(body, mesh=mesh, in_specs=(P("i"), P()), out_specs=P(), check_vma=False)(x, w)


def callback(x, w):
    """JAX puts the type of a callback, `"pure_callback:"(...)`, around its name."""
    y = jax.pure_callback(lambda y: np.asarray(y) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.sin(x))
    return y @ w


def nameless_call(x, w):
    """A helper of `random.normal` is called without a name, and XLA makes up names for its results."""
    return jax.random.normal(jax.random.key(0), x.shape) + x @ w


def name_of_caller(x, w):
    """XLA does not put a caller's name before an equal one."""
    return jax.grad(lambda x: jnp.quantile(x, jnp.array([0.1, 0.5]), axis=1).sum())(x) @ w


def name_of_frame(x, w):
    """A call that has no name but its only frame's."""
    return jnp.unique(jnp.round(x).ravel(), size=4) + w[:4, 0]


FUNCTIONS = [combined_collectives, callback, nameless_call, name_of_caller, name_of_frame]


def optimized(function: Callable, *, hlo: bool) -> tuple[str, list[Any]]:
    jax.clear_caches()  # What was traced before, for another test, has the frames of that.
    with hlotag.stage(hlo=hlo), hlotag.set_xla_metadata(k="v"):
        executable = jax.jit(function).lower(X, W).compile()
    return re.sub(r", frontend_attributes=\{[^}]*\}", "", executable.as_text()), jax.tree.leaves(executable(X, W))  # pyright: ignore[reportCallIssue]


@pytest.fixture(params=[True, False], ids=["all frames", "one frame"])
def _frames(request):
    before = jax.config.jax_include_full_tracebacks_in_locations
    jax.config.update("jax_include_full_tracebacks_in_locations", request.param)
    yield
    jax.config.update("jax_include_full_tracebacks_in_locations", before)


@pytest.mark.usefixtures("_frames")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_but_attributes_is_as_xla_made_it(function):
    (plain, before), (restored, after) = (optimized(function, hlo=hlo) for hlo in (False, True))
    assert restored == plain
    for a, b in zip(after, before, strict=True):
        np.testing.assert_array_equal(a, b)
