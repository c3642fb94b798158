# SPDX-License-Identifier: Apache-2.0
"""What a tag means, case by case: everything in a block is tagged, helper operations included, and nothing else.

The cases are those where JAX's own tagging loses something. `body` is a matrix product, a tanh and a product with a constant;
what is around it is a sum or a sine, which must stay untagged.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from modules import ops_of
from programs import SEVERAL_OPERATIONS, by_block, by_value

pytestmark = pytest.mark.usefixtures("second_run")
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
W = np.eye(4, dtype=np.float32) + 0.1


def body(x, w):
    return jnp.tanh(x @ w) * 3.0


def twice(step, x, w):
    return lax.scan(lambda c, _: (step(c, w), None), x, None, length=2)[0]


shared, with_rules, with_jvp = jax.jit(body), jax.custom_vjp(body), jax.custom_jvp(body)
with_rules.defvjp(lambda x, w: (body(x, w), (x, w)), lambda res, g: (g @ res[1].T, res[0].T @ g))


@with_jvp.defjvp
def _with_jvp(primals, tangents):
    y = body(*primals)
    return y, (9.0 - y**2) / 3.0 * (tangents[0] @ primals[1] + primals[0] @ tangents[1])


def tag_decorated(function, *args):
    return set_xla_metadata(k="v")(function)(*args)


FORMS = {"value": by_value, "block": by_block, "decorator": tag_decorated}

# What is tagged is one call, so that the value form covers it too.
CALLS = {
    "jit": shared,
    "scan": lambda x, w: twice(body, x, w),
    "while": lambda x, w: lax.fori_loop(0, 2, lambda _, c: body(c, w), x),
    "cond": lambda x, w: lax.cond(x.sum() > 0, body, lambda x, w: x @ w, x, w),
    "checkpoint": jax.checkpoint(body),
    "custom_vjp": with_rules,
    "custom_jvp": with_jvp,
    "scan in jit": jax.jit(lambda x, w: twice(body, x, w)),
    "jit in scan": lambda x, w: twice(shared, x, w),
    "checkpoint in scan": lambda x, w: twice(jax.checkpoint(body), x, w),
}

TRANSFORMS = {
    "plain": lambda f: f,
    "grad": lambda f: jax.grad(f, (0, 1)),
    "value_and_grad": lambda f: jax.value_and_grad(f, (0, 1)),
    "vmap of grad": lambda f: lambda x, w: jax.vmap(jax.grad(f))(x[None], w[None]),
    "grad of vmap": lambda f: jax.grad(lambda x, w: jax.vmap(f)(x[None], w[None]).sum()),
    "jvp": lambda f: lambda x, w: jax.jvp(f, (x, w), (x, w)),
    "second order": lambda f: jax.grad(lambda x, w: (jax.grad(f)(x, w) ** 2).sum()),
}


def lower(f):
    return jax.jit(f).lower(X, W)


def untagged_ops(f):
    """All but constants, which JAX shares among equations."""
    with hlotag.stage():
        ops = [op for op in ops_of(lower(f)) if op.name != "stablehlo.constant"]
    assert ops
    return [(op.name, op.function, op.entries) for op in ops if op.entries.get("k") != "v"]


# JAX itself refuses forward mode of a custom_vjp function.
CASES = [(c, f, t) for c in CALLS for f in FORMS for t in TRANSFORMS if not (c == "custom_vjp" and t == "jvp")]


@pytest.mark.parametrize(("call", "form", "transform"), CASES)
def test_the_products_of_a_tagged_call_and_no_others(call, form, transform):
    """Matrix products and tanh's occur in the tagged call only, so all of them bear the tag; sines and cosines, never."""

    def program(x, w):
        return jnp.sin(FORMS[form](CALLS[call], jnp.cos(x), w)).sum()

    with hlotag.stage():
        ops = ops_of(lower(TRANSFORMS[transform](program)))
    inside = [op for op in ops if op.name in ("stablehlo.dot_general", "stablehlo.tanh")]
    outside = [op for op in ops if op.name in ("stablehlo.sine", "stablehlo.cosine")]
    assert inside and [op for op in inside if op.entries.get("k") != "v"] == []
    assert outside and [op for op in outside if "k" in op.entries] == []


@pytest.mark.parametrize("differentiated", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("name", SEVERAL_OPERATIONS)
def test_all_operations_of_a_block(name, differentiated):
    """The whole program is in the block, so every operation bears the tag: helpers, region bodies, callees."""
    function = SEVERAL_OPERATIONS[name]
    if differentiated:
        function = lambda x: jax.grad(lambda x: jnp.real(SEVERAL_OPERATIONS[name](x)).astype(jnp.float32).sum())(x)
    assert untagged_ops(lambda x, w: by_block(function, x)) == []


# The others are several calls in user code, of which the last makes the value.
ONE_CALL = ["argmax", "cumsum", "sort", "erf_inv", "lgamma", "square", "reduce_window", "fft", "einsum", "var"]


@pytest.mark.parametrize("name", ONE_CALL)
def test_a_value_tag_reaches_all_operations_of_the_call(name):
    assert untagged_ops(lambda x, w: by_value(SEVERAL_OPERATIONS[name], x)) == []


def test_the_mesh_that_a_tagged_call_declares_is_no_operation():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    sums = jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())
    with hlotag.stage(rules=[hlotag.Rule({"rule": "v"}, op="*")]):
        lowered = lower(lambda x, w: by_block(sums, x))
    assert all(op.entries == {"k": "v", "rule": "v"} for op in ops_of(lowered))
    meshes = [str(op) for op in lowered.compiler_ir().body.operations if op.operation.name == "sdy.mesh"]
    assert meshes and not any("frontend_attributes" in text for text in meshes)
