# SPDX-License-Identifier: Apache-2.0
"""Tags in a backward rule are the rule's own, wherever JAX transposes; tags around it are of derived operations."""

from collections import Counter
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import hijax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import jaxpr_as_fun

import hlotag
from modules import ops_of
from programs import of_scan, of_shard_map

X = np.ones(4, np.float32)


# Each kind of rule computes a tagged `erf`, an operation that no derivative has.
def backward(erf):
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (erf(x) * ct,))
    return f


def shared_with_forward(erf):
    both = jax.jit(lambda x: erf(x) * 2)
    f = jax.custom_vjp(lambda x: both(x))
    f.defvjp(lambda x: (both(x), x), lambda x, ct: (both(x) * ct,))
    return f


def forward(erf):
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), erf(x)), lambda residual, ct: (residual * ct,))
    return f


def custom_gradient(erf):
    return jax.custom_gradient(lambda x: (jnp.sin(x), lambda ct: erf(x) * ct))


def custom_jvp(erf):
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), erf(primals[0]) * tangents[0]))
    return f


def linear_call(erf):
    call = jax.custom_derivatives.linear_call
    return lambda x: call(lambda r, x: r * x, lambda r, ct: erf(r) * ct, jnp.cos(lax.stop_gradient(x)), x)


def custom_root(erf):
    tangent_solve = lambda g, y: y / (g(jnp.ones_like(y)) + erf(jnp.ones_like(y)))
    return lambda x: lax.custom_root(lambda y: y * 2 - x, x, lambda g, y: y, tangent_solve)


