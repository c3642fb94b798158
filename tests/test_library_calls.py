# SPDX-License-Identifier: Apache-2.0
"""Which operations one call of a library made: a value tag covers these, and none of another call."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlotag
from modules import ops_of

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def tag(value):
    return hlotag.tag(value, {"k": "v"})


def tagged(function, name):
    """Of each operation of a name, whether it is tagged."""
    return ["k" in op.entries for op in ops_of(jax.jit(function).lower(X)) if op.name == f"stablehlo.{name}"]


def of_a_comprehension(xs):
    return [jax.nn.softmax(x) for x in xs]


def of_a_generator(xs):
    def each():
        for x in xs:
            yield jax.nn.softmax(x)

    return list(each())


def of_a_map(xs):
    return list(map(jax.nn.softmax, xs))


def of_a_tree_map(xs):
    return jax.tree.map(jax.nn.softmax, xs)


def of_a_recursion(xs):
    return [jax.nn.softmax(xs[0]), *of_a_recursion(xs[1:])] if xs else []


@pytest.mark.parametrize("each", [of_a_comprehension, of_a_generator, of_a_map, of_a_tree_map, of_a_recursion])
def test_one_of_several_calls_of_one_line(staged, each):
    def f(x):
        a, b, c = each([x, x + 1.0, x + 2.0])
        return a + tag(b) + c

    for name in ("exponential", "subtract", "divide"):
        assert tagged(f, name) == [False, True, False]


def test_one_value_of_a_generator_of_a_library(staged):
    """It is one frame, which goes on for each value."""
    library = {"lax": lax}
    source = "def each(xs):\n    for x in xs:\n        yield lax.sin(x)"
    exec(compile(source, str(Path(jax.__file__).with_name("library.py")), "exec"), library)

    def f(x):
        a, b, c = library["each"]([x, x + 1.0, x + 2.0])
        return a + tag(b) + c

    assert tagged(f, "sine") == [False, True, False]


def test_one_of_several_results_of_a_call(staged):
    def f(x):
        a, b = jnp.meshgrid(x[0], x[1])
        return tag(a) * b

    assert tagged(f, "broadcast_in_dim") == [True, True]


def test_a_call_goes_on_after_the_users_code_in_it(staged):
    def f(x):
        return tag(lax.associative_scan(lambda a, b: jnp.sin(a * b), x))

    assert set(tagged(f, "slice")) == set(tagged(f, "pad")) == {True}
    assert set(tagged(f, "sine")) == {False}


def test_a_tag_in_the_users_code_that_a_call_runs(staged):
    def f(x):
        return lax.associative_scan(lambda a, b: tag(jax.nn.softmax(a * b)), x)

    assert set(tagged(f, "exponential")) == {True}
    assert not any(tagged(f, "slice") + tagged(f, "multiply") + tagged(f, "pad"))


def test_the_gradient_of_a_library_function_is_one_call(staged):
    ops = ops_of(jax.jit(lambda x: tag(jax.grad(jnp.linalg.norm)(x))).lower(X))
    assert len(ops) > 5 and all("k" in op.entries for op in ops)


def test_the_gradient_of_the_users_function_is_not_one_call(staged):
    """Its last operation made it; tags of two gradients of one function do not take each other's operations."""

    def f(x):
        gradients = jax.grad(lambda a, b: jnp.sum(jnp.sin(a) * jnp.sin(b)), (0, 1))(x, x + 1.0)
        return hlotag.tag(gradients[0], {"a": "v"}), hlotag.tag(gradients[1], {"b": "v"})

    keys = [(op.name, *op.entries) for op in ops_of(jax.jit(f).lower(X)) if op.entries]
    assert sorted(keys) == [("stablehlo.multiply", "a"), ("stablehlo.multiply", "b")]


def test_a_batched_library_function_is_one_call(staged):
    ops = ops_of(jax.jit(lambda x: tag(jax.vmap(jax.nn.softmax, out_axes=1)(x))).lower(X))
    assert ops[-1].name == "stablehlo.transpose" and all("k" in op.entries for op in ops)


def test_nothing_that_a_call_holds_is_kept(staged):
    with jax.checking_leaks():
        assert tagged(lambda x: tag(jax.nn.softmax(x)), "divide") == [True]


def test_a_debugger_sees_what_it_would_see():
    def events():
        seen = []

        def trace(frame, event, _):
            if "jax/_src/" not in frame.f_code.co_filename:
                return None
            seen.append((frame.f_code.co_name, event, frame.f_lineno))
            return trace

        before = sys.gettrace()
        jax.clear_caches()
        sys.settrace(trace)
        try:
            jax.make_jaxpr(lambda x: jnp.mean(x) + jnp.var(x))(X)
        finally:
            sys.settrace(before)
        return [event for event in seen if event[0] in ("mean", "_mean", "var", "_var", "reraise_with_filtered_traceback")]

    alone = events()
    with hlotag.stage():
        assert events() == alone
    assert ("mean", "line") in {event[:2] for event in alone}


def test_the_work_of_a_tag_does_not_grow_with_what_was_traced_since(staged):
    def calls(between):
        count = 0

        def note(*_):
            nonlocal count
            count += 1

        def f(x):
            y = jnp.sin(x)
            for _ in range(between):
                x = lax.neg(x)
            before = sys.getprofile()
            sys.setprofile(note)
            try:
                tag(y)
            finally:
                sys.setprofile(before)
            return x + y

        jax.make_jaxpr(f)(X)
        return count

    calls(1)
    assert calls(500) < 2 * calls(5)
