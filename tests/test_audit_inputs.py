# SPDX-License-Identifier: Apache-2.0
"""What an audit reads and prints of what it is given: files that a module names, its text, functions of other libraries."""

import os
import signal
import tempfile
import threading
import warnings
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import pytest

import hlotag
import requires
from audits import data_of
from hlo_messages import as_dump, changed
from hlotag import _compat
from hlotag.audits import collect
from hlotag.cli import main
from programs import B, W, X, mlp

gradient = jax.grad(mlp, (0, 1, 2))


def located(file: str, name: str = "m") -> bytes:
    return f"""module @"{name}" {{
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = stablehlo.sine %x {{mhlo.frontend_attributes = {{a = "1"}}}} : tensor<4xf32> loc("{file}":1:1)
    return %0 : tensor<4xf32>
  }}
}}
""".encode()


@pytest.mark.parametrize("flags", [[], ["--sources"]], ids=["", "sources"])
def test_a_module_has_no_file_read_but_those_that_may_be(tmp_path, monkeypatch, capsys, flags):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (tmp_path / "netrc").write_text("secret = 1\n")
    (work / "link").symlink_to(tmp_path / "netrc")
    (work / "mine.py").write_text("open_line = 1\n")
    os.mkfifo(work / "pipe")
    for file in (tmp_path / "netrc", work / "link", work / "pipe", "/dev/zero", work / "mine.py"):
        Path("module.mlir").write_bytes(located(str(file)))
        assert main(["audit", "module.mlir", "--html", "page.html", *flags]) == 0
        page = Path("page.html").read_text()
        page += str(data_of(page))
        assert "secret" not in page
        assert ("open_line" in page) == (bool(flags) and file == work / "mine.py")
    os.mkfifo(work / "module_0001.jit_f.before_optimizations.txt")
    assert main(["audit", "--dump-dir", str(work)]) == 2
    capsys.readouterr()


