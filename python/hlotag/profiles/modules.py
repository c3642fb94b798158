# SPDX-License-Identifier: Apache-2.0
"""The modules in a trace: JAX's profiler writes the optimized module of each program that ran into it.

Names and field numbers are those of XLA's `xplane.proto` and `xplane_schema.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from hlotag._util import protobuf
from hlotag.errors import ParseError
from hlotag.hlo import HloModule, proto

_PLANE, _MODULE = "/host:metadata", "Hlo Proto"
_CLASSES = protobuf.classes(
    {
        "XStat": {"metadata_id": (1, "int64"), "bytes_value": (6, "bytes")},
        "XStatMetadata": {"name": (2, "string")},
        "StatEntry": {"key": (1, "int64"), "value": (2, "XStatMetadata")},
        "XEventMetadata": {"name": (2, "string"), "stats": (5, "XStat[]")},
        "EventEntry": {"value": (2, "XEventMetadata")},
        "XPlane": {"name": (2, "string"), "events": (4, "EventEntry[]"), "stats": (5, "StatEntry[]")},
        "XSpace": {"planes": (1, "XPlane[]")},
    }
)


def split_name(program: str) -> tuple[str, str]:
    """The name of a program's module and the program's number: `jit_step` and "6" of `jit_step(6)`; "" for none."""
    name, _, number = program.partition("(")
    return name, number.removesuffix(")")


def list_modules(data: bytes, file: Path) -> dict[str, HloModule]:
    """The modules in a trace, by the names and numbers of programs, `jit_step(6)`. Raises ParseError if the file is no trace."""
    try:
        space = _CLASSES["XSpace"].FromString(data)
    except DecodeError as error:
        raise ParseError(f"{file}: not a trace of JAX's profiler: {error}") from None
    return {name: module for plane in space.planes if plane.name == _PLANE for name, module in _modules_of(plane, file)}


def _modules_of(plane: Any, file: Path) -> Iterator[tuple[str, HloModule]]:
    names = {entry.key: entry.value.name for entry in plane.stats}
    for entry in plane.events:
        for stat in entry.value.stats:
            if names.get(stat.metadata_id) == _MODULE:
                module = HloModule(proto.module_of_dump(stat.bytes_value, f"{file}"))
                number = split_name(entry.value.name)[1]
                yield f"{module.name}({number})" if number else module.name, module
