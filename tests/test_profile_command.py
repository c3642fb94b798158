# SPDX-License-Identifier: Apache-2.0
"""`hlotag profile`, comparisons with a baseline, and what a profile is written as."""

import dataclasses
import gzip
import json
import re
from pathlib import Path

import pytest

import hlotag
import traces
from hlotag.audits import Audit, Instruction, Tag, TagState
from hlotag.cli import main
from hlotag.errors import ArgumentError, ParseError
from hlotag.profiles import Profile, Row
from hlotag.results.times import in_words
from test_profile_trace import PROGRAM, host, step, thunk

STEP = """\
import jax.numpy as jnp
import hlotag

def f(x):
    print("traced")
    with hlotag.tagged({"layer": "0"}):
        return jnp.tanh(x @ x)

def step():
    return f, (jnp.ones((64, 64)),)
"""
FORGED = "</style><script>alert(1)</script>\x1b[31m"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(STEP)
    return tmp_path


@pytest.fixture
def traced(tmp_path):
    """A trace of two steps, and the audit of its program, whose product has a forged value."""
    (tmp_path / "trace").mkdir()
    traces.write(tmp_path / "trace", host(step(0, 0, 4), thunk("dot.1", 1, 2), step(1, 10, 6), thunk("dot.1", 11, 4)))
    op = PROGRAM.parts("dot.1")[0].op
    instruction = Instruction("dot.1", "dot", ops=(0,), phase="forward", effort=1)
    audit = Audit("jit_step", [op], [Tag("layer", FORGED, op, TagState.KEPT)], instructions=[instruction])
    (tmp_path / "audit.json").write_text(audit.to_json())
    return ["profile", "trace", "--audit", "audit.json"]


