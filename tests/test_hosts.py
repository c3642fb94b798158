# SPDX-License-Identifier: Apache-2.0
"""jaxlib's own functions and those that go through its Python bindings: the same passes give the same modules and messages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag.host.modules import to_bytecode, try_parse
from hlotag.lowering.staging import without_passes
from hlotag.passes.pipeline import DEFAULT_PIPELINE
from programs import PROGRAMS, TRANSFORMS

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
LIT = HERE.parent / "lit_tests"
RULES = r"""hlotag-attach{rules="[{op = \"mul*\", attrs = {a = \"1\"}, grad = {a = \"2\"}}]"}"""
MIXED = [
    "canonicalize,hlotag-resolve,cse,hlotag-verify",
    "hlotag-resolve,no-such-pass",
    DEFAULT_PIPELINE,
    DEFAULT_PIPELINE.replace("hlotag-attach", RULES),
]


def pipelines() -> list[str]:
    return [info.name for info in hlotag.list_passes() if info.name.startswith("hlotag-")] + MIXED


def outcomes(folder: Path, host: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(HERE / "host_outputs.py"), str(folder)],
        env={**os.environ, "HLOTAG_HOST": host},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["bindings"] == (host == "bindings")
    return answer["outcomes"]


def compare(folder: Path) -> dict[str, dict[str, Any]]:
    """Runs all pipelines on all modules with both hosts; what they agreed on."""
    (folder / "pipelines").write_text("\n".join(pipelines()))
    symbols, bindings = outcomes(folder, "symbols"), outcomes(folder, "bindings")
    assert symbols.keys() == bindings.keys()
    differing = {name: (symbols[name], bindings[name]) for name in symbols if symbols[name] != bindings[name]}
    assert not differing, f"{len(differing)} of {len(symbols)}, such as {next(iter(differing.items()))}"
    return symbols


def test_modules_of_the_lit_tests(tmp_path: Path) -> None:
    for file in sorted(LIT.glob("**/*.mlir")):
        for number, part in enumerate(re.split(r"(?m)^// -----.*$", file.read_text())):
            with hlotag.host.modules.new_context(allow_unregistered_dialects=True):
                parses = try_parse(part)[0] is not None
            if parses:
                (tmp_path / f"{file.stem}-{number}.mlir").write_text(part)
    agreed = list(compare(tmp_path).values())
    assert len(agreed) > 1000
    # Not all alike: changed, failing with a message, and refused.
    assert sum(outcome.get("changes", 0) > 0 for outcome in agreed) > 100
    assert sum(not outcome.get("ok", True) for outcome in agreed) > 20
    assert sum("refused" in outcome for outcome in agreed) > 20


@pytest.mark.parametrize("transform", ["none", "grad", "vmap_grad"])
def test_lowered_programs(tmp_path: Path, transform: str) -> None:
    wrap = hlotag.tagged({"block": "1"})
    for name, (function, arguments) in PROGRAMS.items():
        # The block is around the trace; no pass yet, so that the marks are still there.
        with without_passes():
            lowered = jax.jit(TRANSFORMS[transform](wrap(function))).lower(*arguments)
            (tmp_path / f"{name}.bc").write_bytes(to_bytecode(lowered.compiler_ir()))
    agreed = compare(tmp_path)
    assert all(agreed[f"{name}.bc {DEFAULT_PIPELINE}"]["changes"] for name in PROGRAMS)


def test_constants_that_jaxlib_has_no_class_for(tmp_path: Path) -> None:
    with without_passes():
        lowered = jax.jit(jax.grad(lambda x: jnp.abs((x + 2j) * jnp.tanh(x * 3j + 2j)).sum())).lower(jnp.ones(3))
        (tmp_path / "complex.bc").write_bytes(to_bytecode(lowered.compiler_ir()))
    assert "complex<f32>" in lowered.as_text()
    compare(tmp_path)


def test_text_that_python_cannot_read_is_an_error_and_no_crash(tmp_path: Path) -> None:
    names = {
        "op": '"x.\\FF"() : () -> ()',
        "attribute": '"x.y"() {"x.\\FF" = 1 : i32} : () -> ()',
        "location": '"x.y"() : () -> () loc("a\\FFb"("f.py":1:1))',
        "file": '"x.y"() : () -> () loc("f\\FF.py":1:1)',
        "symbol": '"x.y"() {a = @"f\\FF"} : () -> ()',
        "value": '"x.y"() {mhlo.frontend_attributes = {k = "\\FF", u = "\\C3\\A9\\\\FF"}} : () -> () loc("\\C3\\A9")',
    }
    for name, text in names.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    (tmp_path / "pipelines").write_text("hlotag-strip")
    symbols, bindings = outcomes(tmp_path, "symbols"), outcomes(tmp_path, "bindings")
    for name in names:
        case = f"{name}.mlir hlotag-strip"
        if name == "value":  # values are bytes
            assert bindings[case] == symbols[case]
            continue
        assert not bindings[case]["ok"]
        assert "text that is not UTF-8" in bindings[case]["diagnostics"][0]
        assert symbols[case]["ok"]


AUDIT = """
import sys
import jax
import hlotag
from hlotag import _core
from programs import PROGRAMS
for name in ("mlp", "scan_of_remat"):
    function, arguments = PROGRAMS[name]
    with hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="*")]):
        print(hlotag.audit(jax.jit(jax.grad(function)), *arguments).to_json())
print(_core.uses_bindings())
"""


def test_audits(run_python: Any) -> None:
    here = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    both = [run_python(AUDIT, HLOTAG_HOST=host, PYTHONPATH=here) for host in ("symbols", "bindings")]
    (symbols, first), (bindings, second) = (done.stdout.rsplit("\n", 2)[:2] for done in both)
    assert (first, second) == ("False", "True"), both[1].stderr
    assert symbols == bindings and len(json.loads(symbols.splitlines()[0])["tags"]) > 10
