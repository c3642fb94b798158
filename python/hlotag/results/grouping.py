# SPDX-License-Identifier: Apache-2.0
"""What are the rows of a table grouped by? A key, a line, a scope or an operation, for time, work and memory alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from hlotag._util.arguments import show
from hlotag.errors import ArgumentError
from hlotag.results.tags import Op
from hlotag.tagging import keys as known_keys

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

Grouping = str | Sequence[str]
"""A key, "source", "scope", "scope:2" or "operation"; or several of them, whose values are combined."""
Reader = Callable[[Op, str], str]
"""Returns the value of an operation in a scope; empty if it has none."""
Values = Mapping[int, Mapping[str, str]]
"""By id of an operation, its tags."""

OTHER_NAMES = ("source", "scope", "scope:N", "operation")
_SCOPE = re.compile(r"scope(?::([1-9]\d*))?")
TAG = "tag:"


def read_values(audit: Audit) -> Values:
    """The tags of each operation.

    A collective that XLA or JAX's autodiff inserted has those of the operations that it serves, too.
    """
    values: dict[int, dict[str, str]] = {}
    for tag in audit.tags:
        values.setdefault(tag.op.id, {})[tag.key] = tag.value
    for op in audit.ops:
        for other in op.serves:
            values[op.id] = values.get(other, {}) | values.get(op.id, {})
    return values


def leave_out_libraries(values: Values) -> Values:
    """The tags without entries that a library wrote for one operation."""
    own = set(list_keys(values))
    return {op: {key: value for key, value in found.items() if key in own} for op, found in values.items()}


def list_keys(values: Values) -> list[str]:
    """The keys of the tags, without those of libraries' entries."""
    keys = dict.fromkeys(key for found in values.values() for key in found)
    return [key for key in keys if not known_keys.is_left(key)]


def title_of(by: Grouping) -> str:
    """What the rows of a grouping are called. Raises ArgumentError if `by` is neither a text nor several."""
    if isinstance(by, str):
        return by
    if not isinstance(by, Iterable) or not all(isinstance(name, str) for name in by):
        raise ArgumentError(f"by= must be a key, source, scope, scope:N or operation, or a tuple of these, got {show(by)}")
    return ", ".join(by)


def make_reader(by: Grouping, values: Values, program: str, keys: Collection[str] | None = None) -> Reader:
    """Makes what reads the value of a row.

    Args:
        by: A key; `source`; `scope`, or `scope:2` for its first two names; `operation`; or several of them, whose values are
            combined. `tag:source` is a key of this name.
        values: The tags.
        program: The name of the program, for errors.
        keys: The keys that may be named; by default, those of the tags.

    Returns:
        The reader.

    Raises:
        ArgumentError: `by` names a key that no operation has.
    """
    known = list_keys(values) if keys is None else keys
    readers = [_read_one(name, values, program, known) for name in ([by] if isinstance(by, str) else by)]
    if len(readers) == 1:
        return readers[0]

    def combined(op: Op, scope: str) -> str:
        found = [read(op, scope) for read in readers]
        return ", ".join(value or "-" for value in found) if any(found) else ""

    return combined


def _read_one(name: str, values: Values, program: str, keys: Collection[str]) -> Reader:
    if name == "source":
        return lambda op, _: op.source
    if name == "operation":
        return lambda op, _: op.name.rpartition(".")[2]
    if scope := _SCOPE.fullmatch(name):
        depth = int(scope[1]) if scope[1] else None
        return lambda _, path: "/".join(path.split("/")[:depth])
    key = name.removeprefix(TAG)
    if key not in keys and not any(key in found for found in values.values()):
        choices = ", ".join([*keys, *OTHER_NAMES])
        raise ArgumentError(f"by={name!r}: no operation of {program} has a tag with this key; choose from {choices}")
    return lambda op, _: values.get(op.id, {}).get(key, "")
