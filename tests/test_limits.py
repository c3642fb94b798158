# SPDX-License-Identifier: Apache-2.0
"""Rates of a profile: programs whose flops and bytes are known by their shapes, and shares of limits that are given."""

import json
import re
import tomllib
from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlotag
from hlotag import _compat
from hlotag.cli import main
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.hlo.traffic import measure_traffic
from hlotag.profiles import Limits, Profile, Row, limits
from hlotag.reports.profile_table import as_text

N, TRIPS = 512, 8
PRODUCT = 2 * N**3  # flops
VALUE = 4 * N * N  # bytes
X = jnp.full((N, N), 1 / N)
GIVEN = Limits("fake", {"f32": 1e12, "f32-product": 4e12, "bf16": 8e12}, 1e11, "a test")


def profiled(f: Callable[..., Any], *args: Any, **options: Any) -> Profile:
    with hlotag.stage():
        return hlotag.profile(f, *args, steps=2, **{"limits": GIVEN, **options})


def row_of(profile: Profile, value: str) -> Row:
    (row,) = [row for row in profile.rows if row.key == "layer" and row.value == value]
    return row


def tagged(f: Callable[..., Any], value: str = "1") -> Callable[..., Any]:
    def call(*args):
        with hlotag.tagged({"layer": value}):
            return f(*args)

    return call


def test_a_product_has_its_flops_and_a_share_of_the_limit():
    profile = profiled(tagged(lambda x: x @ x), X)
    row = row_of(profile, "1")
    assert (row.flops, row.bytes) == (PRODUCT, 2 * VALUE)  # One operand, which is both, and the result.
    assert row.flops_per_second == PRODUCT / row.seconds
    assert row.of_flops == pytest.approx(PRODUCT / 4e12 / row.seconds)
    assert row.of_bandwidth == pytest.approx(2 * VALUE / 1e11 / row.seconds)
    assert profile.mfu == pytest.approx(PRODUCT / 4e12 / profile.untraced_seconds)
    assert f" MFU {profile.mfu:.0%}." in profile.sentence
    assert "Limits of fake: 1 Tflop/s of f32, 4 Tflop/s of f32-product, 8 Tflop/s of bf16; 100 GB/s of memory; a test." in str(
        profile
    )


def test_a_product_at_high_precision_has_the_limit_of_its_type():
    row = row_of(profiled(tagged(partial(jnp.matmul, precision="highest")), X, X), "1")
    assert row.of_flops == pytest.approx(PRODUCT / 1e12 / row.seconds)


@pytest.mark.parametrize("count", [1, 2])
def test_a_sum_reads_its_operands_and_writes_its_result(count):
    values = [jnp.ones(1 << 20) + n for n in range(count)]
    row = row_of(profiled(tagged(lambda *values: sum(values) + 1), *values), "1")
    assert (row.flops, row.bytes) == (count << 20, 4 * (count + 1) << 20)


def test_an_update_in_place_counts_what_it_writes():
    f = jax.jit(tagged(lambda x, rows: x.at[8:16].set(rows)), donate_argnums=0)
    row = row_of(profiled(f, X, jnp.ones((8, N))), "1")
    assert row.bytes == pytest.approx(2 * 8 * N * 4, abs=16)  # And the place.


@pytest.mark.parametrize("n", [16, N])  # XLA for CPU compiles small loops into one kernel.
def test_a_loop_counts_each_trip_and_reads_a_part_of_its_weights(n):
    def f(x, w):
        return lax.scan(lambda x, w: (x @ w, None), x, w)[0]

    profile = profiled(tagged(f), jnp.ones((n, n)), jnp.full((TRIPS, n, n), 1 / n))
    products = TRIPS * 2 * n**3
    assert row_of(profile, "1").flops == pytest.approx(products, rel=0.01)
    assert profile.mfu == pytest.approx(products / 4e12 / profile.untraced_seconds)
    values = sum(row.bytes for row in profile.rows) / (4 * n * n)
    assert 3 * TRIPS <= values < 9 * TRIPS  # Each trip reads one weight: all would be 8 more values.


def test_a_loop_of_unknown_trips_counts_those_that_ran():
    def f(x, end):
        return lax.while_loop(lambda c: c[0] < end, lambda c: (c[0] + 1, c[1] @ x), (0, x))[1]

    profile = profiled(tagged(f), X, 5)
    assert row_of(profile, "1").flops == pytest.approx(5 * PRODUCT, rel=0.01)
    assert profile.mfu == pytest.approx(5 * PRODUCT / 4e12 / profile.untraced_seconds)


