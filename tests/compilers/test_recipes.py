# SPDX-License-Identifier: Apache-2.0
"""The figures of the programs of examples/effects."""

import importlib
from pathlib import Path

import pytest

from conftest import PLATFORM

RECIPES = Path(__file__).parents[2] / "examples" / "effects"
COMPILER = {"gpu": "h100", "tpu": "v5e"}[PLATFORM]


@pytest.fixture
def figures(monkeypatch):
    """By variant of a recipe, its figures."""
    monkeypatch.syspath_prepend(str(RECIPES))
    compiling = importlib.import_module("compiling")

    def of(name: str, devices: int) -> dict[str, dict]:
        mesh = compiling.mesh_of(COMPILER, devices)
        variants = importlib.import_module(name).recipe(mesh)
        return {variant: compiling.figures(step, mesh, *shapes) for variant, (step, *shapes) in variants.items()}

    return of


def test_a_group_overlaps_its_gather(figures):
    overlapped = [found["overlapped"] for found in figures("scheduling_group", 4).values()]
    assert overlapped == {"gpu": [1, 1, 2], "tpu": [1, 2, 2]}[PLATFORM]


def test_a_stream_runs_beside_what_is_independent(figures):
    overlapped = [found["overlapped"] for found in figures("stream", 1).values()]
    assert overlapped == {"gpu": [0, 1], "tpu": [0, 0]}[PLATFORM]


def test_offload_saves_memory_of_the_device(figures):
    before, after = figures("offload", 1).values()
    assert after["temporary MB"] < 0.8 * before["temporary MB"]
    assert (before["host MB"], after["host MB"]) == (0, 134.2)


def test_must_fuse_changes_no_figure(figures):
    assert len({found["fusions"] for found in figures("must_fuse", 1).values()}) == 1
