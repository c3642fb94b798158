# SPDX-License-Identifier: Apache-2.0
"""`hlotag keys`: the catalogue as a table and as JSON, and the page of the documentation."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from hlotag.cli import keys as command
from hlotag.cli import main
from hlotag.tagging import keys
from terminal import run_in_terminal

ROOT = Path(__file__).parent.parent


def test_the_table_has_a_line_for_each_key(capsys):
    assert main(["keys"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *(key.name for key in keys.catalogue())]
    starts = [lines[0].index(word) for word in ("values", "ops", "consumer", "derived")]
    assert all(line[start - 2 : start] == "  " for line in lines[1:] for start in starts if len(line) > start)
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("width", [20, 40, 80, 100, 132, 300])
def test_the_table_is_wrapped_to_the_terminal(width):
    console = Console(file=io.StringIO(), width=width)
    console.print(command.table(keys.catalogue(), width))
    plain = console.file.getvalue().splitlines()
    assert max(map(len, plain)) <= width
    squeezed = "".join(line[: line.find("  ") if "  " in line else None].strip() for line in plain)
    assert all(key.name in squeezed for key in keys.catalogue() if width >= 80)


def test_colours_and_width_come_from_the_terminal():
    code = "import sys; from hlotag.cli import main; sys.exit(main(['keys']))"
    for extra, coloured in (({}, True), ({"TERM": "dumb"}, False)):
        status, text = run_in_terminal(code, **extra)
        assert status == 0
        assert ("\x1b[" in text) == coloured
        assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in text.splitlines()) <= 90


def test_keys_by_pattern_and_as_json(capsys):
    assert main(["keys", "--json", "_xla_loop*", "MUST_FUSE"]) == 0
    found = {key["name"]: key for key in json.loads(capsys.readouterr().out)}
    assert set(found) == {"_xla_loop_unroll_strategy", "MUST_FUSE"}
    assert found["_xla_loop_unroll_strategy"]["values"]["choices"] == ["full", "double-buffer"]
    assert found["MUST_FUSE"]["values"] is None and found["MUST_FUSE"]["derived"] == "drop"
    assert main(["keys", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(keys.catalogue())


def test_named_keys_are_described(capsys):
    assert main(["keys", "_xla_loop*"]) == 0
    (key,) = (key for key in keys.catalogue() if key.name.startswith("_xla_loop"))
    assert f"\n{key.name}: {key.doc} With another value {key.otherwise}.\n" in capsys.readouterr().out


def test_an_unknown_name_is_said_to_be_free(capsys):
    assert main(["keys", "_xla_*", "mine"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "mine" in captured.err and "_xla_" not in captured.err


def test_the_command_does_without_jax(run_python):
    run_python("import sys; from hlotag.cli import main; s = main(['keys']); sys.exit(s or 'jax' in sys.modules)")
