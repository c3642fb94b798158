# SPDX-License-Identifier: Apache-2.0
"""The addresses of C functions in a shared library that does not export them.

jaxlib's library does not export MLIR's C API. The official builds for Linux keep the full symbol table in the file. Other
builds may be stripped and export the functions.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    import numpy as np

Range = tuple[int, int]
"""Begin and end of executable code."""

# From <elf.h>.
_ET_DYN, _PT_LOAD, _PF_X, _SHT_SYMTAB, _SHT_STRTAB, _SHT_DYNSYM, _STT_FUNC = 3, 1, 1, 2, 3, 11, 2
_ELF_PREFIX = b"\x7fELF\x02\x01"  # 64-bit, little-endian
_ELF_HEADER = struct.Struct("<16x2HI3QI6H")
_ELF_SEGMENT = [("type", "<u4"), ("flags", "<u4"), ("", "V8"), ("address", "<u8"), ("", "V16"), ("size", "<u8"), ("", "V8")]
_ELF_SECTION = [("", "V4"), ("type", "<u4"), ("", "V16"), ("offset", "<u8"), ("size", "<u8"), ("link", "<u4"), ("rest", "V20")]
_ELF_SYMBOL = [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]


class LibraryError(RuntimeError):
    """A library cannot be read or used. The message names the file and the reason."""


def read_symbols(path: str, names: Collection[str]) -> dict[str, int]:
    """Finds C functions in the symbol table of a 64-bit, little-endian shared library, as offsets from its base address.

    Names are left out that are absent, defined twice, or outside the executable segments. Raises LibraryError if the file cannot
    be opened, is no such library, is truncated or inconsistent, or was stripped and exports none of the functions.
    """
    library = _File(path)
    symbols = _read_elf(library)
    found: dict[str, set[int]] = {}
    wanted = {name.encode(): name for name in names}
    prefix = os.path.commonprefix([*names])  # noqa: RUF071  (of characters)
    for text, address in symbols.with_prefix(prefix.encode()):
        if text in wanted and any(begin <= address < end for begin, end in symbols.code):
            found.setdefault(wanted[text], set()).add(address)
    offsets = {name: addresses.pop() for name, addresses in found.items() if len(addresses) == 1}
    if not offsets and not symbols.is_full:
        library.fail("has no symbol table (it was stripped)")
    return offsets


def addresses_of(path: str, offsets: dict[str, int]) -> dict[str, int]:
    """The addresses in this process of functions with these offsets in a library that is loaded, if they are in its code.

    Raises LibraryError if the library is not loaded, or its file was replaced since.
    """
    base, code = _find_loaded(path)
    addresses = {name: base + offset for name, offset in offsets.items()}
    return {name: at for name, at in addresses.items() if any(begin <= at < end for begin, end in code)}


class _Symbols(NamedTuple):
    """The functions of a file.

    Attributes:
        names: The offset of each name in `strings`.
        values: The address of each function.
        strings: The string table.
        code: Executable addresses.
        is_full: Whether the table has private functions too.
    """

    names: np.ndarray
    values: np.ndarray
    strings: np.ndarray
    code: Sequence[Range]
    is_full: bool

    def with_prefix(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Yields name and address of each function whose name has a prefix."""
        names, values = self.names.astype("u8"), self.values
        fits = names + len(prefix) <= len(self.strings)
        names, values = names[fits], values[fits]
        for i, byte in enumerate(prefix):
            fits = self.strings[names + i] == byte
            names, values = names[fits], values[fits]
        text = memoryview(self.strings)
        for name, value in zip(names.tolist(), values.tolist(), strict=True):
            yield bytes(text[name : name + 256]).split(b"\0", 1)[0], value


class _File:
    """A mapped file, of which only the pages that are read are loaded."""

    def __init__(self, path: str) -> None:
        self.path = path
        if os.path.exists(path) and not os.path.isfile(path):
            self.fail("is not a regular file")
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    self.fail("is empty")
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            self.fail(f"cannot be opened: {error.strerror}")

    def fail(self, reason: str) -> NoReturn:
        raise LibraryError(f"{self.path}: {reason}")

    def header(self, layout: struct.Struct) -> tuple[int, ...]:
        if len(self.data) < layout.size:
            self.fail("is truncated: its header lies beyond the end of the file")
        return layout.unpack_from(self.data)

    def table(self, what: str, layout: Any, offset: int, count: int) -> np.ndarray:
        """Returns an array in the file, without copying it."""
        import numpy as np

        kind = np.dtype(layout)
        if offset + count * kind.itemsize > len(self.data):
            self.fail(f"is truncated: its {what} lies beyond the end of the file")
        return np.frombuffer(self.data, kind, count, offset) if count else np.empty(0, kind)


def _read_elf(file: _File) -> _Symbols:
    if file.data[: len(_ELF_PREFIX)] != _ELF_PREFIX:
        file.fail("is not a 64-bit, little-endian ELF file")
    kind, _, _, _, segments_at, sections_at, _, _, segment_size, segments_count, section_size, count, _ = file.header(_ELF_HEADER)
    if kind != _ET_DYN:
        file.fail(f"is not a shared library (ELF type {kind})")
    if (segments_count and segment_size != 56) or (count and section_size != 64):
        file.fail("has headers of an unknown size")
    segments = file.table("program header table", _ELF_SEGMENT, segments_at, segments_count)
    sections = file.table("section header table", _ELF_SECTION, sections_at, count if sections_at else 0)
    kinds = sections["type"].tolist()
    at = next((kinds.index(kind) for kind in (_SHT_SYMTAB, _SHT_DYNSYM) if kind in kinds), None)
    if at is None:
        file.fail("has no symbol table (it was stripped)")
    link = int(sections["link"][at])
    if link >= len(kinds) or kinds[link] != _SHT_STRTAB:
        file.fail("has a symbol table without a string table")
    offset, size = (int(sections[field][at]) for field in ("offset", "size"))
    symbols = file.table("symbol table", _ELF_SYMBOL, offset, size // 24)
    strings = file.table("string table", "u1", int(sections["offset"][link]), int(sections["size"][link]))
    symbols = symbols[(symbols["info"] & 0xF == _STT_FUNC) & (symbols["section"] != 0)]
    code = segments[(segments["type"] == _PT_LOAD) & (segments["flags"] & _PF_X != 0)]
    return _Symbols(symbols["name"], symbols["value"], strings, _ranges(code), kinds[at] == _SHT_SYMTAB)


def _ranges(segments: np.ndarray) -> list[Range]:
    addresses, sizes = segments["address"].tolist(), segments["size"].tolist()
    return [(address, address + size) for address, size in zip(addresses, sizes, strict=True)]


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
