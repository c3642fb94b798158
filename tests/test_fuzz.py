# SPDX-License-Identifier: Apache-2.0
"""What the fuzzers found stays mended, and each of them, for a moment. `make fuzz` runs them for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import lowered
import pytest
import random_programs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hlotag
from hlotag.pipeline import pipeline_text
from programs import PROGRAMS

FUZZ = Path(__file__).parent.parent / "fuzz"


def corpus(name: str) -> list[Path]:
    files = sorted((FUZZ / "corpus" / name).iterdir())
    assert files
    return files


@pytest.mark.parametrize("path", corpus("pipeline_text"), ids=lambda path: path.name)
def test_pipeline_text(path):
    try:
        once = pipeline_text(path.read_text(errors="replace"))
    except hlotag.PipelineError:
        return
    assert pipeline_text(once) == once


@pytest.mark.parametrize("path", corpus("rules_text"), ids=lambda path: path.name)
def test_rules_text(path):
    pipeline = f"hlotag-attach{{rules={{{path.read_text(errors='replace')}}}}}"
    try:
        hlotag.run_passes("module {}", pipeline)
    except hlotag.HlotagError:
        return


@pytest.mark.parametrize("path", corpus("location_name"), ids=lambda path: path.name)
def test_location_name(path):
    name = "".join(f"\\{byte:02X}" for byte in path.read_bytes())
    tags = 'hlotag.tags = [{forward = {k = "v"}, derived = {}}]'
    module = f'module attributes {{{tags}}} {{ func.func @f() {{ return loc("{name}") }} }}'
    for one in lowered.PASSES:
        assert lowered.check(module, one) == ""


@settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(random_programs.PROGRAMS, st.sampled_from(sorted(random_programs.TRANSFORMS)))
def test_random_programs(steps, transform):
    random_programs.check(steps, transform)


def test_mutated_modules(tmp_path):
    for name in ("mlp", "branches", "scan_of_remat", "inner_jit"):
        function, args = PROGRAMS[name]
        (tmp_path / f"{name}.mlir").write_text(jax.jit(jax.grad(function)).lower(*args).as_text(debug_info=True))
    command = [sys.executable, str(FUZZ / "lowered.py"), "--child", str(tmp_path), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int((tmp_path / "said").read_text()) > 10
    assert [path.read_text().splitlines()[:2] for path in tmp_path.glob("wrong-*")] == []
