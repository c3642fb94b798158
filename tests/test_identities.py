# SPDX-License-Identifier: Apache-2.0
"""Identities leave no trace: names, modules and values are what they are without them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun

import hlotag
from programs import PROGRAMS, TRANSFORMS

MATCHES_NOTHING = [hlotag.Rule({"k": "v"}, op="no_such_operation")]
MATCHES_ALL = [hlotag.Rule({"k": "v"}, op="*", phase="forward", grad={"k": "d"})]
NAMES = ["scan_of_remat", "custom_jvp", "custom_vjp", "branches", "sharded", "indexing"]


def text_of(lowered) -> str:
    return lowered.compiler_ir().operation.get_asm(enable_debug_info=True)


def step_of(name):
    function, args = PROGRAMS[name]
    return jax.value_and_grad(function), args


@pytest.mark.parametrize("name", NAMES)
def test_lowered_text_is_that_of_a_stage_without_them(name):
    step, args = step_of(name)
    texts = []
    for rules in ([], MATCHES_NOTHING):
        jax.clear_caches()
        with hlotag.stage(rules=rules):
            texts.append(text_of(jax.jit(step).lower(*args)))
    assert texts[1] == texts[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_jaxpr_of_the_stage_is_lowered_outside_as_any_other(name):
    step, args = step_of(name)
    texts = []
    for stage in (hlotag.stage(None), hlotag.stage(rules=MATCHES_NOTHING)):
        jax.clear_caches()
        with stage:
            jaxpr = jax.make_jaxpr(step)(*args)
        texts.append((jaxpr.pretty_print(name_stack=True), text_of(jax.jit(jaxpr_as_fun(jaxpr)).lower(*args))))
    assert texts[1] == texts[0]


@pytest.mark.parametrize("name", NAMES)
def test_values_are_the_same(name):
    step, args = step_of(name)
    expected = jax.jit(step)(*args)
    with hlotag.stage(rules=MATCHES_ALL):
        got = jax.jit(step)(*args)
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def test_what_was_traced_before_is_traced_once_more_in_the_stage_only():
    traces = []

    @jax.jit
    def step(x):
        traces.append(1)
        return TRANSFORMS["none"](jax.numpy.sin)(x)

    x = np.ones(3, np.float32)
    step(x)
    with hlotag.stage(rules=MATCHES_ALL):
        step(x)
        step(x)
    step(x)
    assert len(traces) == 2


def test_a_trace_that_jax_cached_for_another_call_has_the_identity_of_its_caller():
    def model(w, x):
        for name in ("attention", "mlp", "attention", "mlp"):
            with jax.named_scope(name):
                x = jnp.tanh(x @ w)
        return x.sum()

    arguments = jnp.ones((4, 4)), jnp.ones((2, 4))
    counts = []
    with hlotag.stage(rules=[hlotag.Rule({"group": "1"}, op="dot_general", scope="mlp", grad={"group": "2"})]):
        for _ in range(2):
            text = jax.jit(jax.value_and_grad(lambda w, x: model(w, x))).lower(*arguments).as_text()
            backward = [line for line in text.splitlines() if 'group = "2"' in line]
            counts.append([sum(f"stablehlo.{name}" in line for line in backward) for name in ("dot_general", "transpose")])
    assert counts == [[4, 2]] * 2  # Two backward products and a transpose for each of two.


def test_a_function_that_was_traced_before_belongs_to_the_loop_that_lowering_calls_it_for():
    """`_scan_impl` counts by `jnp.add`, as the body does."""
    rules = [hlotag.Rule({"k": "v"}, op="stablehlo.add", phase="forward", grad={"k": "d"})]

    def step(x):
        def body(carry, x):
            return (carry[0] + 1, carry[1] * x), None

        return jax.lax.scan(body, (0, x[0]), x)[0][1]

    with hlotag.stage(rules=rules):
        module = jax.jit(jax.grad(step)).lower(np.ones(3, np.float32)).compiler_ir()
    of_backward_loop = next(line for line in str(module).splitlines() if "stablehlo.subtract" in line)
    assert 'k = "d"' in of_backward_loop
