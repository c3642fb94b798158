# SPDX-License-Identifier: Apache-2.0
"""Input that is big, badly shaped, or no module at all. `make hostile` runs the big cases at their full size."""

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hostile
import pytest

import hlotag
from hlotag.cli import opt_main
from hlotag.mlir.modules import new_context, parse_module, to_bytecode

pytestmark = pytest.mark.slow

MODULE = 'module {\n  func.func @f(%x: tensor<f32>) -> tensor<f32> {\n    return %x : tensor<f32> loc("a")\n  }\n}\n'


@pytest.mark.parametrize("name", hostile.CASES)
def test_cases_at_a_small_size(name):
    assert hostile.run(name, hostile.CASES[name].short)["wrong"] == ""


def test_a_constant_is_not_copied():
    """By the passes, that is: in a process of its own, the most memory it has had grows by a fraction of the constant."""
    outcome = hostile._in_child("constant, bytes", 1 << 28)
    assert "crash" not in outcome and outcome["bytes"] < 1 << 26


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (hostile.CASES["nesting"].build(300), 2, "nested 303 deep"),  # XLA has no stack for it.
        (hostile.CASES["location: names"].build(900), 0, "1 operation"),
        (hostile.CASES["location: callsites"].build(900), 0, "1 operation"),
    ],
    ids=["nesting", "location: names", "location: callsites"],
)
def test_an_audit_of_what_is_deep(tmp_path, run_python, text, status, said):
    (tmp_path / "deep.mlir").write_text(text)
    done = run_python("import sys; from hlotag.cli import main; sys.exit(main(['audit', 'deep.mlir']))", may_fail=True)
    assert done.returncode == status and said in (done.stderr if status else done.stdout) and "Traceback" not in done.stderr


def bytecode() -> bytes:
    with new_context():
        return to_bytecode(parse_module(MODULE))


def newer_bytecode() -> bytes:
    version = b"\xc9"  # a number of this form: 100
    assert bytecode().startswith(b"ML\xefR")
    return bytecode()[:4] + version + bytecode()[5:]


NO_MODULES = {
    "binary": (Path(sys.executable).resolve().read_bytes()[:100_000], "neither bytecode nor UTF-8"),
    "zeros": (bytes(10_000), "zero byte at offset 0"),
    "a module and zeros": (MODULE.encode() + b"\0", "zero byte"),
    "utf-16": (MODULE.encode("utf-16"), "neither bytecode nor UTF-8"),
    "half a module": (MODULE.encode()[:40], "error: "),
    "half a module in bytecode": (bytecode()[:-10], "error: "),
    "bytecode, only its magic": (b"ML\xefR", "error: "),
    "bytecode of a newer MLIR": (newer_bytecode(), "error: "),
    "operation of a newer StableHLO": (
        b'func.func @f(%x: tensor<f32>) -> tensor<f32> { %0 = "stablehlo.of_tomorrow"(%x) : (tensor<f32>) -> tensor<f32>\n'
        b"return %0 : tensor<f32> }",
        "unregistered operation 'stablehlo.of_tomorrow'",
    ),
    "type of a newer StableHLO": (b"func.func private @f(!stablehlo.of_tomorrow)", "error: "),
    "dialect of tomorrow": (b"tomorrow.op", "error: "),
    "brackets": (b"module attributes {a.b = " + b"[" * 1_000_000, "nested 1000001 deep"),
    "brackets that are read": (b"module attributes {a.b = " + b"[" * 900, "error: "),
    "a long line": (b"x" * 1_000_000, "error: "),
    "quotes": (b'"' * 100_001, "error: "),
}


@pytest.mark.parametrize("name", NO_MODULES)
def test_files_that_are_no_modules(name, tmp_path, capfd):
    """One error, in words, with the file's name; no result."""
    content, message = NO_MODULES[name]
    path, result = tmp_path / "input", tmp_path / "result"
    path.write_bytes(content)
    assert opt_main([str(path), "-o", str(result)]) == 1
    said = capfd.readouterr()
    assert said.out == "" and message in said.err and str(path) in said.err
    assert "Traceback" not in said.err and not result.exists()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"// nothing\n", b"\xef\xbb\xbf"[:0]])
def test_an_empty_file_is_an_empty_module(content, tmp_path, capfd):
    path = tmp_path / "empty"
    path.write_bytes(content)
    assert opt_main([str(path)]) == 0
    assert capfd.readouterr().out.split() == ["module", "{", "}"]


def test_a_fifo_is_read(tmp_path, capfd):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(opt_main, [str(fifo), "--hlotag-finalize"])
        fifo.write_text(MODULE)
        assert done.result(timeout=120) == 0
    assert "func.func @f" in capfd.readouterr().out


DEEP = {
    "aliases of locations": '#l0 = loc("x")\n'
    + "".join(f'#l{i + 1} = loc("n"(#l{i}))\n' for i in range(900))
    + "module {} loc(#l900)",
    "aliases of types": "!t0 = tuple<>\n" + "".join(f"!t{i + 1} = tuple<!t{i}>\n" for i in range(900)) + "module {}",
    "signs": "module attributes {m.x = affine_map<(d0) -> (" + "- " * 900 + "d0)>} {}",
    "sums": "module attributes {m.x = affine_map<(d0) -> (" + "d0 floordiv 2 + " * 900 + "d0)>} {}",
}


@pytest.mark.parametrize("name", DEEP)
def test_text_that_is_deep_without_brackets(name, run_python):
    code = "import sys, hlotag\ntry: hlotag.run_passes(sys.stdin.read())\nexcept hlotag.errors.ParseError as error: print(error)"
    assert re.fullmatch(r"(.* nested \d+ deep.*\n)?", run_python(code, input=DEEP[name]).stdout)


def test_deep_text_raises_what_any_other_text_does():
    text = "module attributes {a = " + "[" * 900 + "]" * 900 + "} {}"
    with pytest.raises(hlotag.errors.ParseError, match="dialect-prefixed"):
        hlotag.run_passes(text)


@pytest.mark.parametrize("bracket", ["[", "{a = affine_set<(d0) : (d0 >= 0)>, b = "])
def test_options_nested_deeper_than_any_stack(bracket):
    with pytest.raises(hlotag.errors.PassError, match="nested deeper"):
        hlotag.run_passes("module {}", f"hlotag-attach{{rules='{bracket * 200_000}'}}")


MAIN = """
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {"""
CALLED_WITH_LESS = {
    "nested": """
  return %x : tensor<f32>
}
module @nested {
  func.func private @f(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.cosine %z : tensor<f32>
    return %0 : tensor<f32>
  }
}""",
    "blocks": """
  cf.br ^bb1(%x, %x, %x : tensor<f32>, tensor<f32>, tensor<f32>)
^bb1(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):
  %0 = stablehlo.cosine %c : tensor<f32>
  return %0 : tensor<f32>
}""",
}


@pytest.mark.parametrize("name", CALLED_WITH_LESS)
def test_arguments_that_no_call_gives_are_made_by_nothing(name, run_python):
    """In a process of its own, where malloc fills what it gives: an operand beyond those of the call has no valid address."""
    code = f"""
from hlotag import _core, run_passes
from hlotag.mlir.modules import new_context, parse_module
with new_context():
    module = run_passes(parse_module('''{MAIN}{CALLED_WITH_LESS[name]}'''), 'hlotag-strip')
    program = _core.number_operations(module, 'ab', every=True)
print([program[i][2] for i in range(len(program)) if program[i][0] == 'stablehlo.cosine'])
"""
    assert run_python(code, MALLOC_PERTURB_="85").stdout == "[(None,)]\n"
