# SPDX-License-Identifier: Apache-2.0
"""Every primitive of JAX that can be lowered here, under each transformation, in the programs that JAX tests it with.

Nobody wrote them with tags in mind, and what a rule does for the primitives that our own tests know says little about the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.internal_test_util import test_harnesses

import hlotag
from hlotag import set_xla_metadata
from modules import ops_of

# One program for each primitive.
HARNESSES = {harness.group_name: harness for harness in reversed(test_harnesses.all_harnesses)}
TRANSFORMATIONS = ["jit", "jvp", "grad", "jvp of grad", "vmap"]


def transformed(function: Callable, arguments: list[Any], transformation: str) -> tuple[Callable, list[Any]]:
    """`function` of `arguments` under a transformation; skips the test where it has no derivative."""
    if transformation == "jit":
        return function, arguments
    if transformation == "vmap":
        return jax.vmap(function), [jnp.stack([jnp.asarray(x)] * 2) for x in arguments]
    active = [i for i, x in enumerate(arguments) if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)]
    if not active:
        pytest.skip("no argument to differentiate for")

    def of_active(*chosen: Any) -> Any:
        return function(*(chosen[active.index(i)] if i in active else x for i, x in enumerate(arguments)))

    def squared(*chosen: Any) -> Any:
        leaves = [x for x in jax.tree.leaves(of_active(*chosen)) if jnp.issubdtype(x.dtype, jnp.inexact)]
        return sum((jnp.sum(jnp.abs(x) ** 2).astype(jnp.float32) for x in leaves), jnp.float32(0))

    primals = [arguments[i] for i in active]
    if transformation == "jvp":
        return lambda *primals: jax.jvp(of_active, primals, primals), primals
    gradient = jax.grad(squared, argnums=tuple(range(len(active))))
    return (gradient if transformation == "grad" else lambda *primals: jax.jvp(gradient, primals, primals)), primals


def lowered(harness: Any, tag: Callable, transformation: str) -> list[tuple[str, dict[str, str]]]:
    arguments = list(harness.dyn_args_maker(np.random.RandomState(0)))
    function, operands = transformed(lambda *args: tag(harness.dyn_fun, *args), arguments, transformation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # No-operations such as stop_gradient drop their tags; others are deprecated.
        return [(op.name, op.entries) for op in ops_of(jax.jit(function).lower(*operands))]


def untagged(function: Callable, *args: Any) -> Any:
    return function(*args)


def by_value(function: Callable, *args: Any) -> Any:
    return set_xla_metadata(function(*args), k="v")


def by_block(function: Callable, *args: Any) -> Any:
    with set_xla_metadata(k="v"):
        return function(*args)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", HARNESSES)
def test_a_tag_covers_the_primitive_whole(name, transformation):
    harness = HARNESSES[name]
    try:
        with hlotag.stage(None):
            plain = lowered(harness, untagged, transformation)
    except Exception as error:
        pytest.skip(f"JAX itself does not lower it: {type(error).__name__}")
    with hlotag.stage():
        value, block = lowered(harness, by_value, transformation), lowered(harness, by_block, transformation)
    assert [op for op, _ in value] == [op for op, _ in block] == [op for op, _ in plain]
    assert value == block
    if transformation == "jit":
        assert [op for op, entries in block if entries.get("k") != "v"] == []


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
@pytest.mark.parametrize("name", HARNESSES)
def test_a_tag_covers_what_other_platforms_lower_it_to(name, platform):
    harness = HARNESSES[name]
    arguments = harness.dyn_args_maker(np.random.RandomState(0))
    lower = {"lowering_platforms": (platform,)}
    try:
        with hlotag.stage(None):
            plain = ops_of(jax.jit(harness.dyn_fun).trace(*arguments).lower(**lower))
    except Exception as error:
        pytest.skip(f"JAX itself does not lower it: {type(error).__name__}")
    with hlotag.stage():
        found = ops_of(jax.jit(lambda *args: by_block(harness.dyn_fun, *args)).trace(*arguments).lower(**lower))
    assert [op.name for op in found] == [op.name for op in plain]
    assert [op.name for op in found if op.entries.get("k") != "v"] == []


def test_jax_has_programs_for_its_primitives():
    assert len(HARNESSES) > 120


def test_a_bind_that_the_program_held_before_the_stage_was_turned_on():
    assert hlotag.active() is None
    divide = lax.div_p.bind

    def f(x, y):
        return set_xla_metadata(divide(x, y), k="v") * 2.0

    with hlotag.stage():
        found = [(op.name, op.entries) for op in ops_of(jax.jit(jax.grad(f, argnums=(0, 1))).lower(1.0, 2.0))]
        with_module = jax.jit(jax.grad(lambda x, y: set_xla_metadata(lax.div_p.bind(x, y), k="v") * 2.0, argnums=(0, 1)))
        assert found == [(op.name, op.entries) for op in ops_of(with_module.lower(1.0, 2.0))]
    assert sum(entries == {"k": "v"} for _, entries in found) >= 4
