# SPDX-License-Identifier: Apache-2.0
"""Value tags against ground truth: every primal equation is tagged with its own number, and every op must bear the right one.

Ground truth comes from JAX alone: each equation of the primal jaxpr is evaluated in a block that sets an `id`, and JAX carries
equation contexts through its transformations. The same jaxpr is then evaluated with the stage on, and each equation's results
are value-tagged after they were made. And a value tag covers what a block around the call covers, helpers included, in programs
that a guess by name, line or dataflow gets wrong.
"""

import inspect

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from modules import ops_of
from programs import FORWARD_MODE, PROGRAMS, TRANSFORMS, B, W, X, by_block, by_value, evaluate


def in_block(i, bind):
    with set_xla_metadata(id=str(i)):
        return bind()


def tag_result(i, bind):
    return set_xla_metadata(bind(), id=str(i))


# JAX itself refuses forward mode of a custom_vjp function.
CASES = [(p, t) for p in PROGRAMS for t in TRANSFORMS if not (p == "custom_vjp" and t in FORWARD_MODE)]
# One of each kind: reverse, forward, batched, second order, recomputed.
QUICK = {"grad", "jvp", "vmap_grad", "hessian", "grad_checkpoint"}


@pytest.mark.parametrize(
    ("program", "transform"), [pytest.param(p, t, marks=() if t in QUICK else pytest.mark.slow) for p, t in CASES]
)
def test_every_op_bears_the_tag_of_its_equation(program, transform):
    function, args = PROGRAMS[program]
    primal = jax.make_jaxpr(lambda *args: function(*args) ** 2)(*args)  # Squared, so that no second derivative is zero.

    def lowered(run):
        return jax.jit(TRANSFORMS[transform](lambda *args: evaluate(primal, args, run)[0])).lower(*args)

    truth = ops_of(lowered(in_block))
    with hlotag.stage():
        tagged = ops_of(lowered(tag_result))
    assert [op.name for op in tagged] == [op.name for op in truth]
    ids = [(op.name, op.entries.get("id"), other.entries.get("id")) for op, other in zip(truth, tagged, strict=True)]
    known = [found for found in ids if found[1] is not None]
    assert [(name, true, found) for name, true, found in known if true != found] == []


# --- A value tag is a block around the call ----------------------------------------------------------------------------------


def one_softmax_of_a_loop(tag):
    softmax = jax.jit(jax.nn.softmax)

    def f(x, w, b):
        for i in range(3):
            x = (tag(softmax, x) if i == 1 else softmax(x)) @ w
        return (x * b).sum()

    return f


def indexing(tag):
    """The index of each dimension is put in bounds by one round of a loop in JAX."""
    index = jax.jit(lambda x, i, j: x[i, j])
    put = jax.jit(lambda x, i, j: x.at[i, j].set(0.0))
    cut = jax.jit(lambda x, i: lax.dynamic_slice(x, (i, i), (2, 2)))

    def f(x, w, b):
        i = jnp.argmax(b)
        for n in range(3):
            w = w + (tag(index, x, i, i + n) if n == 1 else index(x, i, i + n))
            w = tag(put, w, i, i + n) if n == 1 else put(w, i, i + n)
        return (jnp.sin(tag(cut, x, i)) * cut(w, i)).sum() * b.sum()

    return f


def through_a_tree(tag):
    def f(x, w, b):
        tree = tag(lambda x: {"a": jnp.sin(x), "b": [jnp.cos(x)]}, x)
        return (tree["a"] @ w + tree["b"][0] @ w + b).sum()

    return f


def twice(step, x):
    return lax.scan(lambda c, _: (step(c), None), x, None, length=2)[0]


def in_scan(tag):
    return lambda x, w, b: twice(lambda c: tag(jnp.matmul, jnp.sin(c), w) + b, x).sum()


def in_cond_in_scan(tag):
    def f(x, w, b):
        branches = lambda c: tag(jnp.tanh, c @ w), lambda c: jnp.tanh(c) + b
        return twice(lambda c: lax.cond(c.sum() > 0, *branches, c), x).sum()

    return f


