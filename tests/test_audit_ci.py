# SPDX-License-Identifier: Apache-2.0
"""The audit in continuous integration: a program of the user's, a baseline, and what code hosts show."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hlotag
from hlotag.audits import Audit, TagState, Verdict, baseline
from hlotag.cli import main
from hlotag.errors import Diagnostic
from hlotag.reports import audit_json, sarif
from hlotag.results.tags import Effect
from test_audit_report import ops_of

PROGRAM = """
import jax
import jax.numpy as jnp
import hlotag

def f(x):
    return jnp.tanh(hlotag.tag(jnp.sin(x) @ x, {"k": "v"}, grad={"k": "g"})).sum()

def pair():
    print("of the program")
    return jax.grad(f), (jax.ShapeDtypeStruct((4, 4), "float32"),)

def lowered():
    return jax.jit(jax.grad(f)).lower(jnp.ones((4, 4)))

def with_rules():
    hlotag.enable(rules=[hlotag.Rule({"rule": "1"}, op="sine")])
    return pair()

def checkpointed():
    hlotag.enable(rules=[hlotag.Rule({"rule": "1"}, op="*")])
    print("of the program")
    return jax.grad(jax.checkpoint(f)), pair()[1]

def failing():
    raise SystemExit(0)

def illegal():
    return (lambda x: hlotag.tag(x * x, {"_xla_compute_type": "hst"})), (1.0,)

def failing_later():
    return (lambda x: jnp.dot(x, x, no_such=1)), (jax.ShapeDtypeStruct((4, 4), "float32"),)

