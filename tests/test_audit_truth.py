# SPDX-License-Identifier: Apache-2.0
"""What an audit says became of tags is what became of them (`audit_truth.py`)."""

import functools

import jax
import pytest

import audit_programs
import audit_truth
import hlotag
from hlotag.audits import TagState, collect
from hlotag.tagging import keys
from programs import B, W, X

PROGRAMS = audit_programs.programs()


# On jax 0.10.2, XLA merges a broadcast of a constant in these with a product, and the instruction has the product's name first.
_NAMED_AFTER_OTHERS = {("mlp", 0), ("mlp", 1), ("clipped", 0), ("shard_map", 0)}


@functools.lru_cache(maxsize=1)
def case_of(name, seed, share):
    case = audit_truth.make(*PROGRAMS[name], seed, share)
    return case, audit_truth.Truth(case)


SOME, ALL = (0, 0.7), (1, 1.0)


@pytest.mark.parametrize(
    ("stage", "drawn"), [("off", SOME), ("off", ALL), ("on", SOME), ("on", ALL), ("on, the key hidden", SOME)], ids=str
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_states_are_the_true_ones(name, drawn, stage, request, monkeypatch):
    """The HLO pass is off, or compared on and off."""
    monkeypatch.setattr(keys, "_registered", {})
    is_hidden = stage not in ("off", "on")
    hlotag.register_key("t", compiler=not is_hidden)
    if jax.__version_info__ < (0, 12) and (name, drawn[0]) in _NAMED_AFTER_OTHERS and not is_hidden:
        request.applymarker(
            pytest.mark.xfail(strict=True, reason="a broadcast that bears the name of a product counts as the product's")
        )
    case, truth = case_of(name, *drawn)
    if stage == "off":
        assert audit_truth.differences(case, truth) == []
    else:
        assert audit_truth.differences_with_both_stages(case, truth, is_hidden=is_hidden) == []


@pytest.mark.parametrize("name", ["mlp", "turned", "heads", "twice"])
def test_the_pass_that_lost_a_tag_is_the_true_one(name):
    case = audit_truth.make(*PROGRAMS[name])
    truth = audit_truth.Truth(case)
    found = {tag.op.id: tag.by for tag in hlotag.audit(case.lowered).tags if tag.needs_attention}
    assert found and found == {number: truth.lost_by(number) for number in found}


def test_a_large_module_names_passes_when_asked(monkeypatch):
    monkeypatch.setattr(collect, "_MAX_OPS", 0)
    case = audit_truth.make(*PROGRAMS["turned"])
    assert {tag.by for tag in hlotag.audit(case.lowered).lost} == {""}
    assert {tag.by for tag in hlotag.audit(case.lowered, xla_passes=True).lost} == {"gemv-rewriter"}


def test_relabeled_values_have_lost_nothing():
    case = audit_truth.make(audit_programs.curvature, (X, W, B))
    truth = audit_truth.Truth(case)
    lost = [tag.op.id for tag in hlotag.audit(case.lowered).lost if tag.key == "t"]
    assert [number for number in lost if truth.state(number) != TagState.LOST] == []
