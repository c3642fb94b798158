# SPDX-License-Identifier: Apache-2.0
"""The programs in a trace: JAX's profiler writes the optimized module of each program that ran into it.

Names and field numbers are those of XLA's `xplane.proto` and `xplane_schema.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from hlotag._text import list_some
from hlotag._util import protobuf
from hlotag._util.groups import group
from hlotag.audits.dumps import audit_optimized
from hlotag.audits.report import Reported
from hlotag.errors import ParseError
from hlotag.hlo import HloModule, proto
from hlotag.hlo.work import measure
from hlotag.profiles import trace

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


def audit_traced(file: Path, name: str | None = None) -> Reported:
    """Audits a program that ran in a trace: the one with this name, by default the one with most time.

    Tags are those of its instructions. Raises ParseError if the file is no trace, or has no module of such a program.
    """
    modules = list_modules(file)
    ran = [name] if name in modules else trace.list_programs(file)
    chosen = [each for each in ran if each in modules and name in (None, each)]
    if not chosen:
        seen = list_some([each for each in ran if each in modules]) or "none"
        raise ParseError(f"{file}: the trace has no module of {name or 'a program that ran'}; modules of what ran: {seen}")
    # Of programs of one name, the largest.
    return audit_optimized(max(modules[chosen[0]], key=len))


def check_fits(audit: Reported, file: Path) -> None:
    """Raises ParseError if a trace has modules with the name of the audit's, and all of them compute something else."""
    modules = list_modules(file).get(audit.name, ())
    if modules and not any(_computes(module, audit) for module in modules):
        raise ParseError(
            f"the trace and the audit of {audit.name} are of different programs: instructions of one name have other shapes; "
            "audit the program that was traced, with the same shapes, options and versions, or leave the audit out"
        )


def list_modules(file: Path) -> dict[str, list[HloModule]]:
    """The modules in a trace, by name. Raises ParseError if the file is no trace."""
    try:
        space = _CLASSES["XSpace"].FromString(file.read_bytes())
    except DecodeError as error:
        raise ParseError(f"{file}: not a trace of JAX's profiler: {error}") from None
    return group((module.name, module) for plane in space.planes if plane.name == _PLANE for module in _modules_of(plane, file))


def _modules_of(plane: Any, file: Path) -> Iterator[HloModule]:
    names = {entry.key: entry.value.name for entry in plane.stats}
    for entry in plane.events:
        for stat in entry.value.stats:
            if names.get(stat.metadata_id) == _MODULE:
                yield HloModule(proto.write(proto.module_of_dump(stat.bytes_value, f"{file}")))


def _computes(module: HloModule, audit: Reported) -> bool:
    """Whether the instructions that a module and an audit have in common do the same flops."""
    flops = {instruction.name: work.flops for instruction, work in measure(module).items()}
    shared = [each for each in audit.instructions if each.name in flops]
    return all(each.flops == flops[each.name] for each in shared)
