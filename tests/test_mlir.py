# SPDX-License-Identifier: Apache-2.0
"""The connection to jaxlib: symbol table, cache, probe, and what happens when any of them is not as it should be."""

import hashlib
import json
import os
import pickle
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import requires
from hlotag import _core, errors
from hlotag.mlir import probe, trial
from hlotag.mlir.cache import Cache, cache_directory
from hlotag.mlir.library import Library, find_library
from hlotag.mlir.symbols import read_symbols
from hlotag.passes import syntax
from hlotag.passes.pipeline import DEFAULT_PIPELINE

RunPython = Callable[..., subprocess.CompletedProcess[str]]

CONNECT = """
import json, os, sys
from hlotag import _core
from hlotag.mlir import connection, trial
calls = []
for owner, name in ((connection, "_read_offsets"), (trial, "run")):
    def spy(*args, _name=name, _function=getattr(owner, name)):
        calls.append(_name)
        return _function(*args)
    setattr(owner, name, spy)
connection.ensure()
print(json.dumps({"calls": calls, "installed": _core.is_installed()}))
"""


@pytest.fixture(scope="module")
def good_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache file that a first use writes."""
    directory = tmp_path_factory.mktemp("cache") / "made" / "by" / "hlotag"
    environment = {**os.environ, "HLOTAG_CACHE_DIR": str(directory)}
    subprocess.run([sys.executable, "-c", CONNECT], env=environment, check=True)
    (file,) = directory.iterdir()
    return file


@pytest.fixture
def cache(good_cache: Path, tmp_path: Path) -> Path:
    """A copy of the cache file, in a directory of its own."""
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o700)
    copy = directory / good_cache.name
    copy.write_bytes(good_cache.read_bytes())
    copy.chmod(0o600)
    return copy


@pytest.fixture
def library() -> Library:
    return find_library()


def connect(run_python: RunPython, directory: Path | str, code: str = CONNECT) -> list[str]:
    """Connects in a new process; returns what it had to do beyond reading the cache."""
    answer = json.loads(run_python(code, HLOTAG_CACHE_DIR=str(directory)).stdout.splitlines()[-1])
    assert answer["installed"]
    return answer["calls"]


def test_the_second_use_only_reads_the_cache(run_python: RunPython, good_cache: Path) -> None:
    assert run_python("import hlotag.mlir.connection, hlotag._core; print(hlotag._core.is_installed())").stdout == "False\n"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (good_cache, good_cache.parent)] == [0o600, 0o700]
    before = good_cache.read_bytes()
    assert set(_core.required_symbols()) <= set(json.loads(before)["content"]["offsets"])
    assert connect(run_python, good_cache.parent) == [] and good_cache.read_bytes() == before


def _edited(change: Callable[[dict[str, Any]], object]) -> Callable[[str], str]:
    """Damage that only the checks of the content can see: the checksum fits."""

    def damage(text: str) -> str:
        document = json.loads(text)
        change(document["content"])
        signed = json.dumps(document["content"], sort_keys=True, separators=(",", ":"))
        return json.dumps({**document, "sha256": hashlib.sha256(signed.encode()).hexdigest()})

    return damage


def _offset(value: object) -> Callable[[str], str]:
    return _edited(lambda content: content["offsets"].update({FIRST: value}))


FIRST = _core.required_symbols()[0]
OTHERS = {"size": 1, "mtime_ns": 1, "library": "/elsewhere", "schema": 0, "functions": ""}
OFFSETS = {"zero": 0, "negative": -4096, "huge": 1 << 70, "no number": "4096", "a bool": True}

DAMAGES: dict[str, Callable[[str], str]] = {
    "truncated": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "garbage": lambda text: "\udcff\x00 not json",
    "other type": lambda text: "[1, 2]",
    "deeply nested": lambda text: "[" * 100_000,
    "bad checksum": lambda text: re.sub(r": (\d)", r": 1\1", text, count=1),
    **{f"other {key}": _edited(lambda c, key=key: c["identity"].update({key: OTHERS[key]})) for key in OTHERS},
    "missing function": _edited(lambda c: c["offsets"].pop(FIRST)),
    "unknown function": _edited(lambda c: c["offsets"].update(system=4096)),
    **{f"offset {name}": _offset(value) for name, value in OFFSETS.items()},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_counts_as_absent(monkeypatch: pytest.MonkeyPatch, library: Library, cache: Path, damage: str) -> None:
    monkeypatch.setenv("HLOTAG_CACHE_DIR", str(cache.parent))
    good = cache.read_text()
    assert Cache(library).load()
    cache.write_text(DAMAGES[damage](good), errors="surrogateescape")
    assert Cache(library).load() is None


SEEN_LATE = {"offset beyond the code": _offset(1 << 40), "offset before the code": _offset(64)}


@pytest.mark.parametrize("damage", SEEN_LATE)
def test_a_damaged_cache_is_rebuilt(run_python: RunPython, cache: Path, damage: str) -> None:
    good = cache.read_text()
    cache.write_text(SEEN_LATE[damage](good))
    assert connect(run_python, cache.parent) == ["_read_offsets", "run"]
    assert cache.read_text() == good
    assert [file.name for file in cache.parent.iterdir()] == [cache.name]


def _give_away(cache: Path) -> None:
    if os.geteuid() != 0:
        requires.unmet("only root can give a file away")
    os.chown(cache, 12345, -1)


def _link(cache: Path) -> None:
    cache.symlink_to(cache.rename(cache.parent.parent / "target"))


def _folder(cache: Path) -> None:
    cache.unlink()
    (cache / "something").mkdir(parents=True)


def _fifo(cache: Path) -> None:
    cache.unlink()
    os.mkfifo(cache)


@pytest.mark.parametrize("change", [lambda cache: cache.chmod(0o666), _give_away, _link, _folder, _fifo])
def test_a_cache_that_is_no_private_file_is_not_read(
    monkeypatch: pytest.MonkeyPatch, library: Library, cache: Path, change: Callable[[Path], None]
) -> None:
    monkeypatch.setenv("HLOTAG_CACHE_DIR", str(cache.parent))
    offsets = Cache(library).load()
    assert offsets
    change(cache)
    assert Cache(library).load() is None
    Cache(library).store(offsets)
    if not cache.is_dir():
        assert Cache(library).load() == offsets
        assert not cache.is_symlink() and cache.stat().st_uid == os.geteuid()
        assert stat.S_IMODE(cache.stat().st_mode) == 0o600


# Root can write everywhere, unless it gives that away for what it executes next (PR_CAPBSET_DROP of CAP_DAC_OVERRIDE).
AS_ANYBODY = """
import ctypes, os, sys
assert os.geteuid() != 0 or ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) == 0
code = "import os; assert not os.access(os.environ['HLOTAG_CACHE_DIR'], os.W_OK)"
os.execv(sys.executable, [sys.executable, "-c", code + {rest!r}])
"""


def test_no_place_for_a_cache(run_python: RunPython, tmp_path: Path) -> None:
    read_only = tmp_path / "read-only"
    read_only.mkdir(mode=0o500)
    assert connect(run_python, read_only, AS_ANYBODY.format(rest=CONNECT)) == ["_read_offsets", "run"]
    assert list(read_only.iterdir()) == []
    for directory in ("/proc/hlotag", "/dev/null/hlotag"):
        assert connect(run_python, directory) == ["_read_offsets", "run"]


@pytest.mark.parametrize(
    ("own", "xdg", "home", "found"),
    [
        *[("/a", "/b", "/c", "/a"), ("", "/b", "/c", "/b/hlotag"), ("", "relative", "/c", "/c/.cache/hlotag")],
        ("", "relative", "relative", None),
    ],
)
def test_cache_directory_order(monkeypatch: pytest.MonkeyPatch, own: str, xdg: str, home: str, found: str | None) -> None:
    for name, value in (("HLOTAG_CACHE_DIR", own), ("XDG_CACHE_HOME", xdg), ("HOME", home)):
        monkeypatch.setenv(name, value)
    assert cache_directory() == found


def test_threads_connect_once(run_python: RunPython, cache: Path) -> None:
    in_threads = (
        "import threading\nconnects = []\nconnect = connection._connect\n"
        "connection._connect = lambda: (connects.append(1), connect())\n"
        "threads = [threading.Thread(target=connection.ensure) for _ in range(16)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\nassert len(connects) == 1\n"
    )
    assert connect(run_python, cache.parent, CONNECT.replace("connection.ensure()\n", in_threads)) == []


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
        ("import time; time.sleep(60)", ["did not finish"]),
    ],
)
def test_probe_reports(monkeypatch: pytest.MonkeyPatch, library: Library, code: str, messages: list[str]) -> None:
    monkeypatch.setattr(trial, "_TIMEOUT_S", 0.5 if "sleep" in code else trial._TIMEOUT_S)
    monkeypatch.setattr(trial, "_CODE", code)
    with pytest.raises(errors.IncompatibleJaxlibError) as caught:
        trial.run(library, read_symbols(library.path, _core.required_symbols()))
    assert all(message in str(caught.value) for message in messages)


def test_probe_runs_the_default_pipeline() -> None:
    elements = syntax.parse(DEFAULT_PIPELINE)
    assert [(element.name, element.options) for element in elements] == probe.PIPELINE


@pytest.mark.parametrize("name", [None, "", "embedding", "python-that-is-none", "python3"])
def test_a_program_that_embeds_python(
    monkeypatch: pytest.MonkeyPatch, library: Library, tmp_path: Path, name: str | None
) -> None:
    program, started = tmp_path / (name or "none"), tmp_path / "started"
    program.write_text(f"#!/bin/sh\necho >> {started}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program) if name else name)
    if name != "python3":
        trial.run(library, read_symbols(library.path, _core.required_symbols()))  # By the interpreter of the prefix.
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    with pytest.raises(errors.IncompatibleJaxlibError, match=r"import hlotag; hlotag\.enable") as caught:
        trial.run(library, read_symbols(library.path, _core.required_symbols()))
    assert "pip install" not in str(caught.value)
    assert started.exists() == (name == "python3")


def test_a_trial_that_cannot_start_says_nothing_against_jaxlib(monkeypatch: pytest.MonkeyPatch, library: Library) -> None:
    monkeypatch.setattr(trial.subprocess, "run", Mock(side_effect=BlockingIOError("Resource temporarily unavailable")))
    with pytest.raises(errors.IncompatibleJaxlibError, match=r"could not be started: Resource.*\n.*hlotag\.enable") as caught:
        trial.run(library, {})
    assert "pip install" not in str(caught.value)


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
    error = errors.PassError("hlotag-verify", [diagnostic], "Fix it.")
    assert str(error).splitlines() == [
        "pass 'hlotag-verify' failed",
        "  x.py:1:1: error: entry 'k' is no string",
        "    y.py:2:1: note: set here",
        "Fix it.",
    ]
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.diagnostics) == (str(error), (diagnostic,)) and "gave no reason" in str(errors.PassError(""))


def test_the_extension_is_small_and_brings_no_llvm():
    data = Path(_core.__file__).read_bytes()
    assert len(data) < 2**20 and b"libLLVM" not in data and b"libMLIR" not in data


TRAPS = """
import os, sys
from hlotag import _core
from hlotag.mlir import connection, probe, symbols
from hlotag.mlir.library import find_library
library = find_library()
addresses = symbols.addresses_of(library.path, connection._read_offsets(library))
unnoticed = []
for name in addresses:
    if (child := os.fork()) == 0:
        try:
            _core.install(addresses | {name: 8})
            probe.check_result()
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
