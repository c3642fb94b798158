# SPDX-License-Identifier: Apache-2.0
"""One page that answers, and the same in a terminal."""

import math
import re
from html import unescape
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import hlotag
from audits import data_of
from hlotag._text import in_bytes
from hlotag.cli import main
from hlotag.profiles.record import profile_in_full
from hlotag.reports import audit_page
from hlotag.results.times import Limits

LAYERS, WIDTH, ROWS = 3, 64, 256
PROGRAM = """
import jax, jax.numpy as jnp
import hlotag

def f(x):
    for n in range(3):
        with hlotag.tagged({"layer": n}):
            x = jnp.tanh(x @ x)
    return x.sum()

def step():
    return jax.grad(f), (jnp.ones((64, 64)),)

def shapes():
    return jax.grad(f), (jax.ShapeDtypeStruct((64, 64), jnp.float32),)

def exchanged():
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    rows = NamedSharding(Mesh(jax.devices()[:2], ("a",)), P("a", None))

    def g(x, ws):
        for n, w in enumerate(ws):
            with hlotag.tagged({"layer": n}):
                x = jnp.tanh(jnp.sin(x @ w))
        return (x**2).sum()

    return jax.jit(jax.grad(g, 1)), jax.device_put((jnp.ones((512, 64)), [jnp.ones((64, 64))] * 8), rows)

def needs():
    return f
"""


def loss(weights, x):
    for n, w in enumerate(weights):
        with hlotag.tagged({"layer": n}):
            x = jnp.tanh(jnp.sin(x @ w))
    return (x**2).sum()


@pytest.fixture(scope="module")
def page() -> str:
    limits = Limits("a device", {"f32": 1e12}, 1e11)
    with hlotag.stage():
        weights = [jnp.ones((WIDTH, WIDTH))] * LAYERS
        profile = profile_in_full(jax.grad(loss), (weights, jnp.ones((ROWS, WIDTH))), steps=3, limits=limits)
    path = Path("page.html").resolve()
    profile.to_html(path)
    text = path.read_text()
    path.unlink()
    return text


def test_a_page_has_every_section(page):
    sections = re.findall(r'<section id="([\w-]+)"', page)
    assert [name for name in sections if name != "untagged"] == [
        *("time-layer", "memory", "roofline", "timeline", "hot", "tags", "kernels", "every")
    ]
    assert '<a href="#memory">Memory</a>' in page


def test_a_row_opens_with_what_is_in_it(page):
    assert page.count('data-key="layer" data-value="1" data-query="layer=1"') == 2  # of time and of memory
    data = data_of(page)
    (row,) = [row for row in data["rows"] if row["of"] == ["layer", "1"]]
    texts, cells = data["strings"], data["instruction"]["cells"]
    found = [[texts[text] for text in cells[number]] for number, _ in row["instructions"]]
    flops = f"{2 * ROWS * WIDTH**2 / 1e6:.3g} Mflop"
    assert [each[6] for each in found].count(flops) >= 3, found  # the forward product, and both of the backward pass
    assert all(each[5] for each in found)  # All of them ran.
    lines = [[texts[text] for text in line] for line in row["lines"]]
    assert "x = jnp.tanh(jnp.sin(x @ w))" in [source for _, source, _ in lines] and all(time for *_, time in lines)
    kept = [[texts[text] for text in buffer] for buffer in row["buffers"]]
    assert [f"f32[{ROWS},{WIDTH}]", in_bytes(4 * ROWS * WIDTH)] in [buffer[1:3] for buffer in kept]


def test_drawings_and_tables_say_in_words_what_they_show(page):
    drawings = re.findall(r"<svg[^>]*>(?:\s*<title)?", page)
    assert drawings and all('aria-hidden="true"' in each or ('role="img"' in each and "<title" in each) for each in drawings)
    tables, columns = re.findall(r"<table[^>]*>(?:<caption)?", page), re.findall(r"<th[ >][^>]*", page)
    assert tables and all("<caption" in each for each in tables) and all('scope="col"' in each for each in columns)
    answers = dict(re.findall(r'<desc id="([\w-]+)-answer">(.*?)</desc>', page))
    assert set(answers) == {"memory-over-the-schedule", "roofline", "timeline"}
    assert all(f'aria-describedby="{name}-answer"' in page for name in answers)
    points = re.findall(r'<circle class="forward"[^>]*><title>([^:]+): ([\d.e+]+) ([kMGT]?)flop/s', page)
    fastest = max(points, key=lambda point: float(point[1]) * 1000.0 ** " kMGT".index(point[2] or " "))[0]
    said = rf"The fastest of {len(points)} values: {fastest} with [\d.]+ Gflop/s, [\d.]+ GB/s \(\d+% "
    assert len(points) > 2 and re.match(said, answers["roofline"]), (points, answers)
    assert re.search(r", temporary values need .* of 2\b", answers["memory-over-the-schedule"]), answers
    assert re.search(r"track has: layer \d+%, instructions", answers["timeline"]), answers


