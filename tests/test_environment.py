# SPDX-License-Identifier: Apache-2.0
"""Turning hlotag on by environment variables, and dumps of the modules it sees."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
import jax_plugins.hlotag
from hlotag._compat import runtime
from hlotag.lowering import environment
from hlotag.mlir.modules import new_context, parse_module

pytestmark = pytest.mark.usefixtures("off_afterwards")
X = np.linspace(-1, 1, 4, dtype=np.float32)
TAGGED = 'mhlo.frontend_attributes = {k = "v"}'

# A program that does not know hlotag. It prints how many operations have the tag, JAX's platforms, and what was imported.
PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

{before}
f = jax.jit(jax.value_and_grad(lambda x: set_xla_metadata(jnp.sin(jnp.sin(x)), k="v").sum()))
for _ in range(2):
    print("tags", f.lower(np.ones(4, np.float32)).as_text().count('k = "v"'))
print("rule", f.lower(np.ones(4, np.float32)).as_text().count('r = "s"'))
f(np.ones(4, np.float32))
from jax.extend import backend
print("platforms", *sorted(backend.backends()))
print("imported", "jax_plugins.hlotag" in sys.modules, "hlotag" in sys.modules, "hlotag._core" in sys.modules)
"""


def said(finished):
    lines = [line.split(maxsplit=1) for line in finished.stdout.splitlines()]
    return {key: [text for k, text in lines if k == key] for key, _ in lines}


def test_turning_the_stage_on_imports_little(run_python):
    code = "import jax, sys; known = set(sys.modules); import hlotag; hlotag.enable(); print(*set(sys.modules) - known)"
    names = run_python(code).stdout.split()
    imported = {name.split(".")[0] for name in names} | set(names)
    assert "hlotag" in imported
    assert imported & {"google", "rich", "tomllib", "matplotlib", "jax.extend", "hlotag.audits", "hlotag.xla"} == set()


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "rules.toml"
    path.write_text('[[rule]]\nop = "sine"\nattrs = { r = "s" }\n')
    return str(path)


def test_a_program_is_tagged_without_a_change_to_it(run_python, rules, tmp_path):
    variables = {"HLOTAG_ENABLE": "1", "HLOTAG_RULES": rules, "HLOTAG_DUMP_TO": str(tmp_path / "dumps")}
    finished = run_python(PROGRAM.format(before="jax.devices()"), **variables)
    seen = said(finished)
    assert [int(n) > 2 for n in seen["tags"]] == [True, True] and int(seen["rule"][0]) > 0
    assert seen["platforms"] == ["cpu"], "no backend of hlotag's"
    assert "TagDroppedWarning" not in finished.stderr and "hlotag" not in finished.stderr
    assert any("hlotag-resolve" in path.name for path in (tmp_path / "dumps").iterdir())


def test_without_the_variables_nothing_is_imported(run_python):
    seen = said(run_python(PROGRAM.format(before="jax.devices()")))
    assert seen["tags"] == ["1", "1"], "what JAX alone does"
    assert seen["imported"] == ["True False False"], "JAX found the module, and it imported nothing"


def test_a_program_traced_before_the_stage_warns(run_python):
    finished = run_python(PROGRAM.format(before=""), HLOTAG_ENABLE="1")
    first, second = map(int, said(finished)["tags"])
    assert first == 1 and second > 2
    assert finished.stderr.count("TagDroppedWarning: hlotag: jit") == 1 and "jax.devices()" in finished.stderr


@pytest.mark.parametrize(
    ("variables", "hlo", "op_names"),
    [
        *[({}, ("*",), ()), ({"HLOTAG_HLO": "1"}, ("*",), ()), ({"HLOTAG_HLO": "Off"}, (), ())],
        ({"HLOTAG_HLO": "layer, _scheduling_*"}, ("_scheduling_*", "layer"), ()),
        ({"HLOTAG_HLO": "0", "HLOTAG_OP_NAMES": "layer,block"}, (), ("block", "layer")),
    ],
)
def test_the_stage_inside_xla(variables, hlo, op_names):
    environment.start({"HLOTAG_ENABLE": "1", **variables})
    stage = hlotag.active()
    assert stage is not None and (stage.hlo, stage.op_names) == (hlo, op_names)