def test_rows_of_one_instruction_have_its_bytes_once():
    def f(x):
        return tagged(jnp.cos, "2")(tagged(jnp.sin)(x))

    profile = profiled(f, X)
    first, second = row_of(profile, "1"), row_of(profile, "2")
    assert (first.flops, second.flops) == (N * N, N * N)
    assert first.bytes + second.bytes == pytest.approx(2 * VALUE)
    assert first.bytes_per_second == pytest.approx(second.bytes_per_second)


def test_utilization_leaves_out_what_is_computed_again():
    def loss(w, layer):
        return tagged(layer)(tagged(layer)(X, w), w).sum()

    def layer(x, w):
        return jnp.sin(x @ w)

    plain, again = (profiled(jax.value_and_grad(partial(loss, layer=each)), X) for each in (layer, jax.checkpoint(layer)))
    assert plain.products_at_limit == pytest.approx(5 * PRODUCT / 4e12)
    if jax.__version_info__ >= (0, 11):  # Before, XLA for CPU computed nothing again.
        assert sum(row.flops for row in again.rows) > 1.1 * sum(row.flops for row in plain.rows)
    assert again.products_at_limit == pytest.approx(plain.products_at_limit)


MODULE = """\
HloModule m

slices {
  weights = f32[8,4,4] parameter(0)
  place = s32[] parameter(1)
  zero = s32[] constant(0)
  one = f32[1,4,4] dynamic-slice(weights, place, zero, zero), dynamic_slice_sizes={1,4,4}
  flat = f32[4,4] bitcast(one)
  ROOT negated = f32[4,4] negate(flat)
}

updates {
  all = f32[8,4] parameter(0)
  row = f32[1,4] parameter(1)
  place = s32[] parameter(2)
  zero = s32[] constant(0)
  doubled = f32[1,4] add(row, row)
  updated = f32[8,4] dynamic-update-slice(all, doubled, place, zero)
  ROOT both = (f32[8,4], f32[1,4]) tuple(updated, doubled)
}

ENTRY main {
  weights = f32[8,4,4] parameter(0)
  place = s32[] parameter(1)
  all = f32[8,4] parameter(2)
  row = f32[1,4] parameter(3)
  half = bf16[4,4] parameter(4)
  read = f32[4,4] fusion(weights, place), kind=kLoop, calls=slices
  write = (f32[8,4], f32[1,4]) fusion(all, row, place), kind=kLoop, calls=updates
  product = (bf16[4,4], s8[999]) custom-call(half, half), custom_call_target="__cublas$gemm"
  copy-start = (f32[8,4], f32[8,4], u32[]) copy-start(all)
  copy-done = f32[8,4] copy-done(copy-start)
  ROOT result = (f32[4,4], f32[8,4]) tuple(read, copy-done)
}
"""


def test_traffic_of_fusions_and_libraries():
    module = HloModule(_compat.runtime.hlo_from_text(MODULE))
    found = {name: size for name, size in measure_traffic(module).items() if size}
    square, row, number, whole = 4 * 4 * 4, 4 * 4, 4, 8 * 4 * 4
    assert found == {
        "read": square + number + square,  # One of the weights, and the result.
        "write": row + number + 2 * row,  # The old rows stay where they are.
        "product": 2 * 4 * 4 + 2 * 4 * 4,  # Without scratch memory.
        "copy-start": 2 * whole,
    }


def test_types_add_up_to_the_least_time():
    assert GIVEN.seconds_for({"bf16": 16e12, "f32-product": 4e12, "f32": 3e12}) == 2 + 1 + 3
    assert GIVEN.seconds_for({"f64": 1}) is None
    assert Limits("plain", {"f32": 2.0}, 1.0).seconds_for({"f32-product": 4}) == 2


def test_without_limits_there_are_rates_and_no_shares():
    profile = profiled(tagged(lambda x: x @ x), X, limits=None)
    row = row_of(profile, "1")
    assert (row.flops, row.of_flops, row.of_bandwidth, profile.limits, profile.mfu) == (PRODUCT, None, None, None, None)
    assert "flop/s" in as_text(profile, 80) and "of limit" not in as_text(profile, 120) and "MFU" not in str(profile)


