# SPDX-License-Identifier: Apache-2.0
"""A pass fails in the middle of a user's program: what is raised, what is left behind to replay it, and going on without it."""

import os
import pickle
import re
import shlex
import stat
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlotag.cli import opt_main
from hlotag.lowering import reproducer, staging
from hlotag.mlir.modules import new_context, parse_module
from hlotag.passes.rules import Rule
from modules import ops_of

X = np.linspace(-1, 1, 4, dtype=np.float32)


def line_of(text):
    return next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


def program():
    """A new jitted function, so that no other test has traced it."""

    def loss(x):
        y = hlotag.tag(jnp.sin(x), {"k": "v"})
        return ((y + jnp.cos(x)) * jnp.cos(x)).sum()

    return jax.jit(jax.grad(loss))


# XLA refuses the value that the rule gives to the sine.
RULES = r"[{op = \"sine\", source = \"test_failure.py:%d\", attrs = {_scheduling_group_id = \"x\"}}]"
FAILING = f'hlotag-resolve,cse,hlotag-attach{{rules="{RULES % line_of("jnp.sin(x), {")}"}},hlotag-finalize'


def located(lowered_or_module):
    """The operations with their names and innermost places; frames further out say where in this file the program was called."""
    return [replace(op, location=op.location.split(" at ")[0]) for op in ops_of(lowered_or_module)]


