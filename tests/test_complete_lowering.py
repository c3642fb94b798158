# SPDX-License-Identifier: Apache-2.0
"""Modules that JAX lowered alone, tagged by its own context manager: the passes find all that an equation lowered to."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from hlotag.passes.pipeline import run_passes
from modules import ops_of
from programs import SEVERAL_OPERATIONS

COMPLETE = "hlotag-complete-lowering,hlotag-propagate-regions,hlotag-propagate-calls,hlotag-verify"
BY_MARKS = "hlotag-resolve,hlotag-complete-lowering{seeds=attached},hlotag-propagate-regions,hlotag-propagate-calls,hlotag-verify"

X = jnp.ones((4, 8))
W = jnp.ones((8, 8))


@pytest.mark.parametrize("name", SEVERAL_OPERATIONS)
def test_whole_program(name: str) -> None:
    module = jax.jit(set_xla_metadata(k="v")(SEVERAL_OPERATIONS[name])).lower(X[:, :4]).compiler_ir()
    run_passes(module, COMPLETE)
    assert [op for op in ops_of(module) if op.entries.get("k") != "v"] == []
    assert module.operation.verify()
    assert run_passes(str(module), COMPLETE) == run_passes(str(module), "hlotag-verify"), "a second run changed something"


def mlp(x: Any) -> Any:
    with set_xla_metadata(a="1"):
        y = jax.nn.softmax(x @ W)
    z = jax.nn.gelu(y)
    with set_xla_metadata(b="2"):
        z = jnp.cumsum(z, 0) * jax.nn.logsumexp(z)
    return (z**3).sum()


def loop_of_one_line(x: Any) -> Any:
    for i in range(6):
        with set_xla_metadata(k=str(i)) if i % 2 else nullcontext():
            x = x * 3
    return x


def scan(x: Any) -> Any:
    def body(c: Any, a: Any) -> Any:
        with set_xla_metadata(k="v"):
            c = jnp.tanh(c @ W) + a
        return c * 2, jnp.argmax(c)

    return jax.lax.scan(body, x[0], x)[0].sum()


def remat(x: Any) -> Any:
    @jax.checkpoint
    def block(x: Any) -> Any:
        with set_xla_metadata(k="v"):
            y = jax.nn.gelu(x @ W)
        return jax.nn.softmax(y)

    return block(block(x)).sum()


def cond(x: Any) -> Any:
    def branch(x: Any) -> Any:
        with set_xla_metadata(k="v"):
            return jax.nn.softmax(x)

    return jax.lax.cond(x[0, 0] > 0, branch, jnp.cos, x).sum()


def shared_function(x: Any) -> Any:
    @jax.jit
    def f(x: Any) -> Any:
        return jax.nn.softmax(x) * 2

    with set_xla_metadata(k="1"):
        y = f(x)
    with set_xla_metadata(k="2"):
        y = f(y)
    return f(y).sum()


def random(x: Any) -> Any:
    key = jax.random.PRNGKey(0)
    with set_xla_metadata(k="1"):
        a = jax.random.normal(key, (4, 8))
    return (a * x + jax.random.normal(key, (4, 8))).sum()


def transformer(x: Any) -> Any:
    def layer(x: Any) -> Any:
        with set_xla_metadata(attention="1"):
            q, k, v = x @ W, x @ W, x @ W
            x = x + jax.nn.softmax(q @ k.T / jnp.sqrt(8.0)) @ v
        with set_xla_metadata(mlp="1"):
            x = x + jax.nn.gelu(x @ W) @ W
        m = x.mean(-1, keepdims=True)
        return (x - m) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    for i in range(3):
        x = jax.checkpoint(layer)(x) if i == 1 else layer(x)
    return -jax.nn.log_softmax(x)[:, 0].mean()


PARTLY_TAGGED = [mlp, loop_of_one_line, scan, remat, cond, shared_function, random, transformer]


@pytest.mark.parametrize("derivative", ["none", "grad"])
@pytest.mark.parametrize("function", PARTLY_TAGGED, ids=lambda f: f.__name__)
def test_as_exact_as_marks(function: Callable[[Any], Any], derivative: str) -> None:
    """What the passes find from locations alone is what marks, which travel with each equation, say."""
    program = function if derivative == "none" else jax.grad(lambda x: function(x).sum())
    module = jax.jit(program).lower(X).compiler_ir()
    run_passes(module, COMPLETE)
    with hlotag.stage(pipeline=BY_MARKS):
        by_marks = jax.jit(program).lower(X).compiler_ir()

    pairs = list(zip(ops_of(module), ops_of(by_marks), strict=True))
    assert [(a, b) for a, b in pairs if (a.name, a.entries) != (b.name, b.entries)] == []
    assert any(a.entries for a, _ in pairs)


def test_a_rule_takes_no_round_of_a_loop_for_a_helper_of_the_next() -> None:
    """`exp2` lowers to a product and its exponential, at one location in all rounds."""

    def rounds(x: Any) -> Any:
        for _ in range(2):
            x = jax.lax.exp2(x)
        return x

    with hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="multiply")]):
        ops = ops_of(jax.jit(rounds).lower(X).compiler_ir())
    entries = {kind: [op.entries for op in ops if op.name == f"stablehlo.{kind}"] for kind in ("multiply", "exponential")}
    assert entries == {"multiply": [{"k": "v"}] * 2, "exponential": [{}] * 2}
