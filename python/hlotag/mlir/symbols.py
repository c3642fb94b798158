# SPDX-License-Identifier: Apache-2.0
"""The addresses of C functions in a shared library that does not export them.

jaxlib's library does not export MLIR's C API. The official builds for Linux keep the full symbol table in the file. Other
builds may be stripped and export the functions.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Range = tuple[int, int]
"""Begin and end of executable code."""

# From <elf.h>.
_ET_DYN, _PT_LOAD, _PF_X, _SHT_SYMTAB, _SHT_DYNSYM, _STT_FUNC = 3, 1, 1, 2, 11, 2
_ELF_PREFIX = b"\x7fELF\x02\x01"  # 64-bit, little-endian
_ELF_HEADER = struct.Struct("<16x2HI3QI6H")
_ELF_SEGMENT = [("type", "<u4"), ("flags", "<u4"), ("", "V8"), ("address", "<u8"), ("", "V16"), ("size", "<u8"), ("", "V8")]
_ELF_SECTION = [("", "V4"), ("type", "<u4"), ("", "V16"), ("offset", "<u8"), ("size", "<u8"), ("link", "<u4"), ("rest", "V20")]
_ELF_SYMBOL = [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
_MAX_NAME = 256


class LibraryError(RuntimeError):
    """A library cannot be read or used. The message names the file and the reason."""


def read_symbols(path: str, names: Collection[str]) -> dict[str, int]:
    """Finds C functions in the symbol table of a 64-bit, little-endian shared library, as offsets from its base address.

    Names are left out that are absent, defined twice, or outside the executable segments. Raises LibraryError if the file cannot
    be read as such a library, or has no symbol table.
    """
    try:
        values, texts, strings = _read_functions(path)
        return _select(values, texts, strings, names)
    except (OSError, ValueError, OverflowError, IndexError, struct.error) as error:
        raise LibraryError(f"{path}: cannot be read as a shared library: {error}") from error


def _read_functions(path: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The address of each function in executable segments, the offset of its name among the strings, and the strings."""
    import numpy as np

    data = np.memmap(path, "u1", "r")

    def table(layout: Any, offset: int, count: int) -> np.ndarray:
        return np.frombuffer(data, layout, count, offset) if count else np.empty(0, layout)

    if data[: len(_ELF_PREFIX)].tobytes() != _ELF_PREFIX:
        raise ValueError("it is not a 64-bit, little-endian ELF file")
    kind, _, _, _, segments_at, sections_at, _, _, _, segments_count, _, count, _ = _ELF_HEADER.unpack_from(data)
    if kind != _ET_DYN:
        raise ValueError(f"it is of ELF type {kind}")
    segments, sections = table(_ELF_SEGMENT, segments_at, segments_count), table(_ELF_SECTION, sections_at, count)
    kinds = sections["type"].tolist()
    at = next((kinds.index(kind) for kind in (_SHT_SYMTAB, _SHT_DYNSYM) if kind in kinds), None)
    if at is None:
        raise ValueError("it has no symbol table (it was stripped)")
    symbols = table(_ELF_SYMBOL, int(sections["offset"][at]), int(sections["size"][at]) // 24)
    of_strings = sections[int(sections["link"][at])]
    symbols = symbols[(symbols["info"] & 0xF == _STT_FUNC) & (symbols["section"] != 0)]
    values, is_code = symbols["value"], np.zeros(len(symbols), bool)
    for segment in segments[(segments["type"] == _PT_LOAD) & (segments["flags"] & _PF_X != 0)]:
        is_code |= (segment["address"] <= values) & (values - segment["address"] < segment["size"])
    return values[is_code], symbols["name"][is_code], table("u1", int(of_strings["offset"]), int(of_strings["size"]))


def _select(values: np.ndarray, texts: np.ndarray, strings: np.ndarray, names: Collection[str]) -> dict[str, int]:
    """The functions with these names. Compares the prefix that they have in common by columns."""
    prefix = os.path.commonprefix([*names]).encode()  # noqa: RUF071  (of characters)
    texts = texts.astype("u8")
    for number, byte in enumerate(prefix):
        fits = strings[(texts + number).clip(max=len(strings) - 1)] == byte
        values, texts = values[fits], texts[fits]
    wanted = {name.encode(): name for name in names}
    found: dict[str, set[int]] = {}
    for at, value in zip(texts.tolist(), values.tolist(), strict=True):
        if (name := wanted.get(bytes(strings[at : at + _MAX_NAME]).split(b"\0", 1)[0])) is not None:
            found.setdefault(name, set()).add(value)
    return {name: addresses.pop() for name, addresses in found.items() if len(addresses) == 1}


def addresses_of(path: str, offsets: dict[str, int]) -> dict[str, int]:
    """The addresses in this process of functions with these offsets in a library that is loaded, if they are in its code.

    Raises LibraryError if the library is not loaded, or its file was replaced since.
    """
    base, code = _find_loaded(path)
    addresses = {name: base + offset for name, offset in offsets.items()}
    return {name: at for name, at in addresses.items() if any(begin <= at < end for begin, end in code)}


def _find_loaded(path: str) -> tuple[int, list[Range]]:
    """Returns the base address and the code of a loaded library.

    The kernel writes " (deleted)" behind the name of a file that was replaced.
    """
    name = re.escape(os.fsencode(os.path.realpath(path)))
    line = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+ +" + name + rb"$", re.MULTILINE)
    with open("/proc/self/maps", "rb") as file:
        parts = [(int(begin, 16), int(end, 16), flags, int(at, 16)) for begin, end, flags, at in line.findall(file.read())]
    if not parts:
        raise LibraryError(f"{path}: is not the file that this process has loaded: it was replaced since; restart the process")
    begin, _, _, offset = parts[0]
    return begin - offset, [(begin, end) for begin, end, flags, _ in parts if b"x" in flags]
