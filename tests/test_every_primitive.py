# SPDX-License-Identifier: Apache-2.0
"""Every primitive of JAX that can be lowered here, under each transformation, in the programs that JAX tests it with.

Nobody wrote them with tags in mind, and what a rule does for the primitives that our own tests know says little about the others.
"""

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
from modules import ops_of
from programs import by_block, by_value

pytestmark = pytest.mark.slow

# One program for each primitive: the first in float32, which CPUs have kernels for, or the first.
HARNESSES = {harness.group_name: harness for harness in reversed(test_harnesses.all_harnesses)}
HARNESSES |= {harness.group_name: harness for harness in reversed(test_harnesses.all_harnesses) if harness.dtype == np.float32}
TRANSFORMATIONS = ["jit", "jvp", "grad", "jvp of grad", "vmap"]
DERIVATIVES = {"jvp", "grad", "jvp of grad"}

# What JAX itself does not lower: no rule, a program that calls the primitive without what its rule needs, nothing to batch.
NOT_LOWERED = {
    **dict.fromkeys(["clamp", "regularized_incomplete_beta", "scatter_mul"], DERIVATIVES),
    **{name: {"grad", "jvp of grad"} for name in ("conj", "mul", "reduce_window_mul")},
    **{"igamma": {"jvp of grad"}, "igammac": {"jvp of grad"}, "eig": {"jvp of grad", "tpu"}},
    **{name: {"vmap"} for name in ("iota", "iota_2x32_shape", "random_randint", "random_split", "random_uniform")},
}
if jax.__version_info__ >= (0, 11):
    NOT_LOWERED |= {"reduce_max": DERIVATIVES, "reduce_min": DERIVATIVES}
if jax.__version_info__ < (0, 12):
    NOT_LOWERED |= {"nextafter": DERIVATIVES}


def arguments_of(name: str) -> list[Any]:
    return list(HARNESSES[name].dyn_args_maker(np.random.RandomState(0)))


def active_of(arguments: list[Any]) -> list[int]:
    """The arguments to differentiate for."""
    return [i for i, x in enumerate(arguments) if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)]


DISCRETE = {name for name in HARNESSES if not active_of(arguments_of(name))}
CASES = [(n, t) for n in HARNESSES for t in TRANSFORMATIONS if not (n in DISCRETE and t in DERIVATIVES)]
LOWERED = [(n, t) for n, t in CASES if t not in NOT_LOWERED.get(n, ())]
OTHER_PLATFORMS = [(n, p) for n in HARNESSES for p in ("tpu", "cuda") if p not in NOT_LOWERED.get(n, ())]


def transformed(function: Callable, arguments: list[Any], transformation: str) -> tuple[Callable, list[Any]]:
    """`function` of `arguments` under a transformation."""
    if transformation == "jit":
        return function, arguments
    if transformation == "vmap":
        return jax.vmap(function), [jnp.stack([jnp.asarray(x)] * 2) for x in arguments]
    active = active_of(arguments)

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


# Python functions of several binds; as jitted functions they are one.
SEVERAL_BINDS = ("dynamic_slice", "dynamic_update_slice", "eigh", "random_categorical", "random_randint", "random_uniform")


def function_of(name: str) -> Callable:
    function = HARNESSES[name].dyn_fun
    return jax.jit(function) if name in SEVERAL_BINDS else function


def untagged(function: Callable, *args: Any) -> Any:
    return function(*args)


def lowered(name: str, tag: Callable, transformation: str, around: Callable = untagged) -> list[tuple[str, dict[str, str]]]:
    """The operations of a primitive's program, with a form of tag within its transformation or around it."""
    function, operands = transformed(lambda *args: tag(function_of(name), *args), arguments_of(name), transformation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # No-operations such as stop_gradient drop their tags; others are deprecated.
        return [(op.name, op.entries) for op in ops_of(jax.jit(lambda *args: around(function, *args)).lower(*operands))]


def untagged_in(ops: list[tuple[str, dict[str, str]]]) -> list[str]:
    """The operations without the tag. Constants need none: XLA has no tags of constants."""
    return [op for op, entries in ops if entries.get("k") != "v" and op != "stablehlo.constant"]


@pytest.mark.parametrize(("name", "transformation"), LOWERED)
def test_a_tag_covers_the_primitive_whole(name, transformation):
    with hlotag.stage(None):
        plain = lowered(name, untagged, transformation)
    with hlotag.stage():
        value, block = lowered(name, by_value, transformation), lowered(name, by_block, transformation)
        whole = lowered(name, untagged, transformation, around=by_block)
    assert [op for op, _ in value] == [op for op, _ in block] == [op for op, _ in plain]
    assert value == block
    assert untagged_in(whole) == []


def lowered_for(platform: str, name: str, tag: Callable) -> list[tuple[str, dict[str, str]]]:
    traced = jax.jit(lambda *args: tag(HARNESSES[name].dyn_fun, *args)).trace(*arguments_of(name))
    return [(op.name, op.entries) for op in ops_of(traced.lower(lowering_platforms=(platform,)))]


@pytest.mark.parametrize(("name", "platform"), OTHER_PLATFORMS)
def test_a_tag_covers_what_other_platforms_lower_it_to(name, platform):
    with hlotag.stage(None):
        plain = lowered_for(platform, name, untagged)
    with hlotag.stage():
        found = lowered_for(platform, name, by_block)
    assert [op for op, _ in found] == [op for op, _ in plain]
    assert untagged_in(found) == []


@pytest.mark.parametrize(("name", "how"), [(name, how) for name, ways in NOT_LOWERED.items() for how in sorted(ways)])
def test_jax_still_does_not_lower_what_is_left_out(name, how):
    with hlotag.stage(None), pytest.raises((TypeError, ValueError, NotImplementedError)):
        lowered(name, untagged, how) if how in TRANSFORMATIONS else lowered_for(how, name, untagged)


def test_jax_has_programs_for_its_primitives():
    assert len(HARNESSES) > 120


def test_a_bind_that_was_held_before_the_stage():
    assert hlotag.active() is None
    held = lax.div_p.bind

    def lowered_with(divide):
        gradient = jax.grad(lambda x, y: by_value(divide, x, y) * 2.0, argnums=(0, 1))
        return [(op.name, op.entries) for op in ops_of(jax.jit(gradient).lower(1.0, 2.0))]

    with hlotag.stage():
        found = lowered_with(held)
        assert found == lowered_with(lax.div_p.bind)
    assert sum(entries == {"k": "v"} for _, entries in found) >= 4
