# SPDX-License-Identifier: Apache-2.0
"""jaxlib for aarch64 and for macOS has every C function that hlotag calls; its library is read as a file, and not run."""

from __future__ import annotations

import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import requires
from hlotag import _core

pytestmark = pytest.mark.slow

EM_AARCH64 = 183  # From <elf.h>.
# From Apple's <mach-o/loader.h> and <mach-o/nlist.h>.
MH_MAGIC_64, MH_DYLIB, CPU_TYPE_ARM64 = 0xFEEDFACF, 6, 0x0100000C
LC_SYMTAB, LC_SEGMENT_64 = 0x2, 0x19
N_STAB, N_TYPE, N_SECT = 0xE0, 0x0E, 0x0E
VM_PROT_EXECUTE = 4
NLIST = np.dtype([("name", "<u4"), ("type", "u1"), ("section", "u1"), ("desc", "<u2"), ("value", "<u8")])


def functions(library: bytes, names: list[str]) -> dict[str, int]:
    """How many definitions in executable segments each of `names` has in a Mach-O library."""
    magic, cpu, _, kind, commands = struct.unpack_from("<5I", library)
    assert (magic, cpu, kind) == (MH_MAGIC_64, CPU_TYPE_ARM64, MH_DYLIB)
    at, code = 32, []
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", library, at)
        if command == LC_SEGMENT_64:
            begin, length, _, _, _, protection = struct.unpack_from("<4Q2I", library, at + 24)
            code += [(begin, begin + length)] if protection & VM_PROT_EXECUTE else []
        elif command == LC_SYMTAB:
            symbols_at, count, strings_at, strings_size = struct.unpack_from("<4I", library, at + 8)
        at += size
    strings = library[strings_at : strings_at + strings_size]
    table = np.frombuffer(library, NLIST, count, symbols_at)
    defined = (table["type"] & N_STAB == 0) & (table["type"] & N_TYPE == N_SECT)
    executable = np.any([(table["value"] >= begin) & (table["value"] < end) for begin, end in code], axis=0)
    table = table[defined & executable]
    places = {name: strings.find(b"\0_" + name.encode() + b"\0") + 1 for name in names}  # C names have an underscore.
    return {name: int((table["name"] == place).sum()) if place else 0 for name, place in places.items()}


RELEASES = ["0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.0.1"]


def library(version: str, platform: str, name: str, directory: Path) -> Path:
    """A library of jaxlib's wheel for a platform."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.12"]
    command += [f"--platform={platform}", f"--dest={directory}", f"jaxlib=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        requires.unmet(f"jaxlib {version} for {platform} cannot be downloaded: {done.stderr.strip()[-200:]}")
    (wheel,) = directory.glob("*.whl")
    return Path(zipfile.ZipFile(wheel).extract(f"jaxlib/{name}", directory))


@pytest.mark.parametrize("version", RELEASES)
def test_the_loader_finds_every_function_for_aarch64(version: str, tmp_path: Path):
    path = library(version, "manylinux_2_27_aarch64", "libjax_common.so", tmp_path)
    assert path.read_bytes()[18:20] == struct.pack("<H", EM_AARCH64)
    assert _core.read_symbols(str(path)).keys() == set(_core.required_symbols())
    path.unlink()


@pytest.mark.parametrize("version", RELEASES)
def test_the_library_for_macos_has_every_function(version: str, tmp_path: Path):
    path = library(version, "macosx_11_0_arm64", "libjax_common.dylib", tmp_path)
    found = functions(path.read_bytes(), [*_core.required_symbols(), "mlirNoSuchFunction"])
    path.unlink()
    assert found.pop("mlirNoSuchFunction") == 0
    assert {name: count for name, count in found.items() if count != 1} == {}
