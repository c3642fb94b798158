# SPDX-License-Identifier: Apache-2.0
"""Comparisons of variants: of programs whose answer is known, of times that are given, and of what was made before."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
import known_variants
from hlotag import ArgumentError, HlotagError, Rule
from hlotag.cli import main
from hlotag.comparisons import Comparison, Trend, Variant, grid
from hlotag.comparisons.results import compare_results, write_results
from hlotag.comparisons.table import as_text
from hlotag.comparisons.timing import compare_pairs
from hlotag.profiles import Row, Timing

X = np.full((64, 64), 0.01, np.float32)


def layers(x, repeats=(1, 1)):
    for number, repeat in enumerate(repeats):
        with hlotag.tagged({"layer": number}), jax.named_scope(f"layer_{number}"):
            for _ in range(repeat):
                x = jnp.tanh(x @ x)
    return x


# --- Times that are given ---------------------------------------------------------------------------------------------------


def pairs(growth: float, noise: float, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times of two programs in turns. A busy machine slows both alike."""
    random = np.random.default_rng(seed)
    busy = np.exp(random.exponential(0.5, count))
    return busy * np.exp(random.normal(0, noise, count)), (1 + growth) * busy * np.exp(random.normal(0, noise, count))


def test_equal_programs_are_not_called_slower_or_faster():
    trends = [compare_pairs(*pairs(0.0, 0.2, 60, seed), 0.2).trend for seed in range(1000)]
    assert sum(trend in (Trend.MORE, Trend.LESS) for trend in trends) <= 5  # 1 is expected


def test_pairs_that_are_alike_for_long_are_not_taken_for_many():
    def drifting(seed: int) -> Trend:
        random = np.random.default_rng(seed)
        drift = np.repeat(random.normal(0, 0.3, 6), 10)  # The same for ten pairs.
        return compare_pairs(np.ones(60), np.exp(drift + random.normal(0, 0.03, 60)), 0.2).trend

    assert sum(drifting(seed) in (Trend.MORE, Trend.LESS) for seed in range(300)) <= 9


def test_a_growth_is_noticed_or_undecided():
    found = [compare_pairs(*pairs(0.2, noise, 60, seed), 0.2) for seed in range(200) for noise in (0.1, 0.3)]
    assert not any(each.trend == Trend.LESS for each in found)
    assert sum(each.trend == Trend.SAME for each in found) <= 0.1 * len(found)
    assert all(each.trend == Trend.UNDECIDED or each.visible <= 0.2 or each.trend == Trend.MORE for each in found)


@pytest.mark.parametrize("growth", [0.1, 0.2, -0.3])
def test_the_visible_growth_is_noticed_in_nine_of_ten(growth):
    """With as many pairs as make it visible, and no more."""
    visible = abs(math.expm1(abs(math.log1p(growth))))
    found = [compare_pairs(*pairs(growth, 0.1, 80, seed), visible) for seed in range(200)]
    close = [each for each in found if each.visible <= visible]
    assert close and sum(each.trend in (Trend.MORE, Trend.LESS) for each in close) >= 0.9 * len(close)


def test_few_pairs_decide_nothing_and_an_absent_row_is_new():
    assert compare_pairs([1.0] * 10, [2.0] * 10, 0.2).trend == Trend.UNDECIDED
    assert compare_pairs([1.0] * 11, [2.0] * 11, 0.2).trend == Trend.MORE
    new = compare_pairs([0.0] * 5, [2.0] * 5, 0.2)
    assert (new.trend, new.change, str(new)) == (Trend.MORE, "new", "0 -> 2 s (new)")


# --- Profiles and audits that were made before --------------------------------------------------------------------------------


def timing(scale: float = 1.0, noise: float = 0.0, count: int = 10, **rows: float) -> Timing:
    """A profile whose rows have these seconds in each step, with a noise of its own in each row."""
    factors = {value: [scale * (1 + noise * ((7 * n + 3 * k) % 5 - 2)) for n in range(count)] for k, value in enumerate(rows)}
    steps = {value: tuple(seconds * factor for factor in factors[value]) for value, seconds in rows.items()}
    made = [Row("layer", value, "forward", sum(each) / count, 0.5, 1, steps=each) for value, each in steps.items()]
    return Timing("jit_f", ("CPU:0",), tuple(map(sum, zip(*steps.values(), strict=True))), tuple(made))


