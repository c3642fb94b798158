# SPDX-License-Identifier: Apache-2.0
"""`hlotag compare`: variants in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import known_variants
from hlotag.cli import main
from hlotag.comparisons import Comparison, Trend
from hlotag.reports.comparison_table import as_text

PROGRAMS = """
import os
import jax, jax.numpy as jnp
import hlotag

print("loading")

def make(times=1, width=64):
    def f(x):
        with hlotag.tagged({"layer": "0"}), jax.named_scope("mlp"):
            for _ in range(times):
                x = jnp.tanh(x @ x)
        return x.sum()
    return f, (jnp.ones((width, width)) * 0.01,)

def step():
    return make()

def twice():
    return make(2)

def crash():
    print("F1128 16:20:01.000000    7 planted.cc:1] Check failed: planted", file=__import__("sys").stderr, flush=True)
    os.abort()

def lowered():
    f, arguments = make()
    return jax.jit(f).lower(*arguments)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAMS)
    Path("rules.toml").write_text('[[rule]]\nscope = "mlp"\nattrs = {part = "mlp"}')
    return tmp_path


def compare_by_command(*arguments: str) -> tuple[int, Comparison]:
    status = main(["compare", *arguments, "--seconds", "0", "--no-effects", "--json", "c.json"])
    return status, Comparison.from_json(Path("c.json").read_text(), "c.json")


def test_a_crash_ends_one_variant(folder, capsys):
    programs = ["train.py:step", "twice=train.py:twice", "train.py:crash"]
    status, found = compare_by_command(*programs, "--fail-if", "flops>+5%", "--fail-if", "not-compiled", "--resume", "r.json")
    assert status == 1
    assert [each.name for each in found.outcomes] == ["twice", "train.py:crash"]
    assert found["train.py:crash"].error == "its process ended (signal 6): planted.cc:1] Check failed: planted"
    said = capsys.readouterr().err
    assert "--fail-if flops>+5% holds for twice" in said and "--fail-if not-compiled holds for train.py:crash" in said
    # What is done is not done again.
    Path("train.py").write_text(PROGRAMS.replace("def twice", "def gone"))
    assert compare_by_command(*programs, "--resume", "r.json")[1]["twice"] == found["twice"]


def test_rules_are_variants_of_a_program(folder, capsys):
    status, found = compare_by_command("train.py:step", "--rules", "none", "--rules", "rules.toml", "--fail-if", "results")
    assert (status, found.base.name, found["rules"].results) == (0, "none", "equal")
    assert main(["compare", "train.py:lowered", "--rules", "none", "--rules", "rules.toml", "--seconds", "0"]) == 0
    why = "train.py:lowered returns a lowered program, which rules cannot change"
    assert f"rules was not compiled: {why}" in capsys.readouterr().out


def test_a_missing_program_is_a_missing_file(folder):
    _, found = compare_by_command("train.py:step", "none.py:step")
    assert found["none.py:step"].error == "none.py: No such file or directory"


def test_programs_of_two_checkouts_share_no_modules(folder):
    for name, further in (("old", ""), ("new", "x = x @ x")):
        Path(name).mkdir()
        Path(name, "model_of_both.py").write_text(PROGRAMS.replace("return x.sum()", f"{further}\n        return x.sum()"))
        Path(name, "train.py").write_text("from model_of_both import step")
    _, found = compare_by_command("old/train.py:step", "new/train.py:step")
    assert "more flops" in found["new/train.py:step"].verdict


def test_json_of_audits_and_profiles_is_compared(folder, capsys):
    for name in ("step", "twice"):
        assert main(["audit", f"train.py:{name}", "--json", f"{name}.json", "--memory"]) == 0
    assert main(["compare", "step.json", "twice.json"]) == 0
    assert "1.06 Mflop +100.0%" in capsys.readouterr().out
    Path("t.json").write_text('{"schema": "hlotag.audit/9"}')
    assert main(["compare", "step.json", "t.json"]) == 2
    assert "the audit is incomplete" in capsys.readouterr().err


