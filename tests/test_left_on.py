# SPDX-License-Identifier: Apache-2.0
"""A stage that is left on: a program that knows nothing of it is traced, lowered, compiled and fails as it would without."""

import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring
from jax.extend.core import Primitive
from jax.interpreters import mlir

import hlotag
from programs import PROGRAMS, X, by_block, by_value

EVERYTHING = (hlotag.Rule({"everything": "yes"}, op="*"), hlotag.Rule({"back": "1"}, op="*", phase="backward"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_untagged_module_is_the_same_with_the_stage_on(program):
    function, args = PROGRAMS[program]
    texts = []
    for pipeline in (None, hlotag.passes.DEFAULT_PIPELINE):
        jax.clear_caches()  # An inner function that JAX has traced before keeps the locations of its first caller.
        with hlotag.stage(pipeline):
            texts.append(jax.jit(jax.value_and_grad(function)).lower(*args).as_text(debug_info=True))
    assert texts[0] == texts[1]


@pytest.fixture
def events():
    """How often JAX traced, lowered and compiled."""
    counted: Counter[str] = Counter()

    def listen(event: str, _: float, **_kwargs: Any) -> None:
        if "compile" in event and "cache" not in event:
            counted[event] += 1

    monitoring.register_event_duration_secs_listener(listen)
    yield counted
    monitoring.unregister_event_duration_listener(listen)


def tagged(x, w, b):
    inner = jax.jit(jnp.sin)
    y = by_value(inner, x) + inner(x)
    return (y * by_block(inner, y)).sum()


@pytest.mark.parametrize("program", ["scan_transformer", "custom_vjp", "branches", "tagged"])
def test_tagging_everything_changes_no_number_and_no_work(program, events):
    function, args = (PROGRAMS | {"tagged": (tagged, PROGRAMS["mlp"][1])})[program]

    def run() -> tuple[list[bytes], dict[str, int]]:
        jax.clear_caches()
        events.clear()
        f = jax.jit(jax.value_and_grad(function))
        results = [f(*args) for _ in range(3)][-1]
        return [np.asarray(x).tobytes() for x in jax.tree.leaves(results)], dict(events)

    off = run()
    assert hlotag.stage(rules=EVERYTHING)(run)() == hlotag.stage()(run)() == off and sum(off[1].values()) >= 3


def fails_in_tracing(x):
    raise ValueError("mine")


def fails_in_backward(x):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, g: fails_in_tracing(g))
    return f(x)


def fails_in_lowering(x):
    primitive = Primitive("fails_in_lowering")
    primitive.def_abstract_eval(lambda x: x)
    jax.interpreters.ad.deflinear2(primitive, lambda g, x: [g])
    mlir.register_lowering(primitive, lambda ctx, x: fails_in_tracing(x))
    return primitive.bind(x)


def fails_in_a_check(x):
    return x if x.sum() > 0 else -x


@pytest.mark.parametrize("part", [fails_in_tracing, fails_in_backward, fails_in_lowering, fails_in_a_check])
def test_errors_of_the_program_are_told_as_without_the_stage(part):
    def told(run: Callable) -> tuple[str, list[tuple[str, str]]]:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            run(X)
        frames = traceback.extract_tb(caught.value.__traceback__)
        return str(caught.value), [(Path(frame.filename).name, frame.name) for frame in frames]

    def run(x):
        return jax.jit(jax.value_and_grad(lambda x: jax.lax.cond(True, part, jnp.sin, x).sum()))(x)

    off = told(run)
    with hlotag.stage(rules=EVERYTHING):
        assert told(run) == off
