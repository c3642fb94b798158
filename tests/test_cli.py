# SPDX-License-Identifier: Apache-2.0
"""The commands as a user meets them: help, errors, colours, progress and completion."""

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import jax
import jax.export
import jax.numpy as jnp
import pytest
import shtab

import hlotag
from hlotag.cli import main, opt_main, terminal
from hlotag.cli.commands import parser
from hlotag.passes.rules import attach
from hlotag.results.tags import TagState

MODULE = """\
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {a = "1"}} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
PASSES = """\
import dataclasses
import hlotag

@hlotag.register_pass
@dataclasses.dataclass(frozen=True)
class MyPass:
    at_most: int = 1

    def __call__(self, module):
        pass
"""
STEP = """\
import jax.numpy as jnp
import hlotag

def f(x):
    with hlotag.tagged({"layer": "1", "block": "a"}):
        return jnp.sin(x)

def step():
    return f, (jnp.ones(3),)
"""
COMMANDS = ("opt", "audit", "profile", "report", "compare", "keys")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("module.mlir").write_text(MODULE)
    Path("folder").mkdir()
    for name in ("empty.mlir", "empty.txt"):
        Path("folder", name).touch()
    Path("folder/cut.bin").write_bytes(b"\x10\0\0")
    return tmp_path


def status_of(arguments):
    """What the shell would see, whether `argparse` ended the process or we did."""
    try:
        return opt_main(arguments[1:]) if arguments[0] == "hlotag-opt" else main(arguments[1:])
    except SystemExit as end:
        return end.code


def run_in_terminal(code: str, **environment: str) -> tuple[int, str]:
    """Runs Python code with a terminal as its output; gives the exit status, and all that came to the terminal."""
    leader, follower = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    variables = inherited | {"TERM": "xterm-256color", "COLUMNS": "90"} | environment
    process = subprocess.Popen([sys.executable, "-c", code], stdout=follower, stderr=follower, env=variables)
    os.close(follower)
    output = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(leader, 65536):
            output += chunk
    os.close(leader)
    return process.wait(), output.decode().replace("\r\n", "\n")


def help_of(command, capsys):
    assert status_of(["hlotag", *command, "--help"]) == 0
    return capsys.readouterr().out


def test_help_names_every_command_and_every_state(capsys):
    assert re.findall(r"^    (\w+)", help_of([], capsys), re.MULTILINE) == list(COMMANDS)
    states = re.search(r"states: (.*)", help_of(["audit"], capsys))
    assert states is not None and states[1].split(", ") == [
        str(state)
        for state in (TagState.KEPT, TagState.RESTORED, TagState.CONSUMED, TagState.LOST, TagState.ELIMINATED, TagState.UNKNOWN)
    ]


@pytest.mark.parametrize("command", [[], *([c] for c in COMMANDS)], ids=" ".join)
def test_the_examples_of_help_run(command, capsys):
    text = help_of(command, capsys)
    examples = re.findall(r"hlotag(?:-opt)? [^|>#\n)]*", text.partition("examples:")[2].partition("\n\n")[0])
    assert examples
    for name in ("train.py", "old.py", "new.py"):
        Path(name).write_text(STEP)
    Path("my_passes.py").write_text(PASSES)
    for name in ("old", "new"):
        Path(name).mkdir()
        Path(name, "train.py").write_text(STEP)
        assert status_of(["hlotag", "audit", "train.py:step", "--json", f"{name}.json"]) == 0
    for name in ("groups", "offload"):
        Path(f"{name}.toml").write_text('[[rule]]\nop = "*"\nattrs = {k = "v"}')
    Path("limits.toml").write_text('[[rule]]\nop = "*"\nattrs = {k = ["1", "2"]}')
    capsys.readouterr()
    for example in examples:
        arguments = shlex.split(example)
        expected: tuple[list[int], str] = [0], ""
        if "--dump-dir" in arguments:
            expected = [2], "dumps: no such folder"
        elif "--audit" in arguments:
            expected = [2], "audit.json: No such file"
        elif arguments[:3] == ["hlotag", "profile", "/tmp/trace"]:
            expected = [2], "no file *.xplane.pb"
        elif arguments[1] == "profile" and "--baseline" in arguments:
            expected = [0, 1], "slower than in profile.json"
        elif arguments[1] == "compare":
            arguments += ["--seconds", "0", "--no-effects"]
        assert status_of(arguments) in expected[0], example
        said = capsys.readouterr().err
        assert expected[1] in said and bool(said) == bool(expected[1])


# What was asked for, the exit status, and what the error says.
WRONG = [
    ("hlotag", 2, "usage: hlotag"),
    ("hlotag optt", 2, "invalid choice: 'optt'"),
    ("hlotag profile new.py:step --against old.py:step", 2, "--against is gone: write hlotag compare old.py:step new.py:step"),
    ("hlotag keys --no", 2, "hlotag keys: error: unrecognized arguments: --no"),
    ("hlotag keys nothing", 1, "hlotag keys: error: no known key matches 'nothing'"),
    ("hlotag keys schedular_hint", 1, "no known key matches 'schedular_hint'; did you mean scheduler_hint?"),
    ("hlotag opt folder", 1, "hlotag-opt: error: folder: Is a directory"),
    ("hlotag opt absent", 1, "hlotag-opt: error: absent: No such file or directory"),
    ("hlotag opt module.mlir other.mlir", 1, "unexpected argument 'other.mlir'"),
    ("hlotag opt module.mlir --debug-origin", 1, "no such flag or pass: --debug-origin; did you mean --debug-origins?"),
    ("hlotag opt module.mlir --mlir-timing", 1, "--mlir-timing: hlotag-opt has no such flag; mlir-opt has it"),
    ("hlotag opt module.mlir --run-reproducer", 1, "the error that names a reproducer has the command"),
    ("hlotag opt module.mlir -o folder", 1, "hlotag-opt: error: folder: Is a directory"),
    ("hlotag opt module.mlir -o none/out", 1, "hlotag-opt: error: none: there is no such folder"),
    ("hlotag opt module.mlir --load-pass-plugin=module.mlir", 1, "module.mlir: "),
    ("hlotag opt module.mlir --load-pass-plugin=absent.py", 1, "error: absent.py: No such file"),
    ("hlotag audit", 2, "hlotag audit: error: one of the arguments FILE --dump-dir is required"),
    ("hlotag audit module.mlir --dump-dir folder", 2, "not allowed with argument"),
    ("hlotag audit module.mlir --module main", 2, "--module chooses from a folder"),
    ("hlotag audit --dump-dir folder --xla-passes", 2, "--xla-passes: only for what is compiled here; --dump-dir folder is HLO"),
    ("hlotag audit x.hlo --no-hlo --pass-pipeline=cse", 2, "--pass-pipeline, --no-hlo: only for what is compiled here; x.hlo"),
    ("hlotag audit folder/empty.mlir", 2, "empty.mlir: the file is empty"),
    ("hlotag audit folder/empty.txt", 2, "empty.txt: the file is empty"),
    ("hlotag audit folder/cut.bin", 2, "zero byte at offset 1; a binary file that is cut"),
    ("hlotag audit --dump-dir folder", 2, "no module from before and after"),
    ("hlotag audit absent", 2, "hlotag audit: error: absent: No such file"),
    ("hlotag audit absent.py:step", 2, "hlotag audit: error: absent.py: No such file"),
    ("hlotag audit folder", 2, "folder: a folder; write --dump-dir folder"),
    ("hlotag audit module.mlir --fail-if moved", 2, "no such state: 'moved'"),
    ("hlotag audit module.mlir --fail-if lost,", 2, "no such state: ''"),
    ("hlotag audit module.mlir --sources none", 2, "--sources none: there is no such folder"),
    ("hlotag audit module.mlir --json - --sarif -", 2, "cannot both be standard output"),
    ("hlotag audit train.py", 2, "train.py: a Python file needs the name of a function, as in train.py:step"),
    ("hlotag audit train.py:", 2, "train.py:: a Python file needs the name of a function"),
    ("hlotag audit module.mlir --pass-pipeline=no", 2, "'no' does not refer to a registered pass"),
    ("hlotag audit module.mlir --json none/a.json", 2, "none: there is no such folder"),
    ("hlotag audit module.mlir --html none/a.html", 2, "none/a.html: No such file"),
]


PLUGIN = """
import hlotag