LAYERS = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}
# By name: how the layers, the whole machine and the noise of steps changed, and the values of the rows that differ.
CHANGES = {
    "a layer that takes half as long again": ({"b": 1.5}, 1.0, 0.03, {"b": Trend.MORE}),
    "a layer that has most of the step": ({"b": 24.0}, 1.0, 0.03, {"b": Trend.MORE, "program": Trend.MORE}),
    "the more noise, the more it takes": ({"b": 1.5}, 1.0, 0.2, {}),
    "a busy machine slows all layers alike": ({}, 2.0, 0.05, {}),
    "on a busy machine, one layer by more than the others": ({"b": 2.0}, 2.0, 0.02, {"b": Trend.MORE, "program": Trend.MORE}),
    "a layer that is gone, and one that is new": ({"d": 0.0, "e": 1.0}, 1.0, 0.02, {"d": Trend.LESS, "e": Trend.MORE}),
    "less than a hundredth of a row": ({"e": 0.005}, 1.0, 0.0, {}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_profiles_of_two_times_differ_by_more_than_chance(case):
    changed, scale, noise, expected = CHANGES[case]
    saved = {"before": timing(1.0, noise, **LAYERS), "now": timing(scale, noise, **LAYERS | changed)}
    (outcome,) = hlotag.compare(saved).outcomes
    rows = {row.value or "program": row.amounts[0].trend for row in (outcome.program, *outcome.rows)}
    assert {value: trend for value, trend in rows.items() if trend in (Trend.MORE, Trend.LESS)} == expected


def test_more_steps_make_a_comparison_of_two_times_surer():
    margins = []
    for count in (4, 8, 32, 128):
        saved = {"before": timing(1.0, 0.1, count, **LAYERS), "now": timing(1.0, 0.1, count, **LAYERS | {"b": 99.0})}
        margins.append(hlotag.compare(saved)["now"].differing()[0].amounts[0].margin)
    assert margins == sorted(margins, reverse=True) and margins[0] > 1.5 * margins[-1]


def test_what_was_written_is_read_back_with_its_methods(tmp_path):
    audit, profile = hlotag.audit(layers, X, memory=True, effects=False), hlotag.profiles.Profile(**vars(timing(**LAYERS)))
    for name, each in (("a.json", audit), ("p.json", profile)):
        (tmp_path / name).write_text(each.to_json())
    again, timed = hlotag.read_audit(tmp_path / "a.json"), hlotag.read_profile(tmp_path / "p.json")
    assert (again.to_json(), str(timed)) == (audit.to_json(), str(profile))
    (outcome,) = hlotag.compare({"before": audit, "now": again}).outcomes
    assert outcome.verdict == "the same"
    with pytest.raises(ArgumentError, match="read without further arguments"):
        hlotag.read_profile(tmp_path / "p.json", by="layer")


def test_an_audit_and_a_profile_are_not_compared():
    audit = hlotag.audit(lambda x: x, X)
    with pytest.raises(ArgumentError, match="'a' is an audit and 'b' is a profile"):
        hlotag.compare({"a": audit, "b": timing(**LAYERS)})
    with pytest.raises(ArgumentError, match="variant 'b' would run, and 'a' has run"):
        hlotag.compare({"a": audit, "b": None}, layers, X)


# --- Results ----------------------------------------------------------------------------------------------------------------

RESULTS = {
    "equal, bfloat16 and keys too": (lambda x: (x.astype(jnp.bfloat16), jax.random.key(1)), lambda x: x, "equal"),
    "one element of a matrix": (lambda x: {"a": x, "b": x}, lambda t: t | {"b": t["b"].at[0, 0].add(0.01)}, "differ by 1 of the"),
    "NaN in the same place": (lambda x: x.at[0].set(jnp.nan), lambda x: x, "equal"),
    "other NaN": (lambda x: x, lambda x: x.at[0].set(jnp.nan), "differ by inf"),
    "a quarter of the integers": (lambda x: jnp.arange(8), lambda x: x.at[:2].add(1), "differ by 0.25"),
    "another type": (
        lambda x: x,
        lambda x: x.astype(jnp.bfloat16),
        "other types: the result was float32[64, 64] and is bfloat16",
    ),
    "another structure": (lambda x: (x,), lambda x: x[0], "other results: "),
}


@pytest.mark.parametrize("case", RESULTS)
def test_results_differ_by_a_part_of_the_largest(case, tmp_path):
    make, change, expected = RESULTS[case]
    results = make(jnp.asarray(X))
    write_results(results, tmp_path / "r.npz")
    assert compare_results(change(results), tmp_path / "r.npz").startswith(expected)


# --- Variants in this process --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared() -> Comparison:
    """Variants whose answer is known: one that tags only, one that does twice as much, and two that are not compiled."""

    def broken(x):
        raise ValueError("planted")

    variants = {
        "none": None,
        "tagged": Rule({"part": "mlp"}, scope="layer_1"),
        "twice": lambda x: layers(x, (1, 2)),
        "no such option": Variant(options={"xla_no_such_option": True}),
        "broken": broken,
    }
    return hlotag.compare(variants, layers, X, by="layer", seconds=0, effects=False)


def test_tags_change_neither_results_nor_work(compared):
    tagged = compared["tagged"]
    assert tagged.results == "equal" and not tagged.error
    assert {each.measure: each.trend for each in tagged.program.amounts if each.measure != "time"} == dict.fromkeys(
        ("flops", "bytes", "exchanged", "memory"), Trend.SAME
    )


def test_the_row_that_does_more_is_named(compared):
    twice = compared["twice"]
    (row,) = [
        row for row in twice.differing() if any(each.measure == "flops" for each in row.amounts if each.trend == Trend.MORE)
    ]
    flops = row.amount("flops")
    assert row.name == "layer=1, forward" and flops and (flops.before, flops.now) == (2 * 64**3 + 64**2, 2 * (2 * 64**3 + 64**2))
    assert "more flops" in twice.verdict and twice.results.startswith("differ by")


def test_a_variant_that_fails_ends_no_other(compared):
    assert "No such compile option" in compared["no such option"].error
    assert compared["broken"].error == "ValueError: planted"
    assert compared["broken"].verdict == "not compiled"


def test_a_comparison_is_read_back_and_shown(compared, tmp_path):
    again = Comparison.read(compared.to_json(), "c.json")
    assert again == compared and str(again) == str(compared)
    text = str(compared)
    assert "Against none: tagged: " in text and "broken was not compiled: ValueError: planted" in text
    compared.to_html(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "<h2>Memory at the peak</h2>" in page and "layer=1, forward" in page and "<script" not in page
    with pytest.raises(hlotag.ParseError, match="incomplete"):
        Comparison.read(json.dumps(json.loads(compared.to_json()) | {"variants": [{}]}), "c.json")


def test_shapes_are_compiled_and_do_not_run():
    found = hlotag.compare({"a": None, "b": lambda x: layers(x, (2, 1))}, layers, jax.ShapeDtypeStruct((8, 8), jnp.float32))
    assert found.rounds == 0 and "nothing ran" in found.notes[0]
    assert found["b"].program.amount("time") is None and "more flops" in found["b"].verdict


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ({"a": None}, "needs two variants"),
        ({"a": None, "b": 3}, "variant 'b': expected None, rules"),
        ({"a": None, "b": None}, "function"),
    ],
)
def test_wrong_variants_are_errors(variants, message):
    with pytest.raises(ArgumentError, match=message):
        hlotag.compare(variants)


def test_the_first_variant_must_compile():
    with pytest.raises(HlotagError, match="a, the first variant: INVALID_ARGUMENT: No such compile option"):
        hlotag.compare({"a": Variant(options={"xla_no": 1}), "b": None}, layers, X)


def test_a_grid_has_a_variant_for_each_choice():
    found = grid([{"scope": ["a", "b"], "attrs": {"k": ["none", 1], "l": "x"}}, {"op": "dot", "attrs": {"m": ["none", "2"]}}])
    assert len(found) == 8 and next(iter(found)) == "k=none, scope=a, m=none"
    assert [rule.attrs for rule in found["k=1, scope=b, m=2"].read_rules()] == [{"k": 1, "l": "x"}, {"m": "2"}]
    assert [rule.attrs for rule in found["k=none, scope=a, m=none"].read_rules()] == [{"l": "x"}]
    with pytest.raises(ArgumentError, match="no list"):
        grid({"op": "dot", "attrs": {"k": "v"}})
    with pytest.raises(ArgumentError, match="has 100 variants"):
        grid({"op": "dot", "attrs": {"k": list(range(100))}})


# --- The command ------------------------------------------------------------------------------------------------------------

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
    return status, Comparison.read(Path("c.json").read_text(), "c.json")


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
    assert (
        "rules was not compiled: train.py:lowered returns a lowered program, which rules cannot change" in capsys.readouterr().out
    )


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
    Path("t.json").write_text('{"schema": "hlotag.audit/8"}')
    assert main(["compare", "step.json", "t.json"]) == 2
    assert "the audit is incomplete" in capsys.readouterr().err


ERRORS = [
    (["train.py:step"], "needs two variants"),
    (["train.py:step", "train.py:step"], "two variants are named 'train.py:step'"),
    (["train.py:step", "module.mlir"], "module.mlir: expected a program such as train.py:step"),
    (["train.py:step", "--rules", "no.toml"], "--rules no.toml: there is no such file"),
    (["train.py:step", "--option", "xla=1"], "--option xla=1: expected NAME:FLAG=VALUE"),
    (["train.py:step", "train.py:twice", "--fail-if", "slow"], "--fail-if 'slow': expected slower"),
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
    """Interrupts a comparison as a terminal does: four variants are done, and the fifth one runs."""
    command = ["compare", *(f"{name}=train.py:step" for name in "abcdef"), "--seconds", "3", "--no-effects", "--resume", "r.json"]
    # In the background of a shell, processes ignore the signal.
    process = subprocess.Popen(
        [sys.executable, "-m", "hlotag", *command],
        cwd=folder,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    end = time.monotonic() + 120
    while not Path("r.json").exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(4)
    os.killpg(process.pid, signal.SIGINT)
    return process


@pytest.mark.slow
def test_an_interrupt_leaves_what_is_done_and_no_process(folder):
    process = _run_until_interrupted(folder)
    assert process.wait(30) == 130
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    done = Comparison.read(Path("r.json").read_text(), "r.json")
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
    found = Comparison.read(Path("c.json").read_text(), "c.json")
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
