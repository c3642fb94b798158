# SPDX-License-Identifier: Apache-2.0
"""Files: whole or not there, private to the user, and no failure to write one ends a program."""

import errno
import os
import resource
import signal
import stat
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import hlotag
from hlotag._util.files import as_file_name, write_atomically
from hlotag.cli import opt_main
from hlotag.errors import PassError, TagError
from hlotag.lowering.reproducer import with_reproducer
from hlotag.mlir.modules import new_context, parse_module

MODULE = 'module @m {\n  func.func @f() {\n    return loc("x")\n  }\n}\n'


@contextmanager
def no_room() -> Iterator[None]:
    """A full disk, for every user and file system: no file of this process can grow."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def by_python(folder: Path, path: Path) -> str:
    try:
        write_atomically(path, "new")
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""


def by_command(folder: Path, path: Path) -> str:
    return "failed" if opt_main([str(folder.parent / "source.mlir"), "-o", str(path)]) else ""


WRITERS = pytest.mark.parametrize("write", [by_python, by_command])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "source.mlir").write_text(MODULE)
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@WRITERS
def test_a_full_disk_leaves_the_old_file_and_nothing_else(write, folder, capsys):
    path = folder / "out"
    path.write_text("old")
    with no_room():
        problem = write(folder, path)
    assert problem and (write is by_command or os.strerror(errno.EFBIG) in problem)
    assert [p.name for p in folder.iterdir()] == ["out"] and path.read_text() == "old"


@WRITERS
def test_an_old_file_is_replaced_behind_a_link_and_the_link_stays(write, folder):
    path, link = folder / "out", folder / "link"
    path.write_text("old")
    link.symlink_to(path)
    assert not write(folder, link)
    assert link.is_symlink() and path.read_text() != "old" and len(list(folder.iterdir())) == 2


@WRITERS
def test_what_is_no_file_is_written_to_as_it_is(write, folder):
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(fifo.read_text)
        assert not write(folder, fifo)
        assert read.result(timeout=60)
    assert not write(folder, Path("/dev/null"))
    assert stat.S_ISFIFO(fifo.stat().st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_results_follow_the_umask_and_kept_files_are_private(folder):
    umask = os.umask(0o027)
    try:
        by_command(folder, folder / "new")
        by_python(folder, folder / "kept")
        (folder / "old").touch()
        (folder / "old").chmod(0o604)
        by_command(folder, folder / "old")
    finally:
        os.umask(umask)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}
    assert modes == {"new": 0o640, "kept": 0o600, "old": 0o604}


def test_readers_never_see_half_a_file(tmp_path):
    path = tmp_path / "file"
    texts = [str(i) * 200_000 for i in range(4)]
    write_atomically(path, texts[0])
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(lambda: [write_atomically(path, t) for t in texts * 10]) for _ in range(4)]
        while not all(writer.done() for writer in writers):
            assert path.read_text() in texts
        assert [writer.exception() for writer in writers] == [None] * 4
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_dump_that_cannot_be_written_does_not_end_the_program(tmp_path):
    import jax

    warned = pytest.warns(RuntimeWarning, match="a dump could not be written: .*File too large")
    with hlotag.stage(), hlotag.dump_to(tmp_path / "dumps"), warned as caught, no_room():
        lowered = jax.jit(lambda x: x + 1).lower(1)
    assert [warning.filename for warning in caught] == [__file__]
    assert lowered.compile()(1) == 2
    assert list((tmp_path / "dumps").iterdir()) == []


@pytest.mark.parametrize("name", ["", "a" * 1_000_000, "層" * 1000, "../../x", "a\x00b", "\ud800"])
def test_any_name_becomes_one_of_a_file(name, tmp_path):
    made = as_file_name(name.encode(errors="replace").decode())
    assert "/" not in made and len(made.encode()) <= 128
    (tmp_path / f"x{made}").touch()


NO_RULES = {
    "binary": (b"\x7fELF\x00\xff", ""),
    "not UTF-8": (b"\xff\xfe", ""),
    "deep": (b"a = " + b"[" * 100_000, ""),
    "no list": (b"rule = 3", ""),
    "no pattern": (b"[[rule]]\nattrs = {}\n", ""),
    "a long key": (b"a.b.c" + b".d" * 10_000, ""),
    "syntax": (b'a = """\n\n"""\r\nb = 0o' + b"[" * 5_000, 4),
    "not UTF-8 in a line": (b'a = 1\nb = "\xff"', 2),
    "bits": (b'\n[[rule]]\nop = "sine"\nattrs = {k = 0x' + b"f" * 5_000 + b"}", 2),
}


@pytest.mark.parametrize("case", NO_RULES)
def test_rules_that_are_none_are_refused_at_their_line(case, tmp_path):
    content, line = NO_RULES[case]
    (tmp_path / "rules.toml").write_bytes(content)
    with pytest.raises(TagError, match=rf"rules\.toml(:{line}: |.*\(at line {line},)" if line else r"rules\.toml"):
        hlotag.load_rules(tmp_path / "rules.toml")


def test_a_file_of_rules_is_missing_or_empty(tmp_path):
    for name in ("missing.toml", "."):
        with pytest.raises(OSError, match=str(tmp_path)):
            hlotag.load_rules(tmp_path / name)
    (tmp_path / "rules.toml").touch()
    assert hlotag.load_rules(tmp_path / "rules.toml") == ()


def test_a_module_whose_name_is_no_utf8_can_be_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("HLOTAG_REPRODUCER_DIR", str(tmp_path))
    with new_context(), warnings.catch_warnings():
        module = parse_module('module @"\\FF\\FE" {}')
        error = with_reproducer(PassError("hlotag-finalize"), module, "hlotag-finalize")
    assert Path(error.reproducer).read_text().startswith("module")