def in_checkpoint(tag):
    return lambda x, w, b: jax.checkpoint(lambda x: jnp.sin(tag(jnp.matmul, jnp.sin(x), w)) * b)(x).sum()


def in_inner_jit(tag):
    inner = jax.jit(lambda x, w: tag(jnp.tanh, jnp.tanh(x)) @ w)
    return lambda x, w, b: (inner(inner(x, w), w) + b).sum()


def inner_jit_of_two_callers(tag):
    inner = jax.jit(lambda x, w: jnp.tanh(x @ w) * 2.0)
    return lambda x, w, b: (inner(tag(inner, x, w), w) * b).sum()


def inside_custom_jvp(tag):
    soft = jax.custom_jvp(lambda x: tag(jnp.log1p, jnp.exp(x)))
    soft.defjvp(lambda p, t: (soft(*p), t[0] * tag(lax.logistic, p[0])))
    return lambda x, w, b: (soft(x @ w) * b).sum()


def tangents_of_a_rule(tag):
    """In reverse mode the older partial evaluation sees them; what depends on no tangent goes to another trace."""

    @jax.custom_jvp
    def soft(x):
        return tag(jnp.sin, x)

    @soft.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        t = tag(jnp.multiply, t, x)  # an inlined jit
        t = tag(jax.jit(lambda t, x: t * (x + 1.0)), t, x)
        t = tag(lambda t: twice(lambda t: t * jnp.sin(x), t), t)
        return jnp.sin(x), t + tag(jax.jit(lambda t: jnp.mean(t, axis=0)), t) + tag(jax.jit(lambda t: jnp.roll(t, 1)), t)

    return lambda x, w, b: twice(lambda c: soft(c @ w), soft(x @ w)).sum() + b.sum()


def backward_rule_in_a_loop(tag):
    """JAX gives all that a rule does the traceback of the call that the rule is for."""

    soft = jax.custom_vjp(lambda x: tag(jnp.tanh, x))

    def backward(x, g):
        return (tag(jax.jit(jax.nn.softmax), g) * tag(jax.jit(lambda x: jnp.mean(x, keepdims=True)), x),)

    soft.defvjp(lambda x: (tag(jax.jit(jax.nn.standardize), x), x), backward)
    return lambda x, w, b: (twice(lambda c: soft(c @ w), x) * b).sum()


def transposed_function(tag):
    product, mean = jax.jit(lambda y: y @ (jnp.ones((8, 8)) * 2.0)), jax.jit(lambda y: jnp.mean(y, axis=0))
    linear = lambda y: tag(product, y) + tag(mean, y)
    return lambda x, w, b: (jax.linear_transpose(linear, x)(x @ w)[0] * b).sum()


def operand_of_calls_that_do_nothing(tag):
    """`conj` and `real` of real numbers: their equations are in the trace of tangents alone, and cotangents are added in them."""

    norm, toeplitz = jax.jit(jnp.linalg.vector_norm), jax.jit(jax.scipy.linalg.toeplitz)
    return lambda x, w, b: (tag(norm, x @ w) * b).sum() + tag(toeplitz, b).sum()


# Every function above that makes a program with a form of tag.
MAKERS = [f for f in list(vars().values()) if inspect.isfunction(f) and list(inspect.signature(f).parameters) == ["tag"]]


MADE = [(make, t) for make in MAKERS for t in TRANSFORMS if not (make is backward_rule_in_a_loop and t in FORWARD_MODE)]


@pytest.mark.parametrize(("make", "transform"), MADE, ids=lambda case: getattr(case, "__name__", case))
def test_a_value_tag_is_a_block_around_the_call(make, transform):
    found = []
    with hlotag.stage():
        for tag in (by_value, by_block):
            program = make(tag)
            # Squared, so that no second derivative is zero.
            squared = TRANSFORMS[transform](lambda *args, program=program: program(*args) ** 2)
            lowered = jax.jit(squared).lower(X, W, B)
            found.append([(op.name, op.entries) for op in ops_of(lowered)])
    value, block = found
    assert any(entries for _, entries in value)
    assert [name for name, _ in value] == [name for name, _ in block]
    assert [(i, *pair) for i, pair in enumerate(zip(value, block, strict=True)) if pair[0] != pair[1]] == []