def test_every_instruction_is_in_the_search():
    audit = hlotag.audit(jax.grad(loss), [jnp.ones((8, 8))] * LAYERS, jnp.ones((16, 8)), memory=True, effects=False)
    data = data_of(audit_page.html(audit))
    names = [data["strings"][cells[0]] for cells in data["instruction"]["cells"]]
    assert {each.name for each in audit.instructions} | {each.kernel for each in audit.instructions} == set(names)
    assert len(names) == len(set(names)) and {row["of"][0] for row in data["rows"]} == {"layer", ""}


def test_the_page_loads_nothing(page):
    assert "default-src 'none'" in page and not re.search(r'(?:src|href)="https?:', page) and "style=" not in page


def test_each_row_is_a_point_under_the_limits(page):
    (drawn,) = re.findall(r'<section id="roofline">.*?</section>', page, re.DOTALL)
    assert len(re.findall("<circle", drawn)) >= LAYERS and "a device" in drawn
    heights = [float(y) for y in re.findall(r'<circle class="forward" cx="[\d.]+" cy="([\d.]+)"', drawn)]
    lines = re.findall(r'class="limit"[^>]* y1="([\d.]+)" y2="([\d.]+)"', drawn)
    (level,) = {float(begin) for begin, end in lines if begin == end}
    assert min(heights) > level  # Nothing is faster than the device.


def test_the_timeline_has_a_track_of_the_key(page):
    (drawn,) = re.findall(r'<section id="timeline">.*?</section>', page, re.DOTALL)
    assert re.search(r">layer<", drawn) and {"c0", "c1", "c2"} <= set(re.findall(r'<rect class="(c\d)" x', drawn))


def test_memory_over_the_schedule_has_its_peak_where_the_table_has_it():
    with hlotag.stage():
        weights = [jnp.ones((WIDTH, WIDTH))] * LAYERS
        memory = hlotag.audit(jax.grad(loss), weights, jnp.ones((ROWS, WIDTH)), memory=True, effects=False).memory
    assert memory and memory.lives
    last = max(life.end for life in memory.lives)
    live = [sum(each.buffer.bytes for each in memory.lives if each.start <= at <= each.end) for at in range(last + 1)]
    at_peak = sum(buffer.bytes for buffer in memory.buffers if buffer.op >= 0)
    assert live[memory.peak_at] == pytest.approx(at_peak, rel=0.01) and max(live) == pytest.approx(live[memory.peak_at], rel=0.01)
    value = 4 * ROWS * WIDTH
    assert at_peak >= LAYERS * value and math.isclose(at_peak % value, 0, abs_tol=value / 4)  # Each layer's value is kept.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)


def test_collectives_and_what_would_help_fit_in_24_lines(folder, capsys):
    assert main(["report", "train.py:exchanged", "--steps", "2", "-o", "r.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80 and sum(" exposed of " in line for line in lines) == 3
    (saving,) = [line for line in lines if line.startswith("jax.checkpoint on each layer frees at most ")]
    page = Path("r.html").read_text()
    assert saving.removesuffix(" ...") in page and page.count("<h3>What would help</h3>") in (1, 2)


def test_a_terminal_has_the_answer_in_24_lines(folder, capsys):
    assert main(["report", "train.py:step", "--steps", "2", "-o", "r.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80 and lines[-1] == "Page: r.html"
    assert lines[0].startswith("A step of jit_f takes ") and any(line.startswith("The program needs ") for line in lines)
    assert '<section id="timeline">' in Path("r.html").read_text()


@pytest.mark.parametrize("arguments", [["train.py:shapes"], ["train.py:step", "--no-run"]], ids=" ".join)
def test_what_does_not_run_has_no_time(arguments, folder, capsys):
    assert main(["report", *arguments, "-o", "r.html"]) == 0
    assert "takes" not in capsys.readouterr().out
    text = Path("r.html").read_text()
    assert '<section id="memory">' in text and '<section id="timeline">' not in text


def test_errors_name_what_to_do(folder, capsys):
    assert main(["report", "module.mlir"]) == 2
    assert "module.mlir: expected a program such as train.py:step" in capsys.readouterr().err
    assert main(["report", "train.py:step", "--no-run", "-o", "no/r.html"]) == 2
    assert "no/r.html" in capsys.readouterr().err


def train(sizes):
    step = jax.jit(lambda weights, x: hlotag.tag(jnp.tanh(x @ weights["w"]), {"layer": "1"}))
    for size in sizes:
        for _ in range(2):
            step({"w": jnp.ones((64, 64))}, jnp.ones((size, 64))).block_until_ready()


@pytest.mark.parametrize("block", [hlotag.auditing, hlotag.profiling], ids=["auditing", "profiling"])
def test_an_index_says_why_a_program_was_compiled_again(block, tmp_path):
    with block(folder=tmp_path / "run"):
        train([8, 16])
    index = (tmp_path / "run" / "index.html").read_text()
    rows = re.findall(r'<a href="([^"]+)"><code>(jit__lambda\w*)</code></a>', index)
    assert {name for _, name in rows} == {"jit__lambda", "jit__lambda_2"}
    assert "x: f32[16,64], before f32[8,64]" in index and "weights['w']: f32[64,64]" in unescape(index)
    assert ("<th" in index and ">runs</th>" in index) is (block is hlotag.profiling)
    for file, name in rows:
        assert "layer=1" in (tmp_path / "run" / file).read_text()
        assert hlotag.read_audit(tmp_path / "run" / file.replace(".html", ".json")).name == name