neither = 3
"""


@pytest.fixture
def program(tmp_path) -> str:
    (tmp_path / "train_step.py").write_text(PROGRAM)
    return str(tmp_path / "train_step.py")


@pytest.fixture
def audited(program, capsys):
    """The exit status of `hlotag audit` for a function of the program, and what was printed: output and errors."""

    def run(name, *options):
        status = main(["audit", f"{program}:{name}", *map(str, options)])
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize("name", ["pair", "lowered"])
def test_a_program_is_audited_as_in_process(program, name, audited):
    status, out, _ = audited(name, "--json", "-")
    document = json.loads(out)
    assert status == 0
    assert {(tag["key"], tag["value"]) for tag in document["tags"]} == {("k", "v"), ("k", "g")}
    assert document["hlo_pass"] and document["counts"].keys().isdisjoint({"lost"})
    assert {document["ops"][tag["op"]]["file"] for tag in document["tags"]} == {program}
    assert not hlotag.active()


def test_a_program_may_turn_the_stage_on_itself(audited):
    status, out, _ = audited("with_rules", "--json", "-")
    assert status == 0 and "rule" in {tag["key"] for tag in json.loads(out)["tags"]}
    assert not hlotag.active()
    status, _, err = audited("with_rules", "--no-hlo")
    assert status == 2 and "leave out --pass-pipeline and --no-hlo" in err


def test_a_script_of_its_own_is_in_no_log_and_no_location(program, tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")  # JAX set it in this process.
    script = tmp_path / "hlotag_script"
    script.write_text("import sys\nfrom hlotag.cli import main\nsys.exit(main())\n")
    command = [sys.executable, str(script), "audit", f"{program}:checkpointed", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr == "of the program\n" * 2
    assert {op["file"] for op in json.loads(done.stdout)["ops"]} == {program, ""}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("f", "f takes arguments (x); name a function without arguments"),
        ("absent", "the file has no 'absent'"),
        ("neither", "neither is or returns a int"),
    ],
)
def test_what_is_no_program_is_an_error_in_words(name, said, audited):
    status, _, err = audited(name)
    assert status == 2 and said in err


def test_the_page_says_what_is_worse_than_the_baseline(program, tmp_path, audited):
    assert audited("pair", "--json", tmp_path / "before.json")[0] == 0
    Path(program).write_text(PROGRAM.replace(', grad={"k": "g"}', ""))
    assert audited("pair", "--baseline", tmp_path / "before.json", "--html", tmp_path / "a.html")[0] == 1
    assert "k=g covers less than before" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize("name", ["failing", "failing_later"])
def test_a_failing_program_has_its_own_traceback(program, name, audited):
    status, _, printed = audited(name)
    assert status == 2
    assert re.findall(r'File "(.*?)"', printed)[0] == program
    assert printed.endswith(f"hlotag audit: error: {program}:{name}: the program failed, as the traceback says\n")


def test_an_error_of_hlotags_own_names_the_users_line(program, audited):
    status, _, err = audited("illegal")
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if '"hst"' in text)
    assert status == 2
    assert err.startswith(f"hlotag audit: error: {program}:{line}: key '_xla_compute_type': the value 'hst'")


def test_lists_of_tags_and_untagged_lines(audited):
    status, tags, _ = audited("pair", "--tags")
    rows = [line.split() for line in tags.splitlines() if " kept " in line]
    assert status == 0 and rows and all(row[1] in ("forward", "backward") for row in rows)
    status, untagged, _ = audited("pair", "--untagged")
    assert status == 0 and re.search(r"train_step.py:7   [89] ", untagged)


# --- Against a baseline ----------------------------------------------------------------------------------------------------


def audit_of(*states: TagState, line: int = 7, value: str = "v", **fields) -> Audit:
    tags = [tag._replace(value=value) for tag in ops_of(*states, line=line)]
    return Audit("m", [tag.op for tag in tags], tags, **fields)


def worse(now: Audit, before: Audit) -> list[tuple[str, int, tuple[int, ...]]]:
    found = baseline.worse(now, Audit.from_json(before.to_json(), "audit.json"))
    return [(problem.kind, problem.count, problem.tags) for problem in found]


LOST, KEPT = TagState.LOST, TagState.KEPT


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [
        (audit_of(LOST, KEPT), audit_of(LOST, KEPT), []),
        (audit_of(LOST, KEPT, line=9), audit_of(LOST, KEPT), []),
        (audit_of(KEPT, KEPT), audit_of(LOST, KEPT), []),
        (audit_of(LOST, LOST, LOST), audit_of(LOST, KEPT, LOST), [("lost", 1, (1,))]),
        (audit_of(KEPT, LOST), audit_of(LOST, KEPT), [("lost", 1, (1,))]),
        (audit_of(KEPT, value="w"), audit_of(KEPT), [("fewer", 1, ())]),
        (audit_of(KEPT), audit_of(KEPT, KEPT, KEPT), [("fewer", 2, ())]),
        (audit_of(KEPT, TagState.ELIMINATED), audit_of(KEPT, KEPT), [("fewer", 1, ())]),
        (audit_of(KEPT, KEPT), audit_of(KEPT), []),
        (audit_of(reports=[Diagnostic("warning", "a gap")]), audit_of(), [("warning", 1, ())]),
        (audit_of(reports=[Diagnostic("warning", "a gap")] * 2), audit_of(reports=[Diagnostic("warning", "a gap")] * 2), []),
        (audit_of(KEPT, effects=[Effect("k", "v", Verdict.REFUSED)]), audit_of(KEPT), [("refused", 1, (0,))]),
    ],
)
def test_only_what_got_worse_counts(now, before, found):
    assert worse(now, before) == found


def test_the_command_says_what_got_worse_and_fails(program, tmp_path, audited):
    file, output = tmp_path / "audit.json", tmp_path / "audit.sarif"
    assert audited("pair", "--json", file)[0] == audited("pair", "--baseline", file)[0] == 0
    document = json.loads(file.read_text())
    for tag in document["tags"]:
        tag["value"] = "old"
    file.write_text(json.dumps(document))
    status, _, said = audited("pair", "--baseline", file, "--sarif", output)
    assert status == 1 and f"worse than {file}: 1 problem\n" in said and f"{len(document['tags'])} x fewer  k=old" in said
    (result,) = json.loads(output.read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]  # GitHub refuses a file with a result without a place.
    assert result["ruleId"] == "fewer" and place["artifactLocation"]["uri"].endswith(Path(program).name)
    assert place["region"]["startLine"] in {op["line"] for op in document["ops"]} - {1}


AUDIT = f'{{"schema": "{audit_json.SCHEMA}"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "found None"),
        ('{"schema": "x"}', "found 'x'"),
        (AUDIT + "}", "the audit is incomplete (KeyError('ops')); write it again with --json"),
        (AUDIT + ', "tags": [1], "ops": []}', "the audit is incomplete (TypeError"),
        (AUDIT + ', "tags": [{"op": 3, "origin": null}], "ops": []}', "the audit is incomplete (IndexError"),
    ],
)
def test_a_baseline_that_is_none(tmp_path, audited, text, said):
    (tmp_path / "audit.json").write_text(text)
    status, _, err = audited("pair", "--baseline", tmp_path / "audit.json")
    assert status == 2 and said in err


# --- What code hosts show --------------------------------------------------------------------------------------------------


def test_sarif_has_what_code_hosts_need():
    audit = audit_of(LOST, LOST, reports=[Diagnostic("warning", "a gap", file="/x/sub dir/a.py", line=0)])
    document = json.loads(sarif.dumps(audit.report.problems, Path("/x/sub dir"), Path("a.py")))
    (run,) = document["runs"]
    assert document["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "hlotag"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["lost", "warning"]
    lost, gap = run["results"]
    assert (lost["ruleId"], lost["level"], gap["level"]) == ("lost", "error", "warning")
    assert lost["message"]["text"].startswith("2 x lost  k=v on dot_general f32[8,8]: XLA's pass algsimp rewrote")
    places = [result["locations"][0]["physicalLocation"] for result in (lost, gap)]
    assert [place["artifactLocation"]["uri"] for place in places] == ["file:///x/model.py", "a.py"]
    assert [place["region"]["startLine"] for place in places] == [7, 1]
    elsewhere = json.loads(sarif.dumps(audit.report.problems, Path("/x"), Path("a.py")))["runs"][0]["results"][1]
    assert elsewhere["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "sub%20dir/a.py"
