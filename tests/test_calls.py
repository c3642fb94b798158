# SPDX-License-Identifier: Apache-2.0
"""Tagged calls, must-fuse calls and fusion limits: the same on every supported JAX, in the module and in optimized HLO."""

from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlo_programs import compiled_instructions
from modules import ops_of

pytestmark = pytest.mark.usefixtures("second_run")
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


@pytest.fixture(params=[None, hlotag.DEFAULT_PIPELINE], ids=["stage off", "stage on"])
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


def test_with_the_stage_a_calls_body_is_tagged_for_that_call_only():
    inner = jax.jit(lambda x: jnp.sin(x))
    with hlotag.stage():
        ops = ops_of(lower(lambda x: hlotag.xla_metadata_call(inner, k="v")(x) + inner(x)))
    assert [op.entries.get("k") for op in ops if op.name == "stablehlo.sine"] == ["v", None]


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


def test_an_inner_tag_wins_over_the_calls():
    f = hlotag.xla_metadata_call(k="call", o="call")(lambda x: hlotag.tag(jnp.sin(x), {"k": "value"}) * 2.0)
    with hlotag.stage():
        ops = {op.name: op.entries for op in ops_of(lower(f)) if op.entries}
    assert ops["stablehlo.sine"] == {"k": "value", "o": "call"}
    assert ops["stablehlo.multiply"] == {"k": "call", "o": "call"}


@pytest.mark.parametrize("jit", [jax.jit, lambda f: f])
def test_a_function_that_a_backward_rule_calls_too_has_its_own_tags_there(jit):
    inner = jit(lambda x: hlotag.tag(jnp.sin(x), {"k": "own"}, grad={"k": "derived"}) * 2)
    f = jax.custom_vjp(lambda x: inner(x))
    # JAX lowers a jitted function once for both.
    f.defvjp(lambda x: (inner(x), x), lambda x, g: (inner(g) * x,))
    gradient = jax.value_and_grad(lambda x: f(x).sum())
    expected = gradient(X)
    rules = [
        hlotag.Rule({"r": "own"}, op="sine", grad={"r": "derived"}),
        *(hlotag.Rule({"phase": phase}, op="sine", phase=phase) for phase in ("forward", "backward")),
    ]
    with hlotag.stage(rules=rules):
        ops = [op for op in ops_of(lower(gradient)) if op.name == "stablehlo.sine"]
        for mine, theirs in zip(jax.tree.leaves(jax.jit(gradient)(X)), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert [op.entries for op in ops] == [{"k": "own", "r": "own", "phase": phase} for phase in ("forward", "backward")]


def computations(lowered):
    """For each custom call with computations: its own entries, and those of all operations in the computations."""
    functions = {f.attributes["sym_name"].value: f for f in lowered.compiler_ir().body.operations}

    def entries(op):
        found = dict(op.attributes).get("mhlo.frontend_attributes")
        return {entry.name: entry.attr.value for entry in found or ()}

    for op in functions["main"].regions[0].blocks[0].operations:
        for symbol in dict(op.attributes).get("called_computations", ()):
            *body, _ = functions[symbol.value].regions[0].blocks[0].operations
            yield entries(op), [entries(inner) for inner in body]


@pytest.mark.parametrize("find", [jax.lax.approx_max_k, jax.lax.approx_min_k])
@pytest.mark.parametrize("how", ["value", "block", "rule"])
def test_computations_of_a_custom_call_have_its_entries_only(find, how):
    # The comparator, which JAX makes once for all calls.
    def f(x):
        with jax.named_scope("mine"), hlotag.tagged({"k": "v"}) if how == "block" else nullcontext():
            values = find(x, 3)[0]
        return hlotag.tag(values, {"k": "v"}) if how == "value" else values, find(x * 2, 3)[0]

    x = np.arange(64, dtype=np.float32)
    expected = jax.jit(f)(x)
    rules = [hlotag.Rule({"k": "v"}, op="custom_call", scope="mine")] if how == "rule" else []
    with hlotag.stage(rules=rules):
        lowered = jax.jit(f).lower(x)
        assert list(computations(lowered)) == [({"k": "v"}, [{"k": "v"}]), ({}, [{}])]
        np.testing.assert_array_equal(lowered.compile()(x), expected)


@pytest.mark.parametrize(("ad_metadata", "expected"), [("same", "v"), ({"k": "w"}, "w")])
def test_a_call_has_a_gradient_under_checkpoint(ad_metadata, expected):
    """JAX's own call has none if its body is not linear in what is recomputed."""

    body = lambda x: jax.lax.fori_loop(0, 2, lambda _, y: jnp.sin(y * x), x).sum()
    call = hlotag.xla_metadata_call2(body, {"k": "v"}, ad_metadata=ad_metadata)
    with hlotag.stage():
        ops = ops_of(lower(jax.grad(jax.checkpoint(call))))
    assert {op.entries.get("k") for op in ops if op.name == "stablehlo.cosine"} == {expected}