@hlotag.register_pass(name="my-own")
def my_own(module):
    "Does what I want."
"""


def test_help_lists_the_passes_of_a_plugin(folder, run_python):
    Path("mine.py").write_text(PLUGIN)
    code = "from hlotag.cli import opt_main; opt_main(['--load-pass-plugin=mine.py', '--help'])"
    assert re.search(r"(?i)--my-own +does what I want", run_python(code).stdout)


def test_the_module_is_printed_before_each_pass(folder, capsys):
    assert opt_main(["module.mlir", "--canonicalize", "--hlotag-strip", "--mlir-print-ir-before-all"]) == 0
    dumps = re.findall(r"IR Dump (\w+ \S+)", capsys.readouterr().err)
    assert dumps == ["Before canonicalize", "Before hlotag-strip"]


@pytest.mark.parametrize(("line", "status", "message"), WRONG, ids=[line for line, *_ in WRONG])
def test_wrong_input_is_an_error_in_words(line, status, message, capsys, folder):
    assert status_of(line.split()) == status
    said = capsys.readouterr()
    assert said.out == "" and message in said.err and "Traceback" not in said.err and "Errno" not in said.err
    assert sorted(path.name for path in folder.iterdir()) == ["folder", "module.mlir"]


@pytest.mark.parametrize("content", [lambda exported: exported.mlir_module_serialized, lambda exported: exported.serialize()])
def test_the_files_of_an_export_are_read_like_a_module(content, capsys):
    exported = jax.export.export(jax.jit(lambda x: hlotag.set_xla_metadata(jnp.sin(x), a="1")))(jnp.ones(4))
    Path("artifact").write_bytes(content(exported))
    assert main(["opt", "artifact"]) == 0
    assert re.search(r'stablehlo\.sine .*a = "1"', capsys.readouterr().out)
    assert main(["audit", "artifact"]) == 0
    assert re.search(r"a=1 .* kept|kept\n.*\na=1 ", capsys.readouterr().out)


def test_entries_must_be_a_dictionary(capsys):
    Path("module.mlir").write_text(MODULE.replace('{a = "1"}', '"a"'))
    for command in (["opt", "--hlotag-strip"], ["audit"]):
        assert status_of(["hlotag", *command, "module.mlir"]) in (1, 2)
        assert re.search(r"module\.mlir:2.*must be a dictionary", capsys.readouterr().err)


# jaxlib's bindings end the process when they are asked for a location's name that is not UTF-8.
NOT_UTF8 = {
    "name": MODULE.replace("\n  return", ' loc("a\\FFb")\n  return'),
    "file": MODULE.replace("\n  return", ' loc("\\FF":1:2)\n  return'),
    "key": MODULE.replace("{a =", '{"\\FF" ='),
    "value": MODULE.replace('"1"', '"\\FF"'),
}


def test_an_audit_of_text_that_is_not_utf8_is_an_error_in_words(run_python):
    for kind, text in NOT_UTF8.items():
        Path(f"{kind}.mlir").write_text(text)
    audits = f"for kind in {list(NOT_UTF8)}: print('status', main(['audit', f'{{kind}}.mlir']), file=sys.stderr, flush=True)"
    done = run_python(f"import sys; from hlotag.cli import main\n{audits}")
    *reports, rest = done.stderr.split("status 2\n")
    assert (len(reports), rest) == (len(NOT_UTF8), "") and "Traceback" not in done.stderr, done.stderr
    assert all(("not UTF-8" in report and "\\FF" in report) or "0xff" in report for report in reports)


def test_an_interrupt_is_no_traceback(capsys):
    assert terminal.run("hlotag", 1, Mock(side_effect=KeyboardInterrupt)) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_has_seen_enough():
    for command in ("opt --help", "keys --json"):
        line = f"{shlex.quote(sys.executable)} -m hlotag {command} | true"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
        assert done.stderr == ""


# --- Terminals ---------------------------------------------------------------------------------------------------------------

WRONG_MODULE = "import sys; from hlotag.cli import main; sys.exit(main(['opt', 'wrong.mlir']))"


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_errors_have_a_colour_on_terminals(environment, coloured, run_python):
    Path("wrong.mlir").write_text(MODULE.replace("return %0", "return %1"))
    status, text = run_in_terminal(WRONG_MODULE, **environment)
    assert status == 1 and ("\x1b[1;31m" in text) == coloured
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert "wrong.mlir:3:10: error: use of undeclared SSA value name\n  return %1" in plain
    assert "\x1b" not in run_python(WRONG_MODULE, may_fail=True, **environment).stderr, "in a file, errors have none"


RUN = """
import sys
from hlotag.cli import main
sys.exit(main({arguments}))
"""


def test_an_audit_says_what_it_is_at(run_python):
    arguments, steps = ["audit", "module.mlir", "--html", "a.html"], ["auditing module.mlir", "writing a.html"]
    status, text = run_in_terminal(RUN.format(arguments=arguments))
    assert status == 0 and [step for step in steps if step in text] == steps
    # It is gone afterwards: the line is cleared, and the cursor is there again.
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == len(steps)
    piped = run_python(RUN.format(arguments=arguments))
    assert piped.returncode == 0 and not any(step in piped.stdout + piped.stderr for step in steps)


def test_nothing_is_said_to_a_dumb_terminal():
    status, text = run_in_terminal(RUN.format(arguments=["audit", "module.mlir"]), TERM="dumb")
    assert status == 0 and "\x1b" not in text and "auditing" not in text and "1 tag" in text


# --- Completion --------------------------------------------------------------------------------------------------------------


def test_shtab_makes_completion_scripts_of_the_parser():
    for shell in shtab.SUPPORTED_SHELLS:
        assert all(command in shtab.complete(parser(), shell) for command in COMMANDS)


def test_version(capsys):
    assert status_of(["hlotag", "--version"]) == status_of(["hlotag-opt", "--version"]) == 0
    assert capsys.readouterr().out == f"hlotag {hlotag.__version__}\n" * 2


@pytest.mark.parametrize("before", ["builtin.module(cse,canonicalize)", "hlotag-strip{keys=hlotag-attach}"])
def test_rules_go_to_the_pass_and_not_to_text_that_reads_like_it(before, capsys):
    Path("rules.toml").write_text('[[rule]]\nop = "sine"\nattrs = {k = "v"}\n')
    assert opt_main(["module.mlir", f"--pass-pipeline={before},hlotag-attach{{rules-file=rules.toml}}"]) == 0
    assert 'k = "v"' in capsys.readouterr().out
    rules = attach([hlotag.Rule({"k": "w"}, op="sine")])
    assert opt_main(["module.mlir", f"--pass-pipeline={before},{rules}"]) == 0
    assert 'k = "w"' in capsys.readouterr().out