def test_a_table_has_the_columns_for_which_there_is_room():
    def loss(x):
        return tagged(lambda x: jnp.sin(x @ x), "a layer with a name")(x).sum()

    profile = profiled(jax.grad(loss), X)
    seen = {}
    for width in (60, 80, 120):
        lines = as_text(profile, width).splitlines()
        assert max(map(len, lines)) <= width
        (header,) = [line for line in lines if line.startswith("layer")]
        seen[width] = [title for title in ("flop/s", "B/s", "of limit") if title in header]
        assert "a layer with a name" in "\n".join(lines)
    assert seen[60] == [] and seen[80] in (["of limit"], ["B/s", "of limit"]) and seen[120] == ["flop/s", "B/s", "of limit"]
    assert re.search(r"a layer with a name.*\d+% (flops|mem)\n", as_text(profile, 120))


def test_json_and_page_have_the_rates(tmp_path):
    profile = profiled(tagged(lambda x: x @ x), X)
    text = profile.to_json()
    document, read = json.loads(text), Profile.from_json(text, "p.json")
    assert (read.limits, read.mfu, read.rows) == (GIVEN, profile.mfu, profile.rows)
    assert (document["mfu"], document["limits"]["bandwidth"]) == (profile.mfu, 1e11)
    profile.to_html(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert re.search(r'class="note">[\d.]+ [GT]flop/s, [\d.]+ [MG]B/s, \d+% (flops|mem)<', page)


def test_published_limits_have_sources():
    document = tomllib.loads(resources.files("hlotag.profiles").joinpath("limits.toml").read_text())
    kinds = ("NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA A100-SXM4-80GB", "TPU v5 lite", "TPU v5", "TPU v6 lite")
    assert document.keys() >= set(kinds)
    for kind, fields in document.items():
        assert urlsplit(fields["source"]).hostname.endswith("nvidia.com" if "NVIDIA" in kind else "cloud.google.com")
        found = limits.find_limits(kind)
        assert found.flops["bf16"] / found.bandwidth > 100  # Flops for each byte: the units fit.
    assert limits.find_limits("cpu") is None


def test_a_measured_product_reaches_what_was_measured(monkeypatch):
    monkeypatch.setattr(limits, "_SECONDS", 0.2)
    measured = limits.resolve_limits("measure", "")
    assert (measured.name, measured.source) == ("cpu", "measured")
    assert 1e9 < measured.flops["f32"] < 1e14 and 1e8 < measured.bandwidth < 1e13


FILE = '["cpu"]\nsource = "me"\nbandwidth = 1e11\nflops = { f32 = 1e12 }\n'
PROGRAM = """\
import jax.numpy as jnp

def step():
    return lambda x: x @ x, (jnp.ones((64, 64)),)
"""


def test_a_command_reads_limits_from_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)
    Path("limits.toml").write_text(FILE)
    command = ["profile", "train.py:step", "--steps", "2", "--json", "-"]
    assert main([*command, "--limits", "limits.toml"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["limits"] == {"name": "cpu", "flops": {"f32": 1e12}, "bandwidth": 1e11, "source": "me"}
    assert main([*command, "--limits", "NVIDIA H200"]) == 0
    assert json.loads(capsys.readouterr().out)["limits"]["bandwidth"] == 4.8e12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "limits.toml: Invalid value"),
        ("[cpu]\nflops = 3\n", r"limits.toml: the limits of 'cpu' need the form \[\"kind\"\]"),
        (FILE.replace("1e11", "-1"), "bandwidth of 'cpu' is -1: give a number a second"),
        (FILE.replace("cpu", "a") + FILE.replace("cpu", "b"), "limits.toml: no limits of 'TPU v9'; the file has a, b"),
        ("", "the file has none"),
    ],
)
def test_a_wrong_file_is_an_error(tmp_path, text, message):
    path = tmp_path / "limits.toml"
    path.write_text(text)
    with pytest.raises(ParseError, match=message):
        limits.resolve_limits(path, "TPU v9")


def test_a_file_of_one_device_counts_for_any(tmp_path):
    (tmp_path / "limits.toml").write_text(FILE)
    assert limits.resolve_limits(tmp_path / "limits.toml", "TPU v9").bandwidth == 1e11


def test_a_trace_has_the_limits_that_are_given(tmp_path):
    f = jax.jit(lambda x: x @ x)
    with hlotag.stage():
        f(X).block_until_ready()
        with jax.profiler.trace(tmp_path):
            f(X).block_until_ready()
        known, unknown = (hlotag.read_profile(tmp_path, limits=each) for each in ("TPU v6 lite", None))
    assert known.mfu == pytest.approx(PRODUCT / 918e12 / known.total_seconds)
    assert (unknown.limits, unknown.mfu) == (None, None)
