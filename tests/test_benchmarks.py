# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run; what they measure is no test's business."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert re.findall(r"^## (.*)$", page, re.MULTILINE)[1:] == [section.title for section in record.SECTIONS]
    assert re.findall(r"^\| (.+?) \|.*\d.*\|.*\d", page, re.MULTILINE) == [what for what, *_ in record.COSTS]
