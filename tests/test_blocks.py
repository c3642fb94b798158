# SPDX-License-Identifier: Apache-2.0
"""Blocks and decorators: what they tag, and that they leave contexts as they were."""

import copy
import functools
import pickle
import threading
from types import MethodType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from modules import ops_of
from requires import libraries

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def entries(function):
    """[(op, entries)] of the ops of `function` that have any."""
    return [(op.name, op.entries) for op in ops_of(jax.jit(function).lower(X)) if op.entries]


def ambient():
    return entries(lambda x: x @ x)


def test_a_block_may_be_entered_again_while_it_is_entered(staged):
    block = hlotag.tagged({"k": "v"})

    @block
    def factorial(x, n):
        return x if n == 0 else jnp.sin(factorial(x, n - 1))

    assert entries(lambda x: factorial(x, 3)) == [("stablehlo.sine", {"k": "v"})] * 3
    assert ambient() == []


def test_a_block_is_left_as_it_was_after_an_exception(staged):
    with pytest.raises(ValueError, match="planted"), hlotag.tagged({"k": "v"}):
        raise ValueError("planted")
    assert ambient() == []


def test_one_block_object_in_two_threads(staged):
    block, barrier, left = hlotag.tagged({"k": "v"}), threading.Barrier(2), []

    def work():
        barrier.wait()
        for _ in range(50):
            with block:
                pass
        with hlotag.stage():
            left.append(ambient())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left == [[], []]


def test_a_decorated_jitted_function_can_be_lowered(staged):
    f = hlotag.set_xla_metadata(k="v")(jax.jit(lambda x: x @ x))
    assert [op.entries for op in ops_of(f.lower(X))] == [{"k": "v"}]
    np.testing.assert_array_equal(f(X), jax.jit(jnp.matmul)(X, X))


def test_a_decorated_method_is_bound():
    class Model:
        @hlotag.tagged({"k": "v"})
        def __call__(self, x):
            return self.apply(x)

        @hlotag.tagged({"k": "w"})
        def apply(self, x):
            """Doc."""
            return jnp.sin(x)

    with hlotag.stage():
        assert entries(lambda x: Model()(x)) == [("stablehlo.sine", {"k": "w"})]
    assert Model.apply.__doc__ == "Doc."


@hlotag.tagged({"k": "v"})
def decorated(x):
    return jnp.sin(x)


@hlotag.tagged({"k": "v"})
@jax.jit
def decorated_jitted(x):
    return jnp.sin(x)


@hlotag.stage()
@jax.jit
def staged_jitted(x):
    return jnp.sin(x)


@pytest.mark.parametrize("function", [decorated, decorated_jitted, staged_jitted])
def test_a_decorated_function_is_copied_and_pickled_by_its_name(function):
    assert copy.copy(function) is copy.deepcopy(function) is pickle.loads(pickle.dumps(function)) is function


def test_a_jitted_function_that_a_stage_decorates_is_lowered_in_it():
    f = hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="sine")])(jax.jit(jnp.sin))
    assert [op.entries for op in ops_of(f.lower(X))] == [{"k": "v"}]


@pytest.mark.parametrize("block", [hlotag.tagged({"k": "v"}), hlotag.stage(None)])
def test_decorated_callables_compare_like_what_they_wrap(block):
    jitted = jax.jit(jnp.sin)
    assert block(jitted) == block(jitted) and hash(block(jitted)) == hash(block(jitted))
    assert block(jitted).lower == block(jitted).lower
    assert block(jitted) != block(jax.jit(jnp.cos)) and block(jitted) != hlotag.fuse_limit()(jitted)


def test_a_copy_of_a_decorated_object_is_decorated(staged):
    decorated = hlotag.tagged({"k": "v"})(functools.partial(jnp.power, 2.0))
    for one in (copy.copy(decorated), copy.deepcopy(decorated)):
        assert {op: of["k"] for op, of in entries(one)}["stablehlo.power"] == "v"


@pytest.mark.parametrize("transformed", [lambda method: method, functools.partial(jax.jit, static_argnums=0)])
def test_a_decorated_method_is_a_method(transformed, staged):
    class Model:
        def apply(self, x):
            return jnp.sin(x)

        decorated = hlotag.tagged({"k": "v"})(transformed(apply))
        partial = functools.partial(jnp.power, 2.0)
        decorated_partial = hlotag.tagged({"k": "v"})(partial)

    def called(function):
        try:
            return function(3.0)
        except TypeError:
            return TypeError

    model = Model()
    assert (type(model.decorated), model.decorated.__name__) == (MethodType, "apply")
    assert model.decorated == model.decorated and hash(model.decorated) == hash(model.decorated)
    assert model.decorated != Model().decorated
    assert [of for op, of in entries(model.decorated) if op == "stablehlo.sine"] == [{"k": "v"}]
    assert called(model.decorated_partial) == called(model.partial)  # Python binds it from 3.14 on.
    if hasattr(transformed(Model.apply), "lower"):
        assert [op.entries for op in ops_of(model.decorated.lower(model, X)) if op.name == "stablehlo.sine"] == [{"k": "v"}]


def test_equal_models_of_equinox_share_a_trace(staged):
    libraries("equinox", extra="examples")
    import equinox

    traces = 0

    class Model(equinox.Module):
        weight: jax.Array

        @hlotag.tagged({"k": "v"})
        def apply(self, x):
            nonlocal traces
            traces += 1
            return self.weight * x

    run = equinox.filter_jit(lambda method, x: method(x))
    for weight in (1.0, 2.0):
        assert run(Model(jnp.float32(weight)).apply, jnp.float32(3.0)) == 3.0 * weight
    assert traces == 1


def test_what_runs_after_the_call_cannot_be_decorated():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    async def asynchronous_generator(x):
        yield x

    for function in (generator, coroutine, asynchronous_generator):
        with pytest.raises(hlotag.TagError, match=rf"{function.__name__} is a generator or coroutine function.*inside of it"):
            hlotag.tagged({"k": "v"})(function)
