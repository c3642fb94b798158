# SPDX-License-Identifier: Apache-2.0
"""Value tags on what lowers to nothing: they go to what made its operand."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import PartitionSpec as P

import hlotag
from modules import ops_of
from programs import W, X


def names(function):
    """The operations that bear the key `k`, constants aside."""
    ops = ops_of(jax.jit(function).lower(X, W))
    return [op.name.removeprefix("stablehlo.") for op in ops if "k" in op.entries and op.name != "stablehlo.constant"]


LOWERED_TO_NOTHING = {
    **{"jnp.copy": jnp.copy, "jnp.array": jnp.array, "jax.device_put": jax.device_put, "stop_gradient": lax.stop_gradient},
    "jax.device_put to a device": lambda y: jax.device_put(y, jax.devices()[0]),
    "jax.device_put of several": lambda y: jax.device_put((jnp.ones(3), y))[1],
    "checkpoint_name": lambda y: checkpoint_name(y, "y"),
    "x ** 1": lambda y: lax.integer_pow(y, 1),
    "checkpoint": jax.checkpoint(lambda y: y),
    "checkpoint of several": lambda y: jax.checkpoint(lambda x, y: (y, x))(2.0 * y, y)[0],
    "several": lambda y: jnp.copy(checkpoint_name(jax.device_put(y), "y")),
}


@pytest.mark.parametrize("case", LOWERED_TO_NOTHING)
def test_no_ops_tag_the_equation_of_their_operand(case, staged, set_xla_metadata):
    same = LOWERED_TO_NOTHING[case]
    assert names(lambda x, w: jnp.cos(set_xla_metadata(same(jnp.sin(x)), k="v")) @ w) == ["sine"]
    grad = jax.grad(lambda x, w: (set_xla_metadata(same(jnp.sin(x * 2.0)), k="v") * jnp.sin(x)).sum())
    if case != "stop_gradient":
        assert {"sine", "cosine", "multiply"} == set(names(grad))
    with pytest.warns(hlotag.TagDroppedWarning):
        assert names(lambda x, w: set_xla_metadata(same(x), k="v") @ w) == []


@pytest.mark.parametrize("case", LOWERED_TO_NOTHING)
def test_what_made_the_operand_keeps_its_own_tag(case, staged, set_xla_metadata):
    def f(x, w):
        y = set_xla_metadata(jnp.sin(x), k="own")
        return jnp.cos(set_xla_metadata(LOWERED_TO_NOTHING[case](y), k="copy", other="o")) @ w

    said = "k='copy' has no operation to go to: the operation that made the value lowers to nothing"
    with pytest.warns(hlotag.TagDroppedWarning, match=said):
        found = [(op.name, op.entries) for op in ops_of(jax.jit(f).lower(X, W)) if "k" in op.entries]
    assert found == [("stablehlo.sine", {"k": "own", "other": "o"})]


@pytest.mark.parametrize("kinds", ["varying", "reduced", "reduced varying", "varying unreduced"])
def test_casts_of_shard_map_tag_the_equation_of_their_operand(kinds, staged, set_xla_metadata):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))

    def body(x):
        y = jnp.sin(x)
        for kind in kinds.split():
            y = lax.pcast(y, "i", to=kind)
        return set_xla_metadata(y, k="v")

    last = kinds.split()[-1]
    out = P("i") if last == "varying" else P(**{last: {"i"}})
    with jax.set_mesh(mesh):
        traced = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=out)).trace(X)
    # Not lowered: JAX itself does not lower what returns an unreduced value so.
    (equation,) = traced.jaxpr.eqns
    tagged = [inner.primitive.name for inner in equation.params["jaxpr"].eqns if inner.ctx.xla_metadata]
    assert tagged == ["sin"]


def test_a_transfer_to_another_memory_is_an_operation(staged, set_xla_metadata):
    there = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    f = lambda x, w: jnp.cos(set_xla_metadata(jax.device_put(jnp.sin(x), there), k="v"))
    lowered = jax.jit(f).trace(X, W).lower(lowering_platforms=("cuda",))
    assert [op.name for op in ops_of(lowered) if "k" in op.entries] == ["sdy.sharding_constraint", "stablehlo.custom_call"]


@pytest.mark.parametrize("name", ["copy", "name", "device_put", "stop_gradient", "pvary", "integer_pow", "remat2"])
def test_a_users_own_primitive_is_known_by_its_identity(name, staged, set_xla_metadata):
    own = Primitive(name)
    own.def_abstract_eval(lambda x, **_: x)
    mlir.register_lowering(own, mlir.lower_fun(lambda x, **_: jnp.negative(x), multiple_results=False))
    params = {"integer_pow": {"y": 1}}.get(name, {})
    assert names(lambda x, w: set_xla_metadata(own.bind(jnp.sin(x), **params), k="v") @ w) == ["negate"]


@pytest.mark.parametrize("rule", ["jvp", "vjp"])
def test_an_operation_that_changes_only_the_gradient(staged, set_xla_metadata, rule):
    """It hands on the value of the operation before it, which the tag is not for."""
    reverse = {"jvp": jax.custom_jvp, "vjp": jax.custom_vjp}[rule](lambda x: x)
    if rule == "jvp":
        reverse.defjvp(lambda primals, tangents: (primals[0], jnp.negative(tangents[0])))
    else:
        reverse.defvjp(lambda x: (x, None), lambda _, g: (jnp.negative(g),))
    f = jax.grad(lambda x: jnp.square(set_xla_metadata(reverse(jnp.sin(x)), k="v")).sum())
    assert names(lambda x, _: f(x)) == ["negate"]


@pytest.mark.parametrize("transform", [jax.linearize, lambda f, y: jax.jvp(f, (y,), (jnp.exp(y),))], ids=["linearize", "jvp"])
def test_an_argument_whose_tangent_the_caller_computed(staged, set_xla_metadata, transform):
    """The tag is for the operation behind the argument, as without the transformation."""
    assert names(lambda x, _: transform(lambda y: set_xla_metadata(y, k="v") * 2.0, jnp.sin(x))[0]) == ["sine"]


def test_a_value_without_arrays_and_a_leaked_tracer_are_named(staged):
    leaked = []
    jax.jit(lambda x: leaked.append(jnp.sin(x))).lower(X)
    for value, reason in ((3.0, "argument, a carry or a constant"), (leaked, "tracer that leaked from a function")):
        with pytest.warns(hlotag.TagDroppedWarning, match=f"k='v' has no operation to go to: the value is an? {reason}"):
            assert names(lambda x, w, value=value: (hlotag.tag(value, {"k": "v"}), x @ w)[1]) == []
    assert names(lambda x, w: hlotag.tag((3.0, x @ w), {"k": "v"})[1]) == ["dot_general"]
