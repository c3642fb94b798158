# SPDX-License-Identifier: Apache-2.0
"""Each of the three changes in CONTRIBUTING.md takes what the page says."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import requires
from hlotag import _core
from hlotag.hlo import opcodes
from hlotag.mlir import connection, library

ROOT = Path(__file__).parent.parent
CPP = ROOT / "cpp" / "lib" / "hlo"


USES_NEW_PRODUCT = """
#include "hlotag/hlo/opcodes.h"
using namespace hlotag::hlo;
int main() {
  Kind operation("stablehlo.new_product"), instruction("new-product");
  return instruction.cost == Cost::Heavy && mayBe(operation, instruction) && mayBe(operation, Kind("custom-call")) ? 1 : 0;
}
"""


def compile_cpp(*arguments):
    command = [requires.tool("c++", "g++"), "-std=c++17", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_an_operation_takes_its_lines(tmp_path):
    assert opcodes.kind_of("new-product") == opcodes.Kind.POINTWISE
    assert not opcodes.may_be("stablehlo.new_product", "custom-call")
    source, program = tmp_path / "opcodes.cpp", tmp_path / "uses.cpp"
    text, count = re.subn(
        r'(?m)^    \{"sort", Heavy::Sort\},$', r'\g<0>\n    {"new-product", Heavy::Sort},', (CPP / source.name).read_text()
    )
    assert count == 1
    source.write_text(text)
    program.write_text(USES_NEW_PRODUCT)
    compile_cpp(f"-I{ROOT}/cpp/include", program, source, "-o", tmp_path / "uses")
    assert subprocess.run([tmp_path / "uses"], check=False).returncode == 1


def test_a_renamed_function_takes_one_line(monkeypatch):
    found, known = library.find_library(), "mlirIdentifierGet"
    before = connection._read_offsets(found)
    monkeypatch.setattr(_core, "required_symbols", lambda: [name for name in before if name != known] + ["mlirOldIdentifierGet"])
    with pytest.raises(Exception, match="mlirOldIdentifierGet"):
        connection._read_offsets(found)
    monkeypatch.setitem(connection.RENAMED, "mlirOldIdentifierGet", ("mlirNeverThere", known))
    assert connection._read_offsets(found)["mlirOldIdentifierGet"] == before[known]


def test_a_pass_takes_a_file_and_two_lines(tmp_path):
    shutil.copytree(ROOT / "cpp", tmp_path / "cpp")
    passes, header = tmp_path / "cpp" / "lib" / "passes", tmp_path / "cpp" / "include" / "hlotag" / "passes" / "passes.h"
    strip = (passes / "strip.cpp").read_text().replace("createStripPass", "createSamplePass")
    (passes / "sample.cpp").write_text(strip.replace('"hlotag-strip"', '"hlotag-sample"'))
    for file in (header, passes / "passes.cpp"):
        text, count = re.subn(r"(?m)^(.*create)Strip(Pass.*;)$", r"\g<0>\n\1Sample\2", file.read_text())
        assert count == 1
        file.write_text(text)
    for source in ("sample.cpp", "passes.cpp"):
        compile_cpp("-fsyntax-only", *(f"-I{tmp_path}/cpp/{folder}" for folder in ("include", "lib")), passes / source)
