# SPDX-License-Identifier: Apache-2.0
"""The connection to jaxlib: symbol table, trial, and what happens when any of them is not as it should be."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from hlotag import _core, errors
from hlotag.mlir import trial
from hlotag.mlir.library import TRIED, Library, find_library
from hlotag.mlir.symbols import read_symbols
from hlotag.passes import syntax
from hlotag.passes.pipeline import DEFAULT_PIPELINE

RunPython = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def library() -> Library:
    return find_library()


THREADS = """
import threading
from hlotag.mlir import connection
connects, connect = [], connection._connect
connection._connect = lambda: (connects.append(1), connect())
threads = [threading.Thread(target=connection.ensure) for _ in range(16)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(connects))
"""


def test_threads_connect_once(run_python: RunPython) -> None:
    assert run_python(THREADS).stdout == "1\n"


def test_only_an_untried_jaxlib_is_tried(run_python: RunPython) -> None:
    code = "from hlotag.mlir import connection, library, trial\ntrial.run = lambda *args: print('tried')\n{}connection.ensure()"
    assert run_python(code.format("")).stdout == ""
    assert run_python(code.format("library.TRIED = ()\n")).stdout == "tried\n"


def test_the_installed_jaxlib_passes_the_trial(library: Library) -> None:
    assert library.version in TRIED
    trial.run(library, read_symbols(library.path, _core.required_symbols()))


def test_no_jaxlib_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib", None)
    with pytest.raises(errors.IncompatibleJaxlibError, match="none that can be imported"):
        find_library()


@pytest.mark.parametrize(
    ("code", "messages"),
    [
        ("import os; os.abort()", ["crashed (SIGABRT)\n  supported"]),
        ("raise RuntimeError('wrong entries')", ["exit status 1", "wrong entries"]),
        ("print('something else')", ["exit status 0"]),
        ("import time; time.sleep(60)", ["could not finish"]),
    ],
)
def test_the_trial_reports(monkeypatch: pytest.MonkeyPatch, library: Library, code: str, messages: list[str]) -> None:
    monkeypatch.setattr(trial, "_TIMEOUT_S", 0.5 if "sleep" in code else trial._TIMEOUT_S)
    monkeypatch.setattr(trial, "_CODE", code)
    with pytest.raises(errors.IncompatibleJaxlibError) as caught:
        trial.run(library, read_symbols(library.path, _core.required_symbols()))
    assert all(message in str(caught.value) for message in messages)


def test_the_trial_runs_the_default_pipeline() -> None:
    elements = syntax.parse(DEFAULT_PIPELINE)
    assert [(element.name, element.options) for element in elements] == trial.PIPELINE


@pytest.mark.parametrize("name", [None, "", "embedding"])
def test_a_program_that_embeds_python_does_not_start_itself(
    monkeypatch: pytest.MonkeyPatch, library: Library, name: str | None
) -> None:
    monkeypatch.setattr(trial.subprocess, "run", Mock(side_effect=AssertionError))
    monkeypatch.setattr(sys, "executable", name)
    with pytest.raises(errors.IncompatibleJaxlibError, match="no Python interpreter"):
        trial.run(library, {})


FORKED = """
import os, signal, threading, time
from hlotag.mlir import connection
waits = threading.Event()
connect = connection._connect
connection._connect = lambda: (waits.set(), time.sleep(1), connect())
threading.Thread(target=connection.ensure).start()
waits.wait()
connection._connect = connect
if not (child := os.fork()):
    signal.alarm(60)
    connection.ensure()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


INTERRUPTED = """
import signal
from hlotag.mlir import connection
def interrupt():
    connection._connect = connect
    signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)  # A process in the background ignores it.
connect, connection._connect = connection._connect, interrupt
try:
    connection.ensure()
except KeyboardInterrupt:
    connection.ensure()
    print("connected")
connection._ready = False
def handle(*_):
    connection._connect = connect
    connection.ensure()
signal.signal(signal.SIGINT, handle)
connection._connect = interrupt
connection.ensure()
print("connected")
"""


@pytest.mark.parametrize(("code", "said"), [(FORKED, "0\n"), (INTERRUPTED, "connected\nconnected\n")])
def test_forks_and_interrupts_while_connecting(run_python: RunPython, code: str, said: str) -> None:
    assert run_python(code).stdout == said


def test_pass_error_reads_well() -> None:
    note = errors.Diagnostic("note", "set here", "y.py:2:1")
    diagnostic = errors.Diagnostic("error", "entry 'k' is no string", "x.py:1:1", notes=(note,))
    error = errors.PassError("hlotag-finalize", [diagnostic], "Fix it.")
    assert str(error).splitlines() == [
        "pass 'hlotag-finalize' failed",
        "  x.py:1:1: error: entry 'k' is no string",
        "    y.py:2:1: note: set here",
        "Fix it.",
    ]
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.diagnostics) == (str(error), (diagnostic,)) and "gave no reason" in str(errors.PassError(""))


TRAPS = """
import os, sys
from hlotag import _core
from hlotag.mlir import connection, symbols, trial
from hlotag.mlir.library import find_library
library = find_library()
addresses = symbols.addresses_of(library.path, connection._read_offsets(library))
unnoticed = []
for name in addresses:
    if (child := os.fork()) == 0:
        try:
            _core.install(addresses | {name: 8})
            trial.check_result()
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        unnoticed.append(name)
print(*unnoticed)
"""


def test_the_trial_notices_each_function_that_is_a_trap(run_python) -> None:
    """Notes of diagnostics come from MLIR itself, for errors that no pass makes."""
    assert run_python(TRAPS).stdout.split() == ["mlirDiagnosticGetNote"]
