# SPDX-License-Identifier: Apache-2.0
"""Comparisons of variants: of programs whose answer is known, of times that are given, and of what was made before."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlotag import Rule
from hlotag.comparisons import Comparison, Trend, Variant, grid
from hlotag.comparisons.launches import confirm
from hlotag.comparisons.results import compare_results, write_results
from hlotag.comparisons.subjects import Prepared
from hlotag.comparisons.timing import compare_pairs, join_launches
from hlotag.comparisons.turns import Turns
from hlotag.errors import ArgumentError, HlotagError
from hlotag.profiles import Profile, Row
from hlotag.profiles.record import Runner
from hlotag.results.compared import Amount
from hlotag.results.grouping import Grouping

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


class Launched:
    """A variant of which each process keeps a speed of its own."""

    has_own_process = True

    def __init__(self, name: str, seconds: float, spread: float, random: np.random.Generator) -> None:
        self.name, self.launches = name, 0
        self._seconds, self._spread, self._random = seconds, spread, random
        self._steps: list[float] | None = None
        self._traced: list[float] = []
        self.restart()

    def prepare(self, results: Path, *, effects: bool) -> Prepared:
        raise NotImplementedError

    def restart(self) -> None:
        self.launches += 1
        self._speed = self._seconds * math.exp(self._random.normal(0, self._spread))
        self.forget()

    def time_step(self) -> float:
        taken = self._speed * math.exp(self._random.normal(0, 0.05))
        if self._steps is not None:
            self._steps.append(taken)
        return taken

    @contextmanager
    def tracing(self) -> Iterator[None]:
        self._steps = self._traced
        yield
        self._steps = None

    def profile(self, by: Grouping | None) -> Profile:
        return cast(Profile, SimpleNamespace(rows=[SimpleNamespace(key="layer", value="0", phase="forward", steps=self._traced)]))

    def forget(self) -> None:
        self._traced = []

    def close(self) -> None:
        pass


def launch(growth: float, spread: float, seed: int) -> tuple[list[Trend], list[int]]:
    """What is said of a step and its row, and how many processes each variant had."""
    random = np.random.default_rng(seed)
    subjects = [Launched("before", 1.0, spread, random), Launched("now", 1 + growth, spread, random)]
    turns = Turns(subjects, [None], 0.2)
    ((program, rows),) = confirm(turns, turns.run(0.1, 10.0), 0.1, 10.0)
    return [row.amounts[0].trend for row in (program, *rows)], [each.launches for each in subjects]


def test_processes_that_keep_a_speed_are_not_called_slower():
    found = [launch(0.0, 0.2, seed) for seed in range(100)]
    assert sum(launches[0] > 1 for _, launches in found) > 50
    assert sum(bool({Trend.MORE, Trend.LESS} & {*trends}) for trends, _ in found) <= 3  # 1 is expected


def test_fresh_processes_confirm_what_is_slower():
    found = [launch(0.3, 0.01, seed) for seed in range(10)]
    trends = [trend for trends, launches in found for trend in trends if launches == [4, 4]]
    assert len(trends) == 20 and trends.count(Trend.MORE) >= 18 and Trend.LESS not in trends
    assert launch(0.0, 0.0, 0)[1] == [1, 1]


def test_launches_are_joined_to_what_all_allow():
    slower = [Amount("time", before, before * now, Trend.MORE, 0.1, 0.2) for before, now in ((1.0, 1.5), (2.0, 1.4), (1.0, 1.45))]
    joined = join_launches(slower, 0.2)
    assert joined.trend == Trend.MORE and joined.margin == pytest.approx(0.1 + math.log(1.5 / 1.4) / 2)
    assert joined.now / joined.before == pytest.approx(math.sqrt(1.5 * 1.4))
    apart = [replace(slower[0], now=now, margin=0.01) for now in (1.1, 1.5, 2.5)]
    assert join_launches(apart, 0.2).trend == Trend.UNDECIDED
    new = Amount("time", 0.0, 1.0, Trend.MORE)
    assert join_launches([new, new], 0.2) == new
    assert join_launches([slower[0], replace(slower[0], trend=Trend.SAME)], 0.2).trend == Trend.UNDECIDED


# --- Profiles and audits that were made before --------------------------------------------------------------------------------


def timing(scale: float = 1.0, noise: float = 0.0, count: int = 10, **rows: float) -> Profile:
    """A profile whose rows have these seconds in each step, with a noise of its own in each row."""
    factors = {value: [scale * (1 + noise * ((7 * n + 3 * k) % 5 - 2)) for n in range(count)] for k, value in enumerate(rows)}
    steps = {value: tuple(seconds * factor for factor in factors[value]) for value, seconds in rows.items()}
    made = [Row("layer", value, "forward", sum(each) / count, 0.5, 1, steps=each) for value, each in steps.items()]
    return Profile("jit_f", ("CPU:0",), tuple(map(sum, zip(*steps.values(), strict=True))), tuple(made))


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
    "a quarter of the integers": (lambda x: jnp.arange(8), lambda x: x.at[:2].add(1), "differ in 0.25 of the elements"),
    "integers of four bits": (lambda x: jnp.arange(8, dtype=jnp.int4), lambda x: x.at[0].add(1), "differ in 0.12 of the"),
    "floats of eight bits": (lambda x: jnp.ones(8, jnp.float8_e4m3fn), lambda x: x * 2, "differ by 1 of the largest"),
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


@pytest.mark.parametrize("traced", [False, True])
def test_a_variant_that_fails_in_a_round_ends_no_other(traced, monkeypatch):
    """The profiler, which a process has once, is free for the other variants."""
    time_step, calls = Runner.time_step, []

    def fail_in(runner: Runner) -> float:
        calls.append(runner)
        if runner.audit.name == "jit_failing" and calls.count(runner) > (3 if traced else 0):
            raise RuntimeError("planted")
        return time_step(runner)

    def failing(x):
        return layers(x)

    monkeypatch.setattr(Runner, "time_step", fail_in)
    monkeypatch.setattr("hlotag.comparisons.turns._STEPS", 2)
    found = hlotag.compare({"none": None, "failing": failing, "same": None}, layers, X, by="layer", seconds=0, effects=False)
    assert found["failing"].error == "RuntimeError: planted"
    same = found["same"].program.amount("time")
    assert same and same.now and not found["same"].error


def test_a_comparison_is_read_back_and_shown(compared, tmp_path):
    again = Comparison.from_json(compared.to_json(), "c.json")
    assert again == compared and str(again) == str(compared)
    text = str(compared)
    assert "Against none: tagged: " in text and "broken was not compiled: ValueError: planted" in text
    compared.to_html(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "<h2>Memory at the peak</h2>" in page and "layer=1, forward" in page and "<script" not in page
    with pytest.raises(hlotag.errors.ParseError, match="incomplete"):
        Comparison.from_json(json.dumps(json.loads(compared.to_json()) | {"variants": [{}]}), "c.json")


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
