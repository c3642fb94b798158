# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run; what they measure is no test's business."""

from __future__ import annotations

import errno
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import requires

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
# As callgrind writes it: names are written out once, and the line after `calls=` is of the function that is called.
CALLGRIND = """\
version: 1
events: Ir

ob=(1) /x/hlotag/_core.so
fl=(1) ???
fn=(1) 0x10
12 5
+3 7
cob=(2) /x/libjax_common.so
cfn=(2) mlirOperationGetName
calls=1 0
* 100

ob=(2)
fn=(2)
1 40
fn=(3) mlir::StringAttr::get(mlir::MLIRContext*)
- 60

ob=(1)
fn=(1)
+1 8
totals: 120
"""


@pytest.fixture
def benchmark(monkeypatch):
    """Imports one of them by its name."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


def test_instructions_belong_to_the_function_that_they_are_in(benchmark, tmp_path):
    counts = benchmark("counts")
    (tmp_path / "out").write_text(CALLGRIND)
    spent = counts.spent(tmp_path / "out")
    assert dict(spent) == {
        "/x/hlotag/_core.so: 0x10": 20,
        "/x/libjax_common.so: mlirOperationGetName": 40,
        "/x/libjax_common.so: mlir::StringAttr::get(mlir::MLIRContext*)": 60,
    }
    assert [counts.kind_of(function) for function in spent] == ["own", "C API", "unique"]


def test_callgrinds_total_is_read(benchmark, tmp_path):
    instructions = benchmark("instructions")
    (tmp_path / "out").write_text(CALLGRIND)
    assert instructions.total_of(tmp_path / "out") == 120


def test_the_kernel_understands_which_counter_is_meant(benchmark):
    instructions = benchmark("instructions")
    software, time_on_a_processor = 1, 1  # It needs no counter of the processor's.
    try:
        clock = instructions.processor_clock(software, time_on_a_processor)
    except OSError as error:
        if error.errno not in {None, errno.EACCES, errno.EPERM, errno.ENOSYS}:  # It may be refused, but not as a wrong argument.
            raise
    else:
        before = clock()
        assert 0 < before < clock()


def test_without_counters_and_valgrind_instructions_are_not_counted(benchmark, monkeypatch, capsys):
    instructions = benchmark("instructions")

    def none() -> None:
        raise OSError("no counters")

    monkeypatch.setattr(instructions, "processor_clock", none)
    monkeypatch.setattr(benchmark("counts"), "has_valgrind", lambda: False)
    monkeypatch.setattr(sys, "argv", ["instructions.py"])
    instructions.main()
    assert re.match(r"Did not run: .*\(no counters\)", capsys.readouterr().out, re.DOTALL)


def test_instructions_are_counted_of_all_that_the_table_has():
    code = "import instructions, scale, time; scale.LAYERS = 1; instructions.report(time.process_time_ns, 1, 1, 2)"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(BENCHMARKS)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for name in ("trace", "lower", r"trace \+ lower", "  in tags", "  in marks", "  in passes", "compile", "default pipeline"):
        assert re.search(rf"^{name}\b.* \d+\.\d+%?$", done.stdout, re.MULTILINE), done.stdout


def test_growth():
    requires.tool("c++", "g++")
    command = [sys.executable, str(BENCHMARKS / "growth.py"), "--largest", "1000"]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"^ *1,\d{3}( +\d+){3} +\d+\.\d+$", done.stdout, re.MULTILINE), done.stdout


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
