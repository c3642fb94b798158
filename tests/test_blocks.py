# SPDX-License-Identifier: Apache-2.0
"""Blocks and decorators: what they tag, and that they leave contexts as they were."""

import copy
import inspect
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

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


def test_a_block_is_entered_again_or_left_by_an_exception(staged):
    @hlotag.tagged({"k": "v"})
    def sines(x, n):
        return x if n == 0 else jnp.sin(sines(x, n - 1))

    assert entries(lambda x: sines(x, 3)) == [("stablehlo.sine", {"k": "v"})] * 3
    assert ambient() == []
    with pytest.raises(ValueError, match="planted"), hlotag.tagged({"k": "v"}):
        raise ValueError("planted")
    assert ambient() == []


def test_one_block_object_in_two_threads(staged):
    block, barrier = hlotag.tagged({"k": "v"}), threading.Barrier(2)

    def work():
        barrier.wait()
        for _ in range(50):
            with block:
                pass
        return hlotag.stage()(ambient)()

    with ThreadPoolExecutor(2) as pool:
        assert [future.result() for future in [pool.submit(work), pool.submit(work)]] == [[], []]


DECORATORS = {
    "a block": hlotag.tagged({"k": "v"}),
    "a stage": hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="sine")]),
    "a call": hlotag.xla_metadata_call(k="v"),
    "a call with its own autodiff metadata": hlotag.xla_metadata_call2({"k": "v"}, ad_metadata="drop"),
}
each_decorator = pytest.mark.parametrize("decorate", DECORATORS.values(), ids=DECORATORS)


def sine(x):
    return jnp.sin(x)


@each_decorator
@pytest.mark.parametrize("wrapped", [sine, jax.jit(sine)], ids=["function", "jitted"])
def test_a_decorated_function_is_copied_and_pickled_by_its_name(decorate, wrapped, monkeypatch):
    function = decorate(wrapped)
    monkeypatch.setattr(sys.modules[__name__], "sine", function)
    assert copy.copy(function) is copy.deepcopy(function) is pickle.loads(pickle.dumps(function)) is function
    assert function.__name__ == "sine" and list(inspect.signature(function).parameters) == ["x"]


@pytest.mark.parametrize("decorate", [DECORATORS["a block"], DECORATORS["a stage"]], ids=["a block", "a stage"])
def test_a_decorated_jitted_function_is_lowered_decorated(decorate, staged):
    f = decorate(jax.jit(sine))
    traced = f.trace(X)
    with decorate if decorate is DECORATORS["a stage"] else nullcontext():  # The stage at lowering decides.
        of_trace = traced.lower()
    for lowered in (f.lower(X), of_trace):
        assert "v" in [op.entries.get("k") for op in ops_of(lowered)]
    assert f.eval_shape(X).shape == X.shape
    np.testing.assert_array_equal(f(X), jax.jit(sine)(X))


def test_a_decorated_jitted_method_is_lowered_decorated(staged):
    class Model:
        apply = hlotag.tagged({"k": "v"})(jax.jit(lambda self, x: jnp.sin(x), static_argnums=0))

    model = Model()
    assert [op.entries for op in ops_of(model.apply.lower(model, X)) if op.name == "stablehlo.sine"] == [{"k": "v"}]


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
        with pytest.raises(
            hlotag.errors.TagError, match=rf"{function.__name__} is a generator or coroutine function.*inside of it"
        ):
            hlotag.tagged({"k": "v"})(function)
        with pytest.raises(hlotag.errors.ArgumentError, match=r"write `with hlotag.stage\(...\):` inside of it"):
            hlotag.stage()(function)
