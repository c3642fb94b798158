# SPDX-License-Identifier: Apache-2.0
"""Audits and profiles of what runs in a block: the programs of a library's own loop, with its results and its calls."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlotag
from hlotag.audits import blocks

X = jnp.ones((32, 32))
RULES = [hlotag.Rule({"part": "{n}"}, scope="part_{n}")]


class Trainer:
    """A library that makes its step itself. Counts how often Python traces it, and how often it runs."""

    def __init__(self):
        self.traced, self.ran = 0, 0
        self.step = jax.jit(self._step)

    def _step(self, weights, x):
        self.traced += 1
        jax.debug.callback(self._count)

        def loss(weights):
            with jax.named_scope("part_a"):
                y = lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0]
            with jax.named_scope("part_b"):
                return jnp.sin(y).sum()

        return weights - 0.01 * jax.grad(loss)(weights)

    def _count(self):
        self.ran += 1

    def train(self, steps=4):
        weights = jnp.stack([X * n for n in range(3)]) / 100
        for _ in range(steps):
            weights = self.step(weights, X)
        jax.effects_barrier()
        return weights


@pytest.mark.parametrize("block", [hlotag.auditing, hlotag.profiling], ids=["auditing", "profiling"])
def test_the_results_and_the_calls_are_those_without_a_block(block):
    with hlotag.stage(rules=RULES):
        expected = Trainer().train()
        trainer = Trainer()
        with block():
            found = trainer.train()
        assert trainer.ran == 4 and trainer.traced == 1
        np.testing.assert_array_equal(found, expected)
        trainer.train()  # JAX has the program of the block for blocks only.
        assert trainer.traced == 2
        trainer.train()
        assert trainer.traced == 2


def test_a_program_that_ran_before_is_audited_in_each_block():
    trainer = Trainer()
    with hlotag.stage(rules=RULES):
        trainer.train()
        for _ in range(2):
            with hlotag.auditing() as audits:
                trainer.train(1)
            step = next(audit for audit in audits if audit.name == "jit__step")
            assert {(tag.value, tag.op.phase) for tag in step.tags if not tag.needs_attention} >= {
                ("a", "forward"),
                ("a", "backward"),
                ("b", "backward"),
            }


def test_time_by_tag_is_that_of_each_run():
    with hlotag.stage(rules=RULES), hlotag.profiling() as found:
        Trainer().train(6)
    step = next(each for each in found.programs if each.name == "jit__step")
    assert len(step.steps) == 6
    parts = {(row.value, row.phase) for row in step.rows if row.key == "part" and row.seconds}
    assert parts >= {("a", "forward"), ("a", "backward")}
    assert sum(row.seconds for row in step.rows if row.key in ("", "part")) == pytest.approx(step.total_seconds)
    assert found.programs == sorted(found.programs, key=lambda each: -sum(each.steps))
    assert "jit__step" in str(found)


def test_runs_whose_results_are_dropped_are_counted():
    f = jax.jit(lambda x: lax.fori_loop(0, 40, lambda i, x: jnp.tanh(x @ x), x))
    x = jnp.ones((256, 256))
    with hlotag.profiling("operation") as found:
        for _ in range(3):
            f(x)
    (program,) = found.programs
    (product,) = [row for row in program.rows if row.value == "dot_general"]
    assert (len(program.steps), product.events) == (3, 40)
    assert found.not_compiled == ()


def test_programs_of_one_name_are_apart():
    f = jax.jit(lambda x: hlotag.tag(jnp.tanh(x @ x), {"size": str(len(x))}))
    with hlotag.profiling("size") as found:
        for size in (8, 64):
            jax.block_until_ready(f(jnp.ones((size, size))))
    named = {each.name: each for each in found.programs if each.name.startswith("jit__lambda")}
    assert {name: {row.value for row in each.rows if row.value and row.key} for name, each in named.items()} == {
        "jit__lambda": {"8"},
        "jit__lambda_2": {"64"},
    }
    others = [each for each in found.programs if each.name not in named]
    assert others and all("no operation of" in each.notes[-1] for each in others)


def test_an_audit_within_a_block_is_its_own():
    with hlotag.auditing() as audits:
        own = hlotag.audit(lambda x: hlotag.tag(x @ x, {"own": "1"}), X)
    assert len(own.tags) == 1
    assert "own" not in {tag.key for audit in audits for tag in audit.tags}


def test_programs_of_other_threads_are_left_alone():
    f = jax.jit(lambda x: jnp.cosh(x))
    with hlotag.auditing() as audits:
        thread = threading.Thread(target=lambda: jax.block_until_ready(f(X)))
        thread.start()
        thread.join()
    assert audits == []


def test_a_program_that_cannot_be_read_runs_and_is_named(monkeypatch, caplog):
    def read(module):
        raise hlotag.errors.ParseError("no text")

    monkeypatch.setattr(blocks.program, "read", read)
    with hlotag.auditing() as audits:
        assert jax.jit(lambda x: x + 1)(X).sum() == 2 * X.size
    assert audits == [] and "a program of the block is not audited: no text" in caplog.text


def test_errors_of_the_block_are_those_of_the_program():
    fails = jax.jit(lambda x: jax.ffi.ffi_call("no_such_function", jax.ShapeDtypeStruct(x.shape, x.dtype))(x))
    for block in (hlotag.auditing, hlotag.profiling):
        with pytest.raises(jax.errors.JaxRuntimeError, match="no_such_function"), block():
            jax.block_until_ready(fails(X))
        with pytest.raises(KeyError), block():
            raise KeyError("mine")
        assert hlotag.active() is None
    with hlotag.profiling() as found:  # The profiler had stopped.
        jax.block_until_ready(jax.jit(jnp.sinh)(X))
    assert [each.name for each in found.programs] == ["jit_sinh"]


def test_the_program_with_most_work_is_first_and_each_has_its_memory():
    with hlotag.auditing(memory=True) as audits:
        Trainer().train(1)
    assert audits[0].name == "jit__step" and len(audits) > 1
    assert audits[0].is_off is False
    assert all(audit.memory is not None for audit in audits)
    assert any(row.memory for row in audits[0].costs_by("scope"))