@pytest.fixture(autouse=True)
def reproducers(monkeypatch, tmp_path):
    monkeypatch.setenv("HLOTAG_REPRODUCER_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def lowered(function):
    """From one line of this file."""
    return function.lower(X)


def text_of(lowered_or_text):
    """With locations, but for where in this file the program was called, which differs from call to call."""
    text = lowered_or_text if isinstance(lowered_or_text, str) else lowered_or_text.as_text(debug_info=True)
    return re.sub(r'test_failure.py":\d+:\d+( to (\d+)?:\d+)?', 'test_failure.py"', text)


def failure(function=None):
    with pytest.raises(hlotag.errors.PassError) as raised, hlotag.stage(FAILING):
        lowered(function or program())
    return raised.value


def replay(error, capfd):
    """What the command in an error says: all that the error said."""
    program, *arguments = shlex.split(str(error).splitlines()[-1])
    assert program == "hlotag-opt" and opt_main(arguments) == 1
    replayed = capfd.readouterr().err
    assert all(diagnostic.message in replayed for diagnostic in error.diagnostics)
    return replayed


def test_an_error_names_pass_operation_and_line(capfd):
    error, line = failure(), line_of('jnp.sin(x), {"k"')
    assert error.pass_name == "hlotag-finalize"
    assert [(d.file, d.line) for d in error.diagnostics if "'stablehlo.sine'" in d.message] == [(__file__, line)]
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.reproducer == error.reproducer
    assert f"{__file__}:{line}" in str(error) and f"{__file__}:{line}" in replay(error, capfd)


PASS = "import hlotag\n@hlotag.register_pass\ndef always_fails(module):\n    raise ValueError('on purpose')\n"


def test_the_command_in_the_error_has_python_passes(tmp_path, monkeypatch, run_python):
    """A script with a pass of its own, in a module beside it; the command works from anywhere."""
    (tmp_path / "my_passes.py").write_text(PASS)
    code = "import jax, hlotag, my_passes\nwith hlotag.stage('always-fails'): jax.jit(lambda x: x + 1).lower(1.0)\n"
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    failed = run_python(code, may_fail=True, PYTHONPATH=paths)
    _, *arguments = shlex.split(next(line for line in failed.stderr.splitlines() if "--pass-pipeline=" in line))
    assert f"--load-pass-plugin={tmp_path / 'my_passes.py'}" in arguments
    replayed = run_python(f"import sys; from hlotag.cli import opt_main; sys.exit(opt_main({arguments}))", may_fail=True)
    assert replayed.returncode == 1 and "on purpose" in replayed.stderr


def test_the_reproducer_is_the_whole_module_and_private(reproducers):
    f = program()
    error = failure(f)
    path = Path(error.reproducer)
    assert path.parent == reproducers and stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    # cse, which ran before the failing pass, would have left fewer operations.
    assert text.count("stablehlo.cosine") > hlotag.run_passes(text, "cse").count("stablehlo.cosine")
    with hlotag.stage():
        expected = located(lowered(f))
    with new_context():
        assert located(parse_module(hlotag.run_passes(text))) == expected
    assert [p.name for p in reproducers.iterdir()] == [path.name], "no temporary file is left"


def test_a_program_that_fails_again_leaves_one_file(reproducers):
    f = program()
    assert len({failure(f).reproducer for _ in range(2)}) == len(list(reproducers.iterdir())) == 1


def test_rules_with_quotes_survive_the_command(capfd):
    f = program()
    rules = [Rule({"k": 'it\'s "5" $HOME'}, op="cosine")]
    with pytest.raises(hlotag.errors.PassError) as raised, hlotag.stage("hlotag-attach,hlotag-finalize", rules):
        f(X)
    replay(raised.value, capfd)


def test_without_the_variable_it_is_in_a_directory_of_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("HLOTAG_REPRODUCER_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reproducer._private_directory.cache_clear()
    path = Path(failure().reproducer)
    assert path.is_file() and path.parent.parent == tmp_path
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_file_can_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("HLOTAG_REPRODUCER_DIR", f"{__file__}/below")
    error = failure()
    assert error.pass_name == "hlotag-finalize" and error.reproducer == ""
    assert "HLOTAG_REPRODUCER_DIR" in str(error) and "hlotag-opt" not in str(error)


def test_nothing_is_cached_and_jax_goes_on():
    f = program()
    for _ in range(2):
        with hlotag.stage(FAILING), pytest.raises(hlotag.errors.PassError):
            f(X)
    expected = jax.grad(lambda x: ((jnp.sin(x) + jnp.cos(x)) * jnp.cos(x)).sum())(X)
    np.testing.assert_allclose(f(X), expected, rtol=1e-6)
    with hlotag.stage():
        assert "v" in [op.entries.get("k") for op in ops_of(f.lower(X)) if op.name == "stablehlo.sine"]


def test_on_error_warn_goes_on_with_the_programs_own_tags():
    f = program()
    expected = f(X)
    with hlotag.stage(FAILING, on_error="warn") as stage:
        assert stage.on_error == "warn"
        with pytest.warns(hlotag.PassFailedWarning) as caught:
            module = lowered(f)
        with warnings.catch_warnings(action="error"):
            np.testing.assert_array_equal(f(X), expected)  # Lowered once, so warned of once.
    assert len(caught) == 1 and "hlotag-finalize" in str(caught[0].message) and "hlotag-opt" in str(caught[0].message)
    text = text_of(module)
    assert "hlotag" not in text.replace(__file__, "") and "\\01" not in text
    with hlotag.stage("hlotag-resolve"):
        assert text == text_of(lowered(f))
    # "raise" is another configuration: nothing of this one is used for it.
    failure(f)


def test_on_error_warn_when_even_the_marks_cannot_be_resolved(monkeypatch):
    f = hlotag.tagged({"k": "v"}, grad={"k": "w"})(lambda x: jnp.sin(x) * 2.0)
    jitted = jax.jit(jax.grad(lambda x: f(x).sum()))
    alone = text_of(hlotag.run_passes(lowered(jitted).as_text(debug_info=True), "hlotag-strip"))
    monkeypatch.setattr(staging, "run_or_raise", Mock(side_effect=hlotag.errors.PassError("planted", ["planted"])))
    with hlotag.stage(on_error="warn"), pytest.warns(hlotag.PassFailedWarning, match="planted"):
        assert text_of(lowered(jitted)) == alone


def test_a_python_pass_without_a_file_has_no_command(run_python, tmp_path):
    code = f"{PASS}with hlotag.stage('always-fails'): __import__('jax').jit(lambda x: x + 1).lower(1.0)"
    done = run_python("import sys; exec(sys.stdin.read())", input=code, may_fail=True, HLOTAG_REPRODUCER_DIR=str(tmp_path))
    assert "To replay the failure, define the pass always-fails in a file." in done.stderr