def hijax_primitive(erf):
    class Sine(getattr(hijax, "HiPrim", None) or hijax.VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return jnp.sin(x)

        def vjp_fwd(self, nonzeros, /, x):
            return jnp.sin(x), x

        def vjp_bwd_retval(self, residual, ct, /):
            return (erf(residual) * ct,)

    return lambda x: Sine(jax.typeof(x))(x)


def of_jit_in_scan(f):
    return of_scan(jax.jit(f))


def of_cond(f):
    return lambda x: lax.cond(x[0] > 0, f, jnp.sin, x)


def of_vmap(f):
    return lambda x: jax.vmap(f)(x.reshape(2, 2)).reshape(4)


KINDS = (*(backward, shared_with_forward, forward, custom_gradient, custom_jvp, linear_call, custom_root, hijax_primitive),)
AROUND = (lambda f: f, jax.jit, of_scan, of_jit_in_scan, of_cond, jax.checkpoint, of_vmap, of_shard_map)
# JAX has no rule of `linear_call` for vmap, and none of hijax primitives for vmap and checkpoint.
IMPOSSIBLE = {(linear_call, of_vmap), (hijax_primitive, of_vmap), (hijax_primitive, jax.checkpoint)}
# JAX raises an AssertionError.
NO_SECOND_ORDER = {(linear_call, of_cond)}
# `jax.checkpoint` recomputes what these compute in the forward pass; "drop" is for that too.
RECOMPUTED = {(kind, jax.checkpoint) for kind in (forward, custom_jvp, custom_root)}
# By default, derived operations have the first and not the second.
BLOCK = {"block": "1", "_scheduling_group_id": "1"}
VALUE = {"value": "1", "_xla_stream_annotation": "1"}
DROPPED = {"_scheduling_group_id", "_xla_stream_annotation"}


def tagged_by(module):
    def erf(x):
        if module is hlotag:
            with hlotag.tagged(BLOCK):
                return hlotag.tag(lax.erf(x), VALUE)
        with set_xla_metadata(**BLOCK):
            return set_xla_metadata(lax.erf(x), **VALUE)

    return erf


def first(f):
    return jax.grad(lambda x: jnp.sum(f(x) ** 2))


def second(f):
    return jax.grad(lambda x: jnp.sum(first(f)(x) ** 2))


def count(f, order):
    """How often each key is on an `erf`."""
    return Counter(key for op in ops_of(jax.jit(order(f)).lower(X)) if op.name == "chlo.erf" for key in op.entries)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", KINDS)
def test_rules_have_the_tags_that_jax_alone_keeps(kind, around):
    if (kind, around) in IMPOSSIBLE:
        return
    orders = (first,) if (kind, around) in NO_SECOND_ORDER else (first, second)
    keys = (BLOCK.keys() | VALUE.keys()) - (DROPPED if (kind, around) in RECOMPUTED else set())
    alone = {order: count(around(kind(tagged_by(jax))), order) for order in orders}
    for module in (jax, hlotag):
        with hlotag.stage():
            found = {order: count(around(kind(tagged_by(module))), order) for order in orders}
        for key in keys:
            assert found[first][key] == alone[first][key] > 0
            # What autodiff derives from a rule's operations, and recomputes, has no key whose default is "drop".
            assert found[orders[-1]][key] >= alone[first if key in DROPPED else orders[-1]][key]


def entries(f, op, rules=()):
    with hlotag.stage(rules=rules):
        return [each.entries for each in ops_of(jax.jit(f).lower(X)) if each.name == op]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("how", ["block", "value"])
def test_what_autodiff_derives_from_a_rule_has_the_tags_for_that(how, around):
    def erf(x):
        if how == "value":
            return hlotag.tag(lax.erf(x), {"k": "own"}, grad={"k": "derived"})
        with hlotag.tagged({"k": "own"}, grad={"k": "derived"}):
            return lax.erf(x)

    gradient = second(around(backward(erf)))
    recomputed = {"derived"} if around is jax.checkpoint else set()
    assert {each["k"] for each in entries(gradient, "chlo.erf")} == {"own"} | recomputed
    assert "derived" in {each.get("k") for each in entries(gradient, "stablehlo.multiply")}
    assert "derived" not in str(entries(first(around(backward(erf))), "stablehlo.multiply"))


@pytest.mark.parametrize("kind", [backward, custom_gradient, linear_call])
@pytest.mark.parametrize("jit", [lambda f: f, jax.jit])
def test_a_rule_has_the_derived_tags_of_what_is_around_the_function(kind, jit):
    function = jit(kind(lax.erf))

    def f(x):
        with jax.named_scope("here"), hlotag.tagged({"block": "f"}, grad={"block": "d"}):
            return hlotag.tag(function(x), {"value": "f"}, grad={"value": "d"})

    rules = [hlotag.Rule({"rule": "f"}, scope="here", grad={"rule": "d"})]
    found = entries(first(f), "chlo.erf", rules)
    assert {"block": "d", "value": "d", "rule": "d"} in found
    assert all(set(each.values()) in ({"d"}, {"f"}) for each in found)
    assert len([each for each in found if "d" in each.values()]) == 1


def test_a_librarys_backward_rule_has_the_derived_tags_of_a_function_that_it_evaluates():
    from jax.experimental.ode import odeint

    def f(x):
        with hlotag.tagged({"k": "f"}, grad={"k": "d"}):
            return odeint(lambda y, t: lax.erf(y), x, jnp.arange(2.0))[-1]

    assert {each["k"] for each in entries(f, "chlo.erf")} == {"f"}
    assert {each["k"] for each in entries(first(f), "chlo.erf")} == {"f", "d"}


def test_jitted_functions_forget_their_traces_in_a_stage():
    traced = []
    f = jax.jit(lambda x: traced.append(x) or x)
    with hlotag.stage():
        f.lower(X)
        f.clear_cache()
        f.lower(X)
    assert len(traced) == 2


def test_the_marks_of_rules_leave_nothing_in_names():
    f = first(of_scan(backward(lax.erf)))

    def names(lowered):
        return [op.location.partition('"(callsite')[0] for op in ops_of(lowered)]

    jax.clear_caches()  # What another test traced, such as the function behind `broadcast_in_dim`, has the lines of that.
    alone = names(jax.jit(f).lower(X))
    jax.clear_caches()
    with hlotag.stage():
        traced = jax.jit(f).trace(X)
        assert names(traced.lower()) == alone
    with hlotag.stage(None):  # A jaxpr of the stage, lowered without it.
        outside = names(jax.jit(jaxpr_as_fun(traced.jaxpr)).lower(X))
    assert [name for name in outside if "hlotag" in name or "\x01" in name or "\\01" in name] == []
    assert len(outside) >= len(alone)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f)), of_scan, of_cond], ids=range(5))
def test_what_a_rule_evaluates_of_the_function_around_it_is_derived(wrap):
    """A converted closure was traced in the block. Where the rule calls it, all of it has what derived operations get."""

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def solve(f, x):
        return f(x)

    def backward(f, x, ct):
        return (ct * f(x),)

    solve.defvjp(lambda f, x: (f(x), x), backward)

    def loss(x):
        with hlotag.tagged({"k": "v"}, grad={"k": "derived"}):
            closure, _ = jax.closure_convert(wrap(lax.erf), x)
            return jnp.sum(solve(closure, x))

    with hlotag.stage():
        ops = ops_of(jax.jit(jax.value_and_grad(loss)).lower(X))
    assert {op.entries["k"] for op in ops if op.name == "chlo.erf"} == {"v", "derived"}


def test_a_jitted_function_has_its_own_tag_in_a_rule():
    tag = hlotag.tagged({"k": "v"}, grad={"k": "derived"})
    own = jax.jit(tag(lax.erf))
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * own(x),))
    with hlotag.stage():
        ops = ops_of(jax.jit(jax.grad(lambda x: jnp.sum(tag(f)(x)))).lower(X))
    assert [op.entries["k"] for op in ops if op.name == "chlo.erf"] == ["v"]
