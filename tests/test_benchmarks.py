# SPDX-License-Identifier: Apache-2.0
"""The benchmarks and the report of `make test-gpu` run; what they measure is no test's business."""

import gc
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import hlotag
from hlotag import _core
from hlotag.tagging import scopes, walk

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_instructions_are_counted_of_all_that_the_table_has():
    code = "import instructions, scale, time; scale.LAYERS = 1; instructions.report(time.process_time_ns, 1, 1, 2)"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(BENCHMARKS)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for name in ("trace", "lower", r"trace \+ lower", "  in tags", "  in marks", "  in passes", "compile", "default pipeline"):
        assert re.search(rf"^{name}\b.* \d+\.\d+%?$", done.stdout, re.MULTILINE), done.stdout


def test_every_section_of_the_page_is_a_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.delitem(sys.modules, "record", raising=False)  # fuzz/ has one of that name
    record = importlib.import_module("record")
    del sys.modules["record"]
    assert Path(record.__file__).parent == BENCHMARKS
    assert all((BENCHMARKS / f"{section.name}.py").exists() for section in record.SECTIONS)
    page = (BENCHMARKS.parent / "docs" / "performance.md").read_text()
    shown, further = ([section for section in record.SECTIONS if section.shown is is_shown] for is_shown in (True, False))
    assert re.findall(r"^## (.*)$", page, re.MULTILINE)[1:] == [*(section.title for section in shown), "Further benchmarks"]
    assert re.findall(r"^- `python benchmarks/(\w+)\.py", page, re.MULTILINE) == [section.name for section in further]
    assert re.findall(r"^\| (.+?) \|.*\d.*\|.*\d", page, re.MULTILINE) == [what for what, *_ in record.COSTS]


def kept():
    """What hlotag makes for each program or block."""
    jax.clear_caches()
    gc.collect()
    kinds = (walk.Walk, scopes._Entry, hlotag.tagging.state.Stage)
    # The compiled regular expressions and passes are shared; these are per program.
    objects = {kind.__name__: sum(type(x) is kind for x in gc.get_objects()) for kind in kinds}
    return objects | {"equations": _core.recorded_equations()}


def test_threads_keep_their_stages_and_nothing_is_kept(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    soak = importlib.import_module("soak")
    before = kept()
    memory = soak.soak(100, threads=4, samples=4)
    after = kept()
    # The innermost entry that a pool's thread or a context variable saw last may be alive; 400 stages and their blocks are not.
    assert all(after[kind] - before[kind] <= 8 for kind in after), (before, after)
    assert memory[-1] - memory[1] < 16, memory


def test_the_report_finds_tags_and_their_names_in_a_profile(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS.parent / "tools")
    monkeypatch.setattr(sys, "path", [*sys.path])  # It adds the examples.
    gpu_report = importlib.import_module("gpu_report")

    ((_, seen, _),) = gpu_report.tags()
    assert "with it" in seen
    assert [row[0] for row in gpu_report.profile()] == ["profile: layer=0", "profile: layer=1"]
