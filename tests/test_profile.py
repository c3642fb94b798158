# SPDX-License-Identifier: Apache-2.0
"""Profiles of programs that run here: what has which value and phase, and what may be profiled."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlotag.errors import ArgumentError, HlotagError, ParseError
from hlotag.profiles import Profile

X = np.full((64, 64), 0.01, np.float32)
WEIGHTS = [X + n for n in range(3)]


@pytest.fixture(autouse=True)
def stage():
    with hlotag.stage():
        yield


def places(profile: Profile, key: str) -> set[tuple[str, str]]:
    """The values and phases that took time, those of operations without the key left out."""
    return {(row.value, row.phase) for row in profile.rows if row.key == key and row.value and row.seconds}


def assert_sums(profile: Profile) -> None:
    for key in {row.key for row in profile.rows if row.key}:
        assert sum(row.seconds for row in profile.rows if row.key in ("", key)) == pytest.approx(profile.total_seconds)
    for row in profile.rows:
        assert len(row.steps) == len(profile.steps)
        assert row.split <= row.seconds * (1 + 1e-9)
        assert row.seconds <= row.busy * (1 + 1e-9) or row.value == "idle"


def layer(number: int, x: Any, w: Any) -> Any:
    with hlotag.tagged({"layer": str(number)}):
        return jax.nn.gelu(x @ w)


def loss(weights: Any, x: Any) -> Any:
    for number, w in enumerate(weights):
        x = layer(number, x, w)
    return (x**2).sum()


def train(weights: Any, x: Any) -> Any:
    value, gradient = jax.value_and_grad(loss)(weights, x)
    with hlotag.tagged({"layer": "optimizer"}):
        return value, jax.tree.map(lambda w, g: w - 0.1 * jnp.tanh(g), weights, gradient)


OF_TRAIN = {(n, phase) for n in "012" for phase in ("forward", "backward")} | {("optimizer", "other")}


TRANSFORMED = {
    "vmap": (jax.vmap(loss, (None, 0)), (WEIGHTS, np.stack([X, X])), {(n, "forward") for n in "012"}),
    "second order": (
        jax.hessian(lambda v, x: loss([x * v.sum()], x)),
        (np.ones(2, np.float32), X),
        {("0", "backward")},
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_every_value_has_its_time_in_each_phase(name):
    function, arguments, expected = TRANSFORMED[name]
    profile = hlotag.profile(function, *arguments, steps=2)
    assert expected <= places(profile, "layer")
    assert {value for value, _ in places(profile, "layer")} == {value for value, _ in expected}
    assert len(profile.steps) == 2
    assert_sums(profile)


def test_a_shared_function_has_phase_and_scope_of_each_call():
    @jax.jit
    def shared(x):
        return jnp.tanh(x @ x)

    def f(x):
        with jax.named_scope("first"), hlotag.tagged({"layer": "0"}):
            x = shared(x)
        with jax.named_scope("second"), hlotag.tagged({"layer": "1"}):
            return shared(x).sum()

    profile = hlotag.profile(jax.grad(f), X)
    assert places(profile, "layer") == {(n, phase) for n in "01" for phase in ("forward", "backward")}
    assert_sums(profile)
    by_scope = hlotag.profile(jax.grad(f), X, by="scope")
    assert {("first", "forward"), ("first", "backward"), ("second", "backward")} <= places(by_scope, "scope")


def test_donated_static_and_keyword_arguments():
    given = [jnp.array(w) for w in WEIGHTS]
    assert places(hlotag.profile(jax.jit(train, donate_argnums=0), given, X), "layer") == OF_TRAIN
    assert not any(w.is_deleted() for w in given)
    assert places(hlotag.profile(jax.jit(layer, static_argnums=0), 7, X, X), "layer") == {("7", "forward")}
    assert places(hlotag.profile(jax.jit(lambda x, *, w: layer(1, x, w)), X, kwargs={"w": X}), "layer") == {("1", "forward")}


def test_a_trace_that_was_made_elsewhere_is_joined_with_an_audit(tmp_path):
    audit = hlotag.audit(train, WEIGHTS, X)
    (tmp_path / "audit.json").write_text(audit.to_json())
    step = jax.jit(train)
    jax.block_until_ready(step(WEIGHTS, X))
    with jax.profiler.trace(tmp_path):
        for number in range(4):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                jax.block_until_ready(step(WEIGHTS, X))
    profile = hlotag.read_profile(tmp_path, tmp_path / "audit.json")
    assert 2 <= len(profile.steps) <= 4  # Slow first ones are left out.
    assert places(profile, "layer") == OF_TRAIN
    assert profile.rows == hlotag.read_profile(tmp_path, audit).rows
    assert_sums(profile)
    wider = jnp.ones((128, 128))
    other = hlotag.audit(train, [wider] * len(WEIGHTS), wider)
    with pytest.raises(ParseError, match="with other numbers of flops"):
        hlotag.read_profile(tmp_path, other)


def test_a_trace_alone_has_the_tags_of_its_module(tmp_path):
    with hlotag.stage():
        step = jax.jit(train).lower(WEIGHTS, X).compile()
        audit = hlotag.audit(train, WEIGHTS, X)
    with jax.profiler.trace(tmp_path):
        jax.block_until_ready(step(WEIGHTS, X))
    profile = hlotag.read_profile(tmp_path, module="jit_train")
    assert_sums(profile)
    alone, expected = (
        {hot.name: set(hot.tags) for hot in each.instructions} for each in (profile, hlotag.read_profile(tmp_path, audit))
    )
    # Only the audit knows what XLA merged into an instruction.
    assert alone.keys() == expected.keys() and all(alone[name] <= expected[name] for name in alone)
    assert {name for name in alone if alone[name]} == {name for name in expected if expected[name]} != set()
    with pytest.raises(ParseError, match="no module of jit_other; modules of what ran: jit_train"):
        hlotag.read_profile(tmp_path, module="jit_other")
    with pytest.raises(ArgumentError, match="module='jit_train' goes without an audit"):
        hlotag.read_profile(tmp_path, audit, module="jit_train")


def test_arguments_that_make_no_sense_are_errors():
    for positional, options, message in [
        ((loss,), {"steps": 0}, "steps=0: give the number of calls"),
        ((loss,), {"steps": True}, "steps=True"),
        ((3,), {}, "needs a function, a Lowered or a Compiled, not int; hlotag.read_profile reads a trace"),
        ((loss, WEIGHTS, X), {"by": "no"}, "by='no'"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            hlotag.profile(*positional, **options)


def test_a_trace_that_runs_already_is_an_error(tmp_path):
    with jax.profiler.trace(tmp_path), pytest.raises(HlotagError, match="profiler cannot start"):
        hlotag.profile(loss, WEIGHTS, X)
    assert hlotag.profile(loss, WEIGHTS, X).total_seconds > 0


def test_a_program_without_tags_is_shown_by_line_and_scope():
    program = jax.jit(lambda x: jnp.tanh(x @ x))
    profile = hlotag.profile(program, X)
    assert (profile.untagged, profile.keys) == (pytest.approx(profile.in_operations), [])
    assert 'No operation has a tag. by="source" groups by line, by="scope:2" by named scopes.' in profile.notes
    by_line = places(hlotag.profile(program, X, by="source"), "source")
    assert {value.partition(":")[0] for value, _ in by_line} == {"test_profile.py"}


def test_a_profile_says_when_hlotag_is_off():
    with hlotag.stage(None):
        profile = hlotag.profile(loss, WEIGHTS, X)
    assert any(note.startswith("hlotag is off:") for note in profile.notes)
    assert places(profile, "layer")


def test_memory_is_on_the_page_and_in_the_table(tmp_path):
    with hlotag.stage():
        profile = hlotag.profile(jax.grad(loss), WEIGHTS, X, steps=1, by="layer", memory=True)
    assert "The program needs" in str(profile) and "arguments" in str(profile)
    profile.to_html(tmp_path / "page.html")
    assert '<section id="memory">' in (tmp_path / "page.html").read_text()


def test_a_step_that_is_much_slower_under_the_profiler_says_so():
    profile = Profile("f", ("CPU:0",), steps=(3.0,), rows=(), untraced_seconds=1.0)
    assert "takes 3 s under the profiler, and 1 s without it on CPU:0" in profile.sentence
    assert "without it" not in replace(profile, untraced_seconds=2.9).sentence
