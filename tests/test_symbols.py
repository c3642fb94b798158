# SPDX-License-Identifier: Apache-2.0
"""The reader of symbol tables, on small libraries without code and on damaged ones."""

import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import requires
from hlotag import _core
from hlotag.mlir.symbols import LibraryError, addresses_of, read_symbols

FUNC, OBJECT = 2, 1
SYMTAB, STRTAB, DYNSYM = 2, 3, 11
ELF_HEADER, ELF_SEGMENT, ELF_SECTION = 64, 56, 64

ELF_SYMBOLS = [
    *[("mlirFoo", 0x1010, FUNC, 1), ("other", 0x1020, FUNC, 1), ("mlirBar", 0x1030, FUNC, 1)],
    *[("mlirFooLonger", 0x1040, FUNC, 1), ("mlirData", 0x1050, OBJECT, 1), ("mlirUndefined", 0x1060, FUNC, 0)],
    *[("mlirOutside", 0x2000, FUNC, 1), ("mlirTwice", 0x1070, FUNC, 1), ("mlirTwice", 0x1080, FUNC, 1)],
    *[("mlirAgain", 0x1090, FUNC, 1), ("mlirAgain", 0x1090, FUNC, 1)],
]
NAMES = ["mlirFoo", "mlirBar", "mlirData", "mlirUndefined", "mlirOutside", "mlirTwice", "mlirAgain", "mlirAbsent"]
FOUND = {"mlirFoo": 0x1010, "mlirBar": 0x1030, "mlirAgain": 0x1090}


def make_elf(symbols: Sequence[tuple[str, int, int, int]] = ELF_SYMBOLS, kind: int = SYMTAB) -> bytes:
    """A shared library: a segment of code, a symbol table and its strings."""
    table, strings = bytes(24), b"\0"
    for name, value, type_, section in symbols:
        table += struct.pack("<IBBHQQ", len(strings), type_, 0, section, value, 0)
        strings += name.encode() + b"\0"
    at = ELF_HEADER + ELF_SEGMENT
    header = struct.pack("<16s2HI3QI6H", b"\x7fELF\2\1", 3, 62, 1, 0, 64, at + len(table + strings), 0, 64, 56, 1, 64, 3, 0)
    code = struct.pack("<2I6Q", 1, 5, 0, 0x1000, 0x1000, 0x1000, 0x1000, 0)
    sections = bytes(ELF_SECTION)
    sections += struct.pack("<2I4Q2I2Q", 0, kind, 0, 0, at, len(table), 2, 0, 0, 24)
    sections += struct.pack("<2I4Q2I2Q", 0, STRTAB, 0, 0, at + len(table), len(strings), 0, 0, 0, 0)
    return header + code + table + strings + sections


def patched(content: bytes, at: int, layout: str, value: int) -> bytes:
    changed = bytearray(content)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], dict[str, int]]:
    def read(content: bytes) -> dict[str, int]:
        (tmp_path / "library.so").write_bytes(content)
        return read_symbols(str(tmp_path / "library.so"), NAMES)

    return read


def test_a_stripped_library_may_export_functions(read):
    assert read(make_elf()) == FOUND
    assert read(make_elf(kind=DYNSYM)) == FOUND


ELF = make_elf()
SECTIONS = len(ELF) - 3 * ELF_SECTION
REFUSED = {
    "empty": (b"", ""),
    "text": (b"MZ this is something else", "not a 64-bit, little-endian ELF file"),
    "32 bits": (patched(ELF, 4, "B", 1), "not a 64-bit, little-endian ELF file"),
    "program": (patched(ELF, 16, "<H", 2), "of ELF type 2"),
    "no sections": (patched(ELF, 60, "<H", 0), r"no symbol table \(it was stripped\)"),
    "no strings": (patched(ELF, SECTIONS + ELF_SECTION + 40, "<I", 9), ""),
    "far strings": (patched(ELF, SECTIONS + 2 * ELF_SECTION + 24, "<Q", 1 << 63), ""),
    "far symbols": (patched(ELF, SECTIONS + ELF_SECTION + 32, "<Q", (1 << 64) - 1), ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_damage_is_refused_with_the_reason(read, case):
    content, reason = REFUSED[case]
    with pytest.raises(LibraryError, match=rf"library\.so: cannot be read as a shared library: .*{reason}"):
        read(content)


@pytest.mark.parametrize("path", ["/nonexistent/lib.so", "/tmp"])
def test_what_is_no_file_is_refused(path):
    with pytest.raises(LibraryError, match="cannot be read"):
        read_symbols(path, NAMES)


def test_every_cut_is_refused_and_damage_raises_nothing_else(read):
    for length in range(1, len(ELF)):
        with pytest.raises(LibraryError):
            read(ELF[:length])
    generator = random.Random(0)
    for _ in range(2000):
        content = bytearray(ELF)
        for _ in range(generator.randint(1, 4)):
            content[generator.randrange(len(content))] = generator.randrange(256)
        with suppress(LibraryError):
            read(bytes(content))


def test_a_library_that_is_not_loaded_is_refused(tmp_path):
    (tmp_path / "library.so").write_bytes(ELF)
    with pytest.raises(LibraryError, match="not the file that this process has loaded"):
        addresses_of(str(tmp_path / "library.so"), FOUND)


EM_AARCH64 = 183  # From <elf.h>.
RELEASES = ["0.10.2", "0.12.0.1"]  # the oldest and the newest supported


def library_for_aarch64(version: str, directory: Path) -> Path:
    """The library of jaxlib's wheel, which is read as a file and not run."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.12"]
    command += ["--platform=manylinux_2_27_aarch64", f"--dest={directory}", f"jaxlib=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        requires.unmet(f"jaxlib {version} for aarch64 cannot be downloaded: {done.stderr.strip()[-200:]}")
    (wheel,) = directory.glob("*.whl")
    return Path(zipfile.ZipFile(wheel).extract("jaxlib/libjax_common.so", directory))


@pytest.mark.slow
@pytest.mark.parametrize("version", RELEASES)
def test_every_function_is_in_the_library_for_aarch64(version: str, tmp_path: Path):
    path = library_for_aarch64(version, tmp_path)
    with path.open("rb") as file:
        assert struct.unpack_from("<H", file.read(20), 18) == (EM_AARCH64,)
    offsets = read_symbols(str(path), _core.required_symbols())
    path.unlink()
    assert offsets.keys() == set(_core.required_symbols())