def test_a_program_is_profiled(capsys):
    assert main(["profile", "train.py:step", "--steps", "2", "--json", "-", "--perfetto", "t.json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["name"], len(document["steps"])) == ("jit_f", 2)
    layers = {(row["value"], row["phase"]) for row in document["rows"] if row["key"] == "layer" and row["value"]}
    assert layers == {("0", "forward")}
    assert "traced" in err
    assert json.loads(Path("t.json").read_text())["traceEvents"]
    assert hlotag.active() is None


def test_a_trace_is_profiled_and_shown_safely(traced, capsys):
    assert main([*traced, "--html", "p.html", "--json", "p.json", "--perfetto", "t.json.gz", "--by", "layer"]) == 0
    shown = capsys.readouterr().out
    assert "A step of jit_step takes 5 ms on CPU:0: 60% in tagged operations, 40% idle." in " ".join(shown.split())
    assert "\x1b[31m" not in shown
    page = Path("p.html").read_text()
    assert FORGED not in page and "<script>alert" not in page
    assert re.search(
        r"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'", page
    )
    assert re.findall(r'<rect class="(?:forward|none)" x="[\d.]+" width="([\d.]+)" height', page) == ["1000.0", "666.7"]
    assert gzip.decompress(Path("t.json.gz").read_bytes()).startswith(b'{"traceEvents"')
    written = Path("p.json").read_text()
    again = Profile.from_json(written, "p.json")
    assert (again.steps, again.rows[0].value, again.sentence) == ((4e-3, 6e-3), FORGED, json.loads(written)["sentence"])


def test_a_baseline_finds_what_became_slower(tmp_path, capsys):
    for name, product in (("before", 1), ("now", 3)):
        events = [
            e for n in range(6) for e in (step(n, 10 * n, 8), thunk("dot.1", 10 * n, product), thunk("sine.1", 10 * n + 4, 2))
        ]
        (tmp_path / name).mkdir()
        traces.write(tmp_path / name, host(*events))
    ops = [PROGRAM.parts(name)[0].op._replace(id=n) for n, name in enumerate(("dot.1", "sine.1"))]
    tags = [Tag("layer", str(n), op, TagState.KEPT) for n, op in enumerate(ops)]
    instructions = [Instruction(name, name, ops=(n,), phase="forward") for n, name in enumerate(("dot.1", "sine.1"))]
    Path("audit.json").write_text(Audit("jit_step", ops, tags, instructions=instructions).to_json())
    assert main(["profile", "before", "--audit", "audit.json", "--json", "p.json"]) == 0
    assert main(["profile", "before", "--audit", "audit.json", "--baseline", "p.json"]) == 0
    assert "0 rows slower" in capsys.readouterr().err
    assert main(["profile", "now", "--audit", "audit.json", "--baseline", "p.json"]) == 1
    err = capsys.readouterr().err
    assert "slower: layer=0, forward: 1 ms -> 3 ms (+200% ±" in err and "1 row slower than in p.json" in err


ERRORS = [
    (["profile", "train.py:step", "--module", "jit_f"], "--module jit_f goes with the folder of a trace"),
    (["profile", "train.py:step", "--audit", "a.json"], "--audit a.json goes with the folder of a trace"),
    (["profile", "train.py"], "needs the name of a function"),
    (["profile", "nothing", "--audit", "train.py"], "not JSON"),
    (["profile", "train.py:step", "--baseline", "train.py"], "not JSON"),
    (["profile", "train.py:step", "--baseline", "missing.json"], "missing.json"),
    (["profile", "train.py:step", "--limits", "H2000"], "limits='H2000': there is no such file, nor such a kind of device"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_errors_name_what_to_do(arguments, message, capsys):
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


def test_an_audit_that_is_incomplete_is_an_error(traced, capsys):
    document = json.loads(Path("audit.json").read_text())
    wrong = ({"instructions": [{"name": "dot.1"}]}, {"ops": [{"id": 0, "name": "a", "scope": "", "phase": "forward", "no": 1}]})
    for changed in [{name: value for name, value in document.items() if name != "instructions"}, *(document | w for w in wrong)]:
        Path("audit.json").write_text(json.dumps(changed))
        assert main(traced) == 2
        assert "audit.json: the audit is incomplete" in capsys.readouterr().err


def test_json_that_is_no_profile_is_an_error():
    row = Row("k", "1", "forward", 1.0, 1.0, 1.0, steps=(1.0,))
    whole = json.loads(Profile("jit_f", ("CPU:0",), (1.0,), (row,)).to_json())
    for text, message in [
        ("{", "not JSON"),
        (json.dumps(whole | {"schema": "hlotag.audit/9"}), "expected a profile with schema 'hlotag.profile/3'"),
        (json.dumps({name: value for name, value in whole.items() if name != "rows"}), "incomplete.*rows"),
        (json.dumps(whole | {"rows": [{"key": "k"}]}), "incomplete"),
        (json.dumps(whole | {"steps": ["a"]}), "incomplete"),
    ]:
        with pytest.raises(ParseError, match=message):
            Profile.from_json(text, "p.json")
    with pytest.raises(ArgumentError, match="has no timeline"):
        hlotag.profiles.Profile.from_json(json.dumps(whole), "p.json").to_perfetto("t.json")


def test_times_are_written_in_a_unit_that_fits():
    expected = {0: "0", 1e-9: "1 ns", 2.5e-6: "2.5 us", 0.0123: "12.3 ms", 12.3: "12.3 s", 0.99999e-3: "1 ms"}
    assert {seconds: in_words(seconds) for seconds in expected} == expected


def test_a_long_table_names_what_it_leaves_out():
    rows = tuple(Row("k", f"{n:02}", "forward", 1.0, 0.02, 1.0, steps=(1.0,)) for n in range(50))
    found = hlotag.profiles.Profile("jit_f", ("CPU:0",), (50.0,), rows, notes=("a note",))
    shown = str(found)
    assert re.search(r"10 more +10.00 +20.0%", shown) and "note: a note" in shown
    assert repr(found) == "<Profile of jit_f: 50 s a step, 1 steps>"
    sentence = "A step of jit_f takes 50 s on CPU:0: 100% in tagged operations."
    assert str(dataclasses.replace(found, rows=())) == f"{sentence}\nnote: a note"