# The variable, its value, whether it is set beside HLOTAG_ENABLE=1, and the warning.
NO_FILE = "hlotag-attach{rules-file=/nowhere/rules.toml}"
BAD = [
    ("HLOTAG_ENABLE", "maybe", False, "expected one of 1, true, yes, on, 0, .* got 'maybe'"),
    ("HLOTAG_PIPELINE", "hlotag-resolv", True, "hlotag-resolve"),
    ("HLOTAG_PIPELINE", NO_FILE, True, "No such file.*/nowhere/rules.toml'; hlotag stays off"),
    ("HLOTAG_RULES", "/nowhere/rules.toml", True, "No such file"),
    ("HLOTAG_ON_ERROR", "ignore", True, "on_error must be 'raise' or 'warn', got 'ignore'"),
    ("HLOTAG_OP_NAMES", "layer", False, "no effect without HLOTAG_ENABLE=1"),
    ("HLOTAG_ENABLED", "1", False, "no such variable.*did you mean HLOTAG_ENABLE"),
    ("HLOTAG_OPNAMES", "layer", False, "did you mean HLOTAG_OP_NAMES"),
    ("HLOTAG_DUMP_TO", __file__, False, "File exists.*nothing is dumped"),
]


@pytest.mark.parametrize(("name", "value", "is_enabled", "message"), BAD)
def test_a_bad_value_is_a_warning(name, value, is_enabled, message):
    with pytest.warns(RuntimeWarning) as caught:
        environment.start({name: value} | ({"HLOTAG_ENABLE": "1"} if is_enabled else {}))
    (warning,) = caught
    named = "HLOTAG_ENABLE" if is_enabled else name
    assert str(warning.message).startswith(f"{named}: ") and re.search(message, str(warning.message))
    assert hlotag.active() is None


def test_a_variable_alone_is_noticed_when_jax_starts(monkeypatch):
    monkeypatch.setenv("HLOTAG_HLO", "1")
    with pytest.warns(RuntimeWarning, match="HLOTAG_HLO: it has no effect without HLOTAG_ENABLE=1"):
        jax_plugins.hlotag.initialize()


def test_jax_goes_on_with_an_unusable_jaxlib(run_python):
    code = """
from hlotag.mlir import library
library._LIBRARY = "libnone.so"
import jax
print(jax.devices())
import jax.numpy as jnp, hlotag
print(jax.jit(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"})).lower(1.0).as_text())
"""
    finished = run_python(code, HLOTAG_ENABLE="1", HLOTAG_PIPELINE="hlotag-resolve")
    warned = "RuntimeWarning: HLOTAG_ENABLE: hlotag cannot work with this jaxlib"
    assert all(text in finished.stderr for text in (warned, "install jaxlib from PyPI", "hlotag stays off"))
    assert finished.stderr.count("RuntimeWarning") == 1 and 'k = "v"' in finished.stdout


def test_off_is_off():
    for name, value in [("ENABLE", "0"), ("ENABLE", "off"), ("REPRODUCER_DIR", "/x"), ("REQUIRED", "x")]:
        with warnings.catch_warnings(action="error"):
            environment.start({f"HLOTAG_{name}": value})
        assert hlotag.active() is None


def test_the_variables_are_the_arguments_of_enable(rules, tmp_path):
    pipeline = "hlotag-resolve,hlotag-strip,hlotag-strip{keys=nothing}"
    environment.start({"HLOTAG_ENABLE": "yes", "HLOTAG_PIPELINE": pipeline, "HLOTAG_RULES": rules, "HLOTAG_ON_ERROR": "warn"})
    on = hlotag.active()
    assert on is not None and on.on_error == "warn" and on.rules.rules[0].op == "sine" and pipeline in on.pipeline


# --- Dumps -------------------------------------------------------------------------------------------------------------------


