# SPDX-License-Identifier: Apache-2.0
"""Tagged calls, must-fuse calls and fusion limits: the same on every supported JAX, in the module and in optimized HLO."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlo_programs import compiled_instructions
from modules import ops_of

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


@pytest.fixture(params=[None, hlotag.passes.DEFAULT_PIPELINE], ids=["stage off", "stage on"])
def staged(request):
    with hlotag.stage(request.param):
        yield


def lower(f, *args):
    return jax.jit(f).lower(*(args or (X,)))


def calls(f, *args):
    return [op.entries for op in ops_of(lower(f, *args)) if op.name == "func.call"]


def test_must_fuse_call_tags_the_call_and_its_operations(staged):
    f = lambda x: (jnp.sin(x), hlotag.must_fuse_call("1")(lambda x: jnp.square(x).sum())(x))
    assert {"MUST_FUSE": "1"} in calls(f)
    found = [(i.opcode, i.attributes.get("MUST_FUSE")) for i in compiled_instructions(lower(f))]
    wanted = [value for opcode, value in found if opcode in ("multiply", "reduce")]
    assert len(wanted) >= 2 and set(wanted) == {"1"} and {value for opcode, value in found if opcode == "sine"} == {None}


def test_fuse_limit_as_block_and_decorator(staged):
    def f(x):
        with hlotag.fuse_limit():
            y = jnp.sin(x)
        return hlotag.fuse_limit()(jnp.cos)(y) + 1.0

    tagged = [op.name for op in ops_of(lower(f)) if op.entries.get("FUSE_LIMIT") == "true"]
    assert [name for name in tagged if name != "stablehlo.constant"] == ["stablehlo.sine", "stablehlo.cosine"]


@pytest.mark.parametrize("value", ["v", True, 3, 0.5])
def test_a_call_bears_its_metadata(staged, value):
    for call in (
        hlotag.xla_metadata_call(jnp.tanh, k=value),
        hlotag.xla_metadata_call(k=value)(jnp.tanh),
        hlotag.xla_metadata_call2({"k": value})(jnp.tanh),
        hlotag.xla_metadata_call2(jnp.tanh, {"k": value}),
    ):
        assert {"k": "true" if value is True else str(value)} in calls(lambda x, call=call: call(x))


@pytest.mark.parametrize(
    ("ad_metadata", "expected"), [("same", {"k": "v"}), ("drop", {}), ({"k": "b"}, {"k": "b"}), ({"kb": "b"}, {"kb": "b"})]
)
def test_metadata_of_derived_calls(ad_metadata, expected):
    f = hlotag.xla_metadata_call2(lambda x: jnp.sin(x) * x, {"k": "v"}, ad_metadata=ad_metadata)
    with hlotag.stage():
        forward, *derived = calls(jax.value_and_grad(lambda x: f(x).sum()))
    assert forward == {"k": "v"} and derived and all(entries == expected for entries in derived)


def test_numbers_are_those_of_the_function(staged):
    plain = lambda x, y: (x * jnp.sin(y), x)
    f = hlotag.xla_metadata_call2(plain, {"k": "v"}, ad_metadata="drop")
    for transform in (jax.jit, jax.vmap):
        np.testing.assert_array_equal(transform(f)(X, X), transform(plain)(X, X))


@pytest.mark.parametrize(("ad_metadata", "expected"), [("same", "v"), ({"k": "w"}, "w")])
def test_a_call_has_a_gradient_under_checkpoint(ad_metadata, expected):
    """JAX's own call has none if its body is not linear in what is recomputed."""

    body = lambda x: jax.lax.fori_loop(0, 2, lambda _, y: jnp.sin(y * x), x).sum()
    call = hlotag.xla_metadata_call2(body, {"k": "v"}, ad_metadata=ad_metadata)
    with hlotag.stage():
        ops = ops_of(lower(jax.grad(jax.checkpoint(call))))
    assert {op.entries.get("k") for op in ops if op.name == "stablehlo.cosine"} == {expected}