ERRORS = [
    (["train.py:step"], "needs two variants"),
    (["train.py:step", "train.py:step"], "two variants are named 'train.py:step'"),
    (["train.py:step", "module.mlir"], "module.mlir: expected a program such as train.py:step"),
    (["train.py:step", "--rules", "no.toml"], "--rules no.toml: there is no such file"),
    (["train.py:step", "--option", "xla=1"], "--option xla=1: expected NAME:FLAG=VALUE"),
    (["train.py:step", "train.py:twice", "--fail-if", "slow"], "--fail-if 'slow': expected slower"),
    (["train.py:step", "train.py:twice", "--seconds", "-1"], "seconds=-1.0: give the limit"),
    (["train.py:step", "train.py:twice", "--seconds", "nan"], "seconds=nan: give the limit"),
    (["train.py:step", "train.py:twice", "--visible", "0%"], "visible=0.0: give the growth"),
    (["train.py:no", "train.py:step"], "train.py:no, the first variant: train.py:no: the file has no 'no'"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_errors_name_what_to_do(arguments, message, folder, capsys):
    assert main(["compare", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


HARD = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
import hlotag

jax.config.update("jax_num_cpu_devices", 4)
X = jnp.ones((64, 64))

def donated():
    step = lambda state, x: (state["a"] + x @ x, state["n"] + 1)
    return jax.jit(step, donate_argnums=0), ({"a": X, "n": jnp.int32(0)}, X)

def kinds(seed=0):
    def f(key, x):
        large = jax.random.normal(key, (2048, 2048))
        return jax.random.split(key), x.astype(jnp.bfloat16), x.astype(jnp.float8_e4m3fn), x > 0, x + 1j, large
    return f, (jax.random.key(seed), X)

def other_kinds():
    return kinds(1)

def sharded(spec=P("d")):
    sharding = NamedSharding(jax.make_mesh((4,), ("d",), (jax.sharding.AxisType.Auto,)), spec)
    return lambda x, w: jnp.tanh(x @ w), [jax.device_put(X, sharding)] * 2

def whole():
    return sharded(P())

def warns():
    return lambda x: jnp.tanh(hlotag.tag(x, {"part": "argument"})), (X,)

def without_arguments():
    assert len(sys.argv) == 1
    print("this is no answer")
    jax.debug.print("loading")
    def f(x):
        jax.debug.print("running {}", x[0, 0])
        return x
    return f, (X,)
"""
# By name, two programs of HARD and whether their results are equal.
HARD_CASES = {
    "donated arguments": ("donated", "donated", True),
    "keys, small floats, complex and large results": ("kinds", "other_kinds", False),
    "no arguments, and prints": ("without_arguments", "without_arguments", True),
    "sharded on four devices": ("whole", "sharded", True),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", HARD_CASES)
def test_hard_programs_are_compared(case, folder):
    Path("hard.py").write_text(HARD)
    first, second, is_equal = HARD_CASES[case]
    status, found = compare_by_command(f"a=hard.py:{first}", f"b=hard.py:{second}")
    outcome = found["b"]
    assert status == 0 and not outcome.error and found.rounds >= 1
    assert outcome.results == "equal" if is_equal else "(2 of 6 results)" in outcome.results
    exchanged = outcome.program.amount("exchanged")
    assert exchanged and (exchanged.now > 0) == (case == "sharded on four devices")


@pytest.mark.slow
def test_a_warning_of_several_variants_is_shown_once(folder, capsys):
    Path("hard.py").write_text(HARD)
    compare_by_command("a=hard.py:warns", "b=hard.py:warns")
    err = capsys.readouterr().err
    assert err.count("TagDroppedWarning: tag part='argument'") == 1 and f"{folder / 'hard.py'}:" in err


@pytest.mark.slow
def test_rules_name_their_file_and_line(folder, capsys):
    """Two files of one name: a rule that matches nothing, and one that is wrong."""
    for name, rule in (("a", 'scope = "mpl"'), ("b", 'scop = "mlp"')):
        Path(name).mkdir()
        Path(name, "rules.toml").write_text(f'[[rule]]\n{rule}\nattrs = {{part = "mlp"}}')
    _, found = compare_by_command("train.py:step", *("--rules", "none", "--rules", "a/rules.toml", "--rules", "b/rules.toml"))
    assert f"{folder / 'b' / 'rules.toml'}:2: rule 1: unknown field 'scop'" in found["b/rules.toml"].error
    assert found["a/rules.toml"].verdict.endswith("1 problem")
    (problem,) = found["a/rules.toml"].problems
    assert problem.startswith(f"unmatched rule: rule 1 ({folder / 'a' / 'rules.toml'}:1) matched nothing")
    assert capsys.readouterr().err.count("TagIgnoredWarning: hlotag: rule 1") == 1


def _run_until_interrupted(folder: Path) -> subprocess.Popen[bytes]:
    """Interrupts a comparison as a terminal does, when it has saved four variants. The process of the fifth one starts."""
    command = ["compare", *(f"{name}=train.py:step" for name in "abcdef"), "--seconds", "3", "--no-effects", "--resume", "r.json"]
    # In the background of a shell, processes ignore the signal.
    heeding = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    run = [sys.executable, "-c", heeding, sys.executable, "-m", "hlotag", *command]
    process = subprocess.Popen(run, cwd=folder, start_new_session=True)
    end = time.monotonic() + 120
    while not Path("r.json").exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    return process


@pytest.mark.slow
def test_an_interrupt_leaves_what_is_done_and_no_process(folder):
    process = _run_until_interrupted(folder)
    assert process.wait(30) == 130
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    done = Comparison.from_json(Path("r.json").read_text(), "r.json")
    assert [each.name for each in done.outcomes] == ["b", "c", "d", "e"]
    _, found = compare_by_command(*(f"{name}=train.py:step" for name in "abcdef"), "--resume", "r.json")
    assert [each.name for each in found.outcomes] == ["b", "c", "d", "e", "f"] and found["f"].results == "equal"


KNOWN = Path(__file__).with_name("known_variants.py")
VARIANTS = ("step", "ruled", "crash", "broken", "reordered", "longer", "shorter", "remat", "bfloat16", "chunked")
# By variant, the growth of what is counted, by the number of products and the size of values.
GROWTHS = {
    "ruled": {"flops": 0, "bytes": 0, "memory": 0},
    "reordered": {"flops": 0},
    "longer": {"flops": 0.2},
    "shorter": {"flops": -0.5},
    "remat": {"flops": 0.5},
    "bfloat16": {"bytes": -0.5, "memory": -0.5},
    "chunked": {"flops": 0},
}
if jax.__version_info__ < (0, 11):  # XLA for CPU computed nothing again, and products of bfloat16 in float32.
    GROWTHS |= {"remat": {"flops": 0}, "bfloat16": {}}
# By variant, what cannot be said of its time.
NOT_SAID = {"ruled": (Trend.MORE, Trend.LESS), "longer": (Trend.LESS, Trend.SAME), "shorter": (Trend.MORE, Trend.SAME)}


def _results_and_memory(name: str) -> tuple[np.ndarray, int]:
    """The results of a program of `known_variants`, and the memory that XLA plans for it, without hlotag's commands."""
    function, arguments = getattr(known_variants, name)()
    compiled = jax.jit(function).lower(*arguments).compile()
    planned = compiled.memory_analysis()
    size = planned.argument_size_in_bytes + planned.output_size_in_bytes + planned.temp_size_in_bytes
    return np.asarray(compiled(*arguments)), size


@pytest.mark.slow
def test_known_answers_of_a_command(folder, capsys):
    """A rule that does nothing, what XLA refuses, a crash, other numerics, more and less work and memory."""
    programs = [f"{name}={KNOWN}:{name}" for name in VARIANTS]
    command = ["compare", *programs, "--option", "refused:xla_no_such=1", "--seconds", "5", "--json", "c.json"]
    assert main(command) == 0
    found = Comparison.from_json(Path("c.json").read_text(), "c.json")
    assert capsys.readouterr().out.startswith(found.sentence)
    assert found["refused"].error.startswith("INVALID_ARGUMENT: No such compile option")
    assert "Unknown flag in XLA_FLAGS: --xla_no_such_flag=1" in found["crash"].error
    assert found["broken"].error.startswith("TypeError: dot_general requires contracting dimensions")
    assert found.sentence.endswith("crash, broken, refused: not compiled.")
    for name, growths in GROWTHS.items():
        for measure, growth in growths.items():
            amount = found[name].program.amount(measure)
            assert amount and amount.growth == pytest.approx(growth, abs=0.01), f"{name}: {measure} {amount}"
        time = found[name].program.amount("time")
        assert time and time.trend not in NOT_SAID.get(name, ()), f"{name}: {time}"
    assert [found[name].results for name in ("ruled", "remat", "chunked")] == ["equal"] * 3
    assert found["bfloat16"].results.startswith("other types: the result was float32[2048, 128] and is bfloat16")
    (before, planned), (now, _), (_, halved) = map(_results_and_memory, ("step", "reordered", "chunked"))
    distance = np.abs(now.astype(float) - before).max() / np.abs(before).max()
    assert found["reordered"].results == f"differ by {distance:.2g} of the largest"
    memory = found["chunked"].program.amount("memory")
    assert memory and memory.growth == pytest.approx(halved / planned - 1, abs=0.05)
    lines = as_text(found, 80).splitlines()
    assert max(map(len, lines)) <= 80 and not [line for line in lines if line.startswith(VARIANTS) and "…" in line]