def program():
    @hlotag.tagged({"k": "v"})
    def step(x):
        return (jnp.sin(x) * jnp.sin(x)).sum()

    return jax.jit(jax.grad(step))


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_dumps_are_made_before_and_after_each_change(tmp_path):
    f = program()
    pipeline = "hlotag-resolve,hlotag-strip{keys=absent},hlotag-attach,cse,hlotag-finalize"
    with hlotag.stage(pipeline), hlotag.dump_to(tmp_path / "made"):
        result = f.lower(X).as_text(debug_info=True)
    found = names(tmp_path / "made")
    steps = ("00_before", "01_hlotag-resolve", "04_cse")
    assert found == [f"{found[0].partition('_jit')[0]}_jit_step_{step}.mlir" for step in steps]
    before, resolved, last = ((tmp_path / "made" / name).read_text() for name in found)
    assert "hlotag#0" in before and TAGGED not in before
    assert "hlotag#0" not in resolved and TAGGED in resolved

    def local(text):  # Aliases of locations are numbered anew in a module that was copied.
        with new_context():
            return parse_module(text).operation.get_asm(enable_debug_info=True, use_local_scope=True)

    assert local(last) == local(result)


def test_dumps_end_with_their_block(tmp_path):
    def lowered():
        return re.sub(r"loc\(.*", "", program().lower(X).as_text())

    with hlotag.stage():
        with hlotag.dump_to(tmp_path / "a"):
            with hlotag.dump_to(tmp_path / "b"):
                dumped = lowered()
            assert not (tmp_path / "a").exists() and names(tmp_path / "b")
            lowered()
        count = len(names(tmp_path / "a"))
        assert lowered() == dumped and TAGGED in dumped and len(names(tmp_path / "a")) == count
        hlotag.dump_to(tmp_path / "c")
        lowered()
        assert names(tmp_path / "c")


def test_dumps_of_a_pipeline_that_fails_show_how_far_it_came(tmp_path):
    with hlotag.stage("cse,hlotag-finalize"), hlotag.dump_to(tmp_path), pytest.raises(hlotag.errors.PassError):
        program().lower(X)
    assert [name.split("_step_")[1] for name in names(tmp_path)] == ["00_before.mlir", "01_cse.mlir"]
    with hlotag.stage("cse,hlotag-finalize", on_error="warn"), hlotag.dump_to(tmp_path), pytest.warns(hlotag.PassFailedWarning):
        assert TAGGED in program().lower(X).as_text()


def test_dumps_are_numbered_and_name_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(runtime.distributed.global_state, "num_processes", 4)
    monkeypatch.setattr(runtime.distributed.global_state, "process_id", 3)
    with hlotag.stage(), hlotag.dump_to(tmp_path):
        program().lower(X)
        program().lower(X)
    assert all(name.endswith("_process3.mlir") for name in names(tmp_path))
    assert len({re.match(r"hlotag\d{4}_", name)[0] for name in names(tmp_path)}) == 2


def test_the_kill_switch_wins_over_code_and_says_so_once(run_python, rules):
    before = """
import hlotag
hlotag.enable(rules=[hlotag.Rule({"r": "s"}, op="*")])
with hlotag.stage() as stage:
    assert hlotag.active() is stage is None
"""
    finished = run_python(PROGRAM.format(before=before), HLOTAG_DISABLE="1", HLOTAG_ENABLE="1", HLOTAG_RULES=rules)
    seen = said(finished)
    assert seen["tags"] == ["1", "1"] and seen["rule"] == ["0"], "what JAX alone does"
    assert finished.stderr.count("HLOTAG_DISABLE=1 keeps hlotag off") == 1 and "Warning" not in finished.stderr


@pytest.mark.parametrize(("value", "is_off"), [("0", False), (" No", False), ("", False), ("TRUE", True), ("ture", True)])
def test_a_misspelt_value_of_the_kill_switch_counts(value, is_off, monkeypatch):
    monkeypatch.setenv("HLOTAG_DISABLE", value)
    with hlotag.stage() as stage:
        assert (stage is None) == is_off
