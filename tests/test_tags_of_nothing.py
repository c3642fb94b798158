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
    "jnp.copy": jnp.copy,
    "jnp.array": jnp.array,
    "jax.device_put": jax.device_put,
    "jax.device_put to a device": lambda y: jax.device_put(y, jax.devices()[0]),
    "jax.device_put of several": lambda y: jax.device_put((jnp.ones(3), y))[1],
    "stop_gradient": lax.stop_gradient,
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
    with pytest.warns(hlotag.TagDropped):
        assert names(lambda x, w: set_xla_metadata(same(x), k="v") @ w) == []


@pytest.mark.parametrize("case", LOWERED_TO_NOTHING)
def test_what_made_the_operand_keeps_its_own_tag(case, staged, set_xla_metadata):
    def f(x, w):
        y = set_xla_metadata(jnp.sin(x), k="own")
        return jnp.cos(set_xla_metadata(LOWERED_TO_NOTHING[case](y), k="copy", other="o")) @ w

    with pytest.warns(
        hlotag.TagDropped, match="k='copy' has no operation to go to: the operation that made the value lowers to nothing"
    ):
        (sine,) = [op for op in ops_of(jax.jit(f).lower(X, W)) if "k" in op.entries]
    assert sine.name == "stablehlo.sine"
    assert (sine.entries["k"], sine.entries["other"]) == ("own", "o")


CASTS = {
    "to varying": ["varying"],
    "to reduced": ["reduced"],
    "reduced to varying": ["reduced", "varying"],
    "varying to unreduced": ["varying", "unreduced"],
}


@pytest.mark.parametrize("case", CASTS)
def test_casts_of_shard_map_tag_the_equation_of_their_operand(case, staged, set_xla_metadata):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
    kind = CASTS[case][-1]

    def body(x):
        y = jnp.sin(x)
        for to in CASTS[case]:
            y = lax.pcast(y, "i", to=to)
        return set_xla_metadata(y, k="v")

    out = P("i") if kind == "varying" else P(**{kind: {"i"}})
    with jax.set_mesh(mesh):
        traced = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=out)).trace(X)
    # Not lowered: JAX itself does not lower what returns an unreduced value so.
    (equation,) = traced.jaxpr.eqns
    tagged = [inner.primitive.name for inner in equation.params["jaxpr"].eqns if inner.ctx.xla_metadata]
    assert tagged == ["sin", "xla_metadata_value"]


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


def _reverses_by_vjp(x):
    reverse = jax.custom_vjp(lambda x: x)
    reverse.defvjp(lambda x: (x, None), lambda _, g: (jnp.negative(g),))
    return reverse(x)


def _reverses_by_jvp(x):
    reverse = jax.custom_jvp(lambda x: x)
    reverse.defjvp(lambda primals, tangents: (primals[0], jnp.negative(tangents[0])))
    return reverse(x)


@pytest.mark.parametrize("reverse", [_reverses_by_vjp, _reverses_by_jvp])
def test_an_operation_that_changes_only_the_gradient(staged, set_xla_metadata, reverse):
    """It hands on the value of the operation before it, which the tag is not for."""

    def f(x):
        return jnp.square(set_xla_metadata(reverse(jnp.sin(x)), k="v")).sum()

    assert names(lambda x, _: jax.grad(f)(x)) == ["negate"]


@pytest.mark.parametrize("transform", [jax.linearize, jax.jvp])
def test_an_argument_whose_tangent_the_caller_computed(staged, set_xla_metadata, transform):
    """The tag is for the operation behind the argument, as without the transformation."""

    def f(x):
        y = jnp.sin(x)
        tangents = () if transform is jax.linearize else ((jnp.exp(y),),)
        primals = (y,) if transform is jax.linearize else ((y,),)
        return transform(lambda y: set_xla_metadata(y, k="v") * 2.0, *primals, *tangents)[0]

    assert names(lambda x, _: f(x)) == ["sine"]
