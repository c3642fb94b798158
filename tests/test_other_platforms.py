# SPDX-License-Identifier: Apache-2.0
"""jaxlib for aarch64 has every C function that hlotag calls; its library is read as a file, and not run."""

import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import requires
from hlotag import _core
from hlotag.mlir.symbols import read_symbols

pytestmark = pytest.mark.slow

EM_AARCH64 = 183  # From <elf.h>.
RELEASES = ["0.10.2", "0.12.0.1"]  # the oldest and the newest supported


def library(version: str, directory: Path) -> Path:
    """The library of jaxlib's wheel for aarch64."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.12"]
    command += ["--platform=manylinux_2_27_aarch64", f"--dest={directory}", f"jaxlib=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        requires.unmet(f"jaxlib {version} for aarch64 cannot be downloaded: {done.stderr.strip()[-200:]}")
    (wheel,) = directory.glob("*.whl")
    return Path(zipfile.ZipFile(wheel).extract("jaxlib/libjax_common.so", directory))


@pytest.mark.parametrize("version", RELEASES)
def test_the_reader_finds_every_function(version: str, tmp_path: Path):
    path = library(version, tmp_path)
    with path.open("rb") as file:
        assert struct.unpack_from("<H", file.read(20), 18) == (EM_AARCH64,)
    offsets = read_symbols(str(path), _core.required_symbols())
    path.unlink()
    assert offsets.keys() == set(_core.required_symbols())
