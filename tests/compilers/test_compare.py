# SPDX-License-Identifier: Apache-2.0
"""Comparisons for devices that do not exist: everything but time and results."""

import jax
import jax.numpy as jnp
import pytest
from key_probes import PLATFORM

import hlotag
from comparison_examples import ROOT, commands_of, growths, run_example
from hlotag.comparisons import Trend
from hlotag.results.tags import Verdict

SIZE = 256


def layers(x, weights, layer=lambda x, w: jnp.tanh(x @ w)):
    for number, w in enumerate(weights):
        with hlotag.tagged({"layer": number}), jax.named_scope(f"layer_{number}"):
            x = layer(x, w)
    return x


def test_variants_are_compared_by_work_and_memory(any_compiler):
    """A second product in each layer."""
    arguments = any_compiler.shapes((jnp.zeros((SIZE, SIZE)), [jnp.zeros((SIZE, SIZE))] * 2))
    variants = {
        "none": None,
        "tagged": hlotag.Rule({"part": "mlp"}, scope="layer_1"),
        "twice": lambda x, weights: layers(x, weights, lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w)),
    }
    found = hlotag.compare(variants, layers, *arguments, by="layer")
    assert found.rounds == 0 and "nothing ran" in found.notes[0]
    assert not found["tagged"].error and all(each.trend == Trend.SAME for each in found["tagged"].program.amounts)
    assert found["tagged"].verdict == "the same"
    amount = found["twice"].program.amount("flops")
    assert amount and amount.growth == pytest.approx(1, abs=0.02)
    rows = [row.value for row in found["twice"].rows for each in [row.amount("flops")] if each and each.trend == Trend.MORE]
    assert sorted(rows) == ["0", "1"]


@pytest.mark.skipif(PLATFORM != "tpu", reason="the examples ask v5e's compiler")
class TestExamples:
    @pytest.fixture(autouse=True)
    def in_root(self, monkeypatch):
        monkeypatch.chdir(ROOT)

    def test_a_group_is_changed_on_v5e(self, tmp_path):
        _, ahead = commands_of("compare_groups.py")
        outcome = run_example(ahead, tmp_path / "c.json")["compare_groups"]
        assert [each.verdict for each in outcome.effects] == [Verdict.CHANGED] and not outcome.error

    def test_each_offloaded_layer_saves_memory_of_v5e(self, tmp_path):
        (command,) = commands_of("compare_offload.py")
        memory = growths(run_example(command, tmp_path / "c.json"), "memory")
        assert memory["all"] < memory["half"] < memory["quarter"] < 0
