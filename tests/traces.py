# SPDX-License-Identifier: Apache-2.0
"""Traces in the format of JAX's profiler, as text: what a machine with GPUs or TPUs would have written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jax.profiler import ProfileData

# A name, the start and the duration in nanoseconds, and the stats.
Event = tuple[str, int, int, Mapping[str, Any]]
Planes = Mapping[str, Mapping[str, Sequence[Event]]]


def write(folder: Path, planes: Planes) -> Path:
    """Writes a trace."""
    text = "\n".join(_plane(number, name, lines) for number, (name, lines) in enumerate(planes.items(), 1))
    file = folder / "machine.xplane.pb"
    file.write_bytes(ProfileData.text_proto_to_serialized_xspace(text))
    return file


def _plane(number: int, name: str, lines: Mapping[str, Sequence[Event]]) -> str:
    events: dict[str, int] = {}
    stats: dict[str, int] = {}
    body = [_line(at, line, lines[line], events, stats) for at, line in enumerate(lines, 1)]
    for kind, table in (("event", events), ("stat", stats)):
        body += [f'{kind}_metadata {{ key: {n} value {{ id: {n} name: "{text}" }} }}' for text, n in table.items()]
    return f'planes {{ id: {number} name: "{name}"\n' + "\n".join(body) + "\n}"


def _line(number: int, name: str, events: Sequence[Event], names: dict[str, int], keys: dict[str, int]) -> str:
    def index(table: dict[str, int], text: str) -> int:
        return table.setdefault(text, len(table) + 1)

    def stat(key: str, value: Any) -> str:
        shown = f'str_value: "{value}"' if isinstance(value, str) else f"uint64_value: {value}"
        return f"stats {{ metadata_id: {index(keys, key)} {shown} }}"

    body = [
        f"events {{ metadata_id: {index(names, text)} offset_ps: {start * 1000} duration_ps: {duration * 1000} "
        + " ".join(stat(*item) for item in stats.items())
        + " }"
        for text, start, duration, stats in events
    ]
    return f'lines {{ id: {number} name: "{name}" ' + "\n".join(body) + " }"