def test_nothing_that_a_module_says_is_an_escape_sequence(tmp_path, capsys):
    (tmp_path / "m.mlir").write_bytes(located("f.py", "\\1B[31mred"))
    assert main(["audit", str(tmp_path / "m.mlir")]) == 0
    assert "\\x1b[31mred" in capsys.readouterr().out
    (tmp_path / "m.mlir").write_text('module { "\x1b[31mred" }')
    assert main(["audit", str(tmp_path / "m.mlir")]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_what_has_a_lower_of_its_own():
    requires.libraries("equinox", extra="examples")
    import equinox

    assert hlotag.audit(equinox.filter_jit(gradient), X, W, B).tags == hlotag.audit(gradient, X, W, B).tags

    with pytest.raises(TypeError, match=r"\.lower made a builtins.int"):
        hlotag.audit(mock.Mock(lower=lambda: 3))


def test_what_passes_report_is_a_problem():
    rules = [hlotag.Rule({"k": "v"}, op="no_such_op")]
    for _ in range(2):
        with hlotag.stage(rules=rules):
            audit = hlotag.audit(gradient, X, W, B)
        (problem,) = audit.report.problems
        assert problem.kind == "unmatched rule" and "rule 1 matched nothing" in problem.why


@pytest.mark.parametrize("kind", ["function", "module"])
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_xla_and_leaves_nothing(kind, monkeypatch, tmp_path):
    text = "func.func public @main(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}"
    owner, name = (jax.stages.Lowered, "compile") if kind == "function" else (_compat.runtime, "compile_module")
    original, ended = getattr(owner, name), []

    def interrupted(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        result = original(*args, **kwargs)
        ended.append(os.listdir(tmp_path))
        return result

    monkeypatch.setattr(owner, name, interrupted)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        hlotag.audit(jnp.sin, jnp.ones(3)) if kind == "function" else collect.audit_module(text.encode(), "m.mlir")
    assert len(ended) == len(ended[0]) == 1 and not os.listdir(tmp_path)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_audit_is_of_the_platform_that_compiled():
    for_tpu = jax.jit(mlp).trace(X, W, B).lower(lowering_platforms=("tpu",))
    assert hlotag.audit(for_tpu).platform == "cpu"


@pytest.mark.parametrize(
    "origins",
    ['"x"', '{k = "x"}', "{k = {step = 1 : i32}}", '{k = {from = "\\FF"}}']
    + [f'{{k = {{confidence = "{number}"}}}}' for number in ("abc", "nan", "1e999", "2")],
)
def test_records_that_hlotag_did_not_write_are_invalid_input(origins, tmp_path, capsys):
    text = located("f.py").decode().replace("{mhlo", f"{{hlotag.origins = {origins}, mhlo").replace("{a =", "{k =")
    (tmp_path / "m.mlir").write_text(text)
    assert main(["audit", str(tmp_path / "m.mlir")]) == 2
    assert "'hlotag.origins' of stablehlo.sine is not as hlotag writes it" in capsys.readouterr().err


def dumped(folder: Path, text: str, damage=lambda module: None) -> list[str]:
    """The arguments of an audit of a folder with one dump, before and after the optimizations."""
    module = changed(_compat.runtime.hlo_from_text(text), damage)
    for what in ("before_optimizations", "cpu_after_optimizations"):
        file = folder / f"module_0001.m.{what}.hlo.pb"
        file.write_bytes(as_dump(module))
    return ["audit", "--dump-dir", str(folder)]


CALLS = """HloModule m
c0 { p = f32[] parameter(0)
ROOT s = f32[] sine(p), frontend_attributes={k="v"}, metadata={op_name="sin"} }
"""


@pytest.mark.parametrize("field", ["entry", "root", "operand", "called", "itself"])
def test_a_damaged_dump_is_invalid_input(field, tmp_path, capsys):
    def damage(module):
        c0, main = module.computations
        if field == "entry":
            module.entry_computation_id = 99
        elif field == "root":
            c0.root_id = 99
        elif field == "operand":
            c0.instructions[1].operand_ids[0] = 99
        else:
            main.instructions[1].called_computation_ids[0] = 99 if field == "called" else main.id

    text = f"{CALLS}ENTRY main {{ p = f32[] parameter(0)\nROOT c = f32[] call(p), to_apply=c0 }}"
    assert main(dumped(tmp_path, text)) == 0
    assert main(dumped(tmp_path, text, damage)) == 2
    assert "a damaged HloProto; dump the module again" in capsys.readouterr().err


def test_nested_calls_take_no_exponential_time(tmp_path):
    text = CALLS
    for i in range(1, 60):
        call = 'f32[] call({}), to_apply=c{}, metadata={{op_name="{}"}}'
        a, b = call.format("p", i - 1, "a"), call.format("a", i - 1, "b")
        text += f"c{i} {{ p = f32[] parameter(0)\na = {a}\nROOT b = {b} }}\n"
    assert main(dumped(tmp_path, f"{text}ENTRY main {{ p = f32[] parameter(0)\nROOT c = f32[] call(p), to_apply=c59 }}")) == 0


def test_a_link_out_of_a_folder_of_dumps_is_not_followed(tmp_path, capsys):
    (tmp_path / "secret").write_text("the secret")
    folder = tmp_path / "dumps"
    folder.mkdir()
    for what in ("before_optimizations", "cpu_after_optimizations"):
        (folder / f"module_0001.m.{what}.txt").symlink_to(tmp_path / "secret")
    assert main(["audit", "--dump-dir", str(folder)]) == 2
    assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["function", "lowered", "module"])
def test_disable_in_another_thread_waits_for_the_end_of_an_audit(kind, monkeypatch):
    def fun(x):
        return hlotag.tag(jnp.sin(hlotag.tag(x.T.T, {"k": "v"})), {"k": "w"})

    options = collect._dump_options

    def disable_elsewhere(*args, **options_given):
        thread = threading.Thread(target=hlotag.disable)
        thread.start()
        thread.join()
        return options(*args, **options_given)

    hlotag.enable()
    lowered = jax.jit(fun).lower(X)
    monkeypatch.setattr(collect, "_dump_options", disable_elsewhere)
    if kind == "module":
        audit = collect.audit_module(lowered.as_text(debug_info=True).encode(), "m.mlir", hlo=True)
    else:
        audit = hlotag.audit(lowered) if kind == "lowered" else hlotag.audit(fun, X)
    assert audit.hlo_pass and not audit.is_off
    assert hlotag.active() is None
    hlotag.disable()
    assert hlotag.audit(lowered).hlo_pass  # The stage in which it was lowered decides.


def test_a_program_that_is_evaluated_while_another_is_traced_reports_nothing():
    def f(x):
        with jax.ensure_compile_time_eval():
            c = jnp.sin(jnp.ones(3))
        with jax.named_scope("a"):
            return x * c

    with hlotag.stage(rules=[hlotag.Rule({"p": "a"}, scope="a")]):
        assert hlotag.audit(f, jnp.ones(3)).report.problems == ()


def test_a_source_that_matches_nothing_names_the_files_of_the_program():
    with warnings.catch_warnings(action="ignore"), hlotag.stage(rules=[hlotag.Rule({"p": "a"}, source="elsewhere.py")]):
        (problem,) = hlotag.audit(lambda x: jnp.sin(x), jnp.ones(3)).report.problems
    assert problem.kind == "unmatched rule" and problem.advice.endswith(f"Their lines are in {__file__}.")


EXPORT = """
import jax, jax.numpy as jnp, hlotag
from jax import export

def f(w, x):
    with hlotag.tagged({"layer": "head"}), jax.named_scope("mlp"):
        return {"y": jnp.tanh(x["x"] @ w).sum(-1), "n": jnp.arange(x["x"].shape[0])}

b, = export.symbolic_shape("b")
w, x = jax.ShapeDtypeStruct((4, 4), jnp.float32), jax.ShapeDtypeStruct((2 * b, 4), jnp.float32)
with hlotag.stage():
    exported = export.export(jax.jit(f))(w, x={"x": x})
open("f.bin", "wb").write(exported.serialize())
"""


def test_an_export_with_a_symbolic_batch_is_audited_with_its_size(tmp_path, run_python, monkeypatch, capsys):
    requires.libraries("flatbuffers", extra="test")
    run_python(EXPORT)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text("module {}")
    assert main(["audit", "f.bin", "--shape", "b=4", "--tags", "--work", "scope"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("jit_f: ") and "layer=head" in said and "tanh f32[8,4]" in said and "\nmlp " in said
    for arguments, message in (
        (["f.bin"], "f.bin: the size of b is symbolic; give one to compile it for: --shape b=8"),
        (["f.bin", "--shape=b=0"], "f.bin: the export cannot be compiled with b=0: "),
        (["f.bin", "--shape=b=1", "--shape=c=1"], "--shape c=1: f.bin has the symbolic dimensions b"),
        (["m.mlir", "--shape=b=1"], "--shape b=1: m.mlir is no export with symbolic dimensions"),
        (["f.py:f", "--shape=b=1"], "--shape is for the file of an export; f.py:f has its shapes"),
    ):
        assert main(["audit", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_a_saved_audit_is_shown_again(tmp_path, capsys):
    audit = hlotag.audit(jax.jit(mlp), X, W, B)
    file = tmp_path / "a.json"
    file.write_text(audit.to_json())
    assert main(["audit", str(file), "--html", f"{tmp_path / 'a.html'}"]) == 0
    assert capsys.readouterr().out.startswith("jit_mlp: ") and (tmp_path / "a.html").read_text().startswith("<!doctype")
    for flags, said in ((["--no-hlo"], "is a saved audit, which is only read"), (["--memory"], "the audit was saved without it")):
        assert main(["audit", str(file), *flags]) == 2
        assert said in capsys.readouterr().err
    file.write_text("{}")
    assert main(["audit", str(file)]) == 2
    assert "Traceback" not in capsys.readouterr().err
