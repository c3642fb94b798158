# SPDX-License-Identifier: Apache-2.0
"""What the fuzzers found stays mended, and each of them, for a moment. `make fuzz` runs them for longer."""

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import jax
import lowered
import pytest
import random_programs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hlotag
from hlo_messages import changed
from hlotag.lowering import hlo_pass
from hlotag.passes.pipeline import pipeline_text
from hlotag.passes.rules import Rule
from programs import PROGRAMS

pytestmark = pytest.mark.slow

FUZZ = Path(__file__).parent.parent / "fuzz"


def corpus(name: str) -> list[Path]:
    files = sorted((FUZZ / "corpus" / name).iterdir())
    assert files
    return files


@pytest.mark.parametrize("path", corpus("pipeline_text"), ids=lambda path: path.name)
def test_pipeline_text(path):
    try:
        once = pipeline_text(path.read_text(errors="replace"))
    except hlotag.errors.ArgumentError:
        return
    assert pipeline_text(once) == once


@pytest.mark.parametrize("path", corpus("rules_text"), ids=lambda path: path.name)
def test_rules_text(path):
    with suppress(hlotag.HlotagError):
        hlotag.run_passes("module {}", f"hlotag-attach{{rules={{{path.read_text(errors='replace')}}}}}")


@pytest.mark.parametrize("path", corpus("location_name"), ids=lambda path: path.name)
def test_location_name(path):
    name = "".join(f"\\{byte:02X}" for byte in path.read_bytes())
    tags = 'hlotag.tags = [{entries = {k = "v"}}]'
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


def spoil(module, choose):
    """Changes what some instruction of an HLO module is, or refers to."""
    computations = module.computations
    one, other = (choose.choice(choose.choice(computations).instructions) for _ in range(2))
    kind = choose.randrange(8)
    if kind == 0 and one.operand_ids:
        one.operand_ids[choose.randrange(len(one.operand_ids))] = choose.choice([other.id, one.id, -1, 2**62])
    elif kind <= 1:
        del one.operand_ids[:]
    elif kind == 2:
        one.called_computation_ids.append(choose.choice(computations).id)
    elif kind == 3:
        del one.called_computation_ids[:]
    elif kind == 4:
        one.opcode = other.opcode
    elif kind == 5:
        one.tuple_index = one.parameter_number = choose.choice([-1, 7, 2**62])
    elif kind == 6:
        one.id = choose.choice([other.id, -1, 2**62])
    else:
        choose.choice(computations).root_id = other.id


def test_mutated_hlo_modules(monkeypatch):
    seen = []
    restore = hlo_pass.restore
    monkeypatch.setattr(hlo_pass, "restore", lambda *args, **kw: seen.append(args) or restore(*args, **kw))
    for name in ("mlp", "branches", "scan_of_remat"):
        function, args = PROGRAMS[name]
        with hlotag.stage(rules=[Rule({"k": 1}, op="*")], hlo=True):
            jax.jit(jax.grad(function)).lower(*args).compile()
    assert len(seen) == 3
    choose = random.Random(0)
    said = []
    for _ in range(300):
        data, program, rules = choose.choice(seen)
        count = choose.choice([1, 1, 2, 4])
        data = bytearray(changed(data, lambda module, count=count: [spoil(module, choose) for _ in range(count)]))
        if choose.random() < 0.3:
            data[choose.randrange(len(data))] = choose.randrange(256)
        try:
            restore(bytes(data), program, rules, keeps_numbers=choose.random() < 0.5)
            said.append("sound")
        except hlotag.HlotagError as error:
            said.append(type(error).__name__)
    assert set(said) == {"sound", "ParseError"}
