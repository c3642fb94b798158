# SPDX-License-Identifier: Apache-2.0
"""The operations of a StableHLO module, numbered, so that what XLA makes of them can be traced back.

The number is in the operation's location name, which XLA carries as `OpMetadata.op_name` through its passes: it joins the names
of operations that it merges by `;`, and writes `call/callee` when it inlines. A name costs nothing there, while a frontend
attribute with a unique value would keep equal kernels apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from hlotag.pipeline import to_bytecode

# Where entries come from, on the operations of a program that is audited.
RECORDS = "hlotag.origins"

# A path component in front of the others, since XLA names instructions after the last one. The control character keeps it apart
# from names of users.
_NUMBER = re.compile(r"\x01([0-9a-f]+):([0-9]+)\x01/")
# As most names are: one number, in front.
_NUMBERED = re.compile(_NUMBER.pattern + r"([^\x01;]*[^\x01;)])")
# How XLA writes the names of combined collectives, where they differ; ours differ in their numbers.
_COMBINED = re.compile(r"/\(([^():]+)(?::\1)+\)$")
_FILE = re.compile(r'"([^"]*)":(\d+):(\d+)')

# What an `op_name` says: its numbers, those of callers, and the name without them.
_Name = tuple[tuple[int, ...], set[int], str]


@dataclass(frozen=True, slots=True)
class Origin:
    """An operation of the program as XLA got it.

    Attributes:
      id: its number, counted in the order of the module's text.
      op: e.g. "stablehlo.dot_general".
      name: its location's name, scopes included, e.g. "jit(f)/layer_0/dot_general"; in a called function, from there on.
      source: "file:line:column" of the innermost frame, or "".
      function: the symbol that it is in.
      phase: "forward", "backward", or "" where the name does not say it (in functions that are called).
      attributes: its frontend attributes.
    """

    id: int
    op: str
    name: str
    source: str
    function: str
    phase: str
    attributes: dict[str, str]


class Origins:
    """The operations of one module, by number.

    Args:
      module: an `ir.Module`, which is kept and whose locations get the numbers. Make a copy of a module that others see.
      salt: makes the token another one.
      every: numbers also the operands of an equation that XLA might merge with it, for reports; by default these share its
        number, so that XLA's metadata stay as they were.

    Attributes:
      token: names the module; equal for equal modules, in every process.
      module: the numbered module.
      names: by number, e.g. "stablehlo.dot_general".
      attributes: by number, the frontend attributes; those of XLA's text form only, which are all that XLA takes. Equal ones
        are one object.
      helpers: by number, those of the operations before it that have its number in their names, since they are part of it.
    """

    def __init__(self, module: Any, salt: str = "", *, every: bool = False):
        from hlotag import _core, _host

        _host.ensure()
        self.module = module
        self.token = _digest(module, salt)
        self.names, places, self.attributes, helpers = _core.number_operations(module.operation._CAPIPtr, self.token, every=every)
        self.helpers: dict[int, list[int]] = {}
        for helper, number in helpers:
            self.helpers.setdefault(number, []).append(helper)
        self._names = _Names(self.token, places)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> Origin:
        operation = self.operations[number]
        name = _NUMBER.sub("", _name_of(operation.location))
        found = _FILE.search(str(operation.location))
        phase = "backward" if "transpose(" in name else "forward" if "/" in name else ""
        return Origin(
            number,
            operation.name,
            name,
            ":".join(found.groups()) if found else "",
            _function_of(operation),
            phase,
            self.attributes[number],
        )

    def __iter__(self) -> Iterator[Origin]:
        return (self[number] for number in range(len(self)))

    @cached_property
    def operations(self) -> list[Any]:
        """The operations themselves, by number."""
        return list(walk(self.module.operation))

    def ids_of(self, op_name: str) -> tuple[int, ...]:
        """The numbers in an `op_name`, one for each operation that XLA merged, the first first; callers are left out."""
        return self._names[op_name][0]

    def callers_of(self, op_name: str) -> set[int]:
        """The numbers in an `op_name` of the calls that XLA inlined."""
        return self._names[op_name][1]

    def plain(self, op_name: str) -> str:
        """`op_name` as XLA would have written it without numbers."""
        return self._names[op_name][2]


class _Names(dict[str, "_Name"]):
    """What `op_name`s say, read when they are first asked for."""

    def __init__(self, token: str, places: list[int]):
        self._token, self._places = token, places

    def __missing__(self, op_name: str) -> _Name:
        self[op_name] = name = self._parse(op_name)
        return name

    def _parse(self, op_name: str) -> _Name:
        if "\x01" not in op_name:
            return (), set(), op_name
        if (found := _NUMBERED.fullmatch(op_name)) and found[1] == self._token:
            return (int(found[2]),), set(), found[3]
        paths = self._paths(op_name)
        ids = tuple(dict.fromkeys(path[-1] for path in paths if path))
        return ids, {number for path in paths for number in path[:-1]}, self._plain(op_name, ids)

    def _plain(self, op_name: str, ids: tuple[int, ...]) -> str:
        # Equal names are combined to that name, equal locations merged to that location, and a caller that is the beginning of
        # its callee's name is not repeated.
        parts = [_joined(_NUMBER.split(part)[::3]) for part in op_name.split(";")]
        name = ";".join(parts)
        if name.endswith(")"):
            name = _COMBINED.sub(r"/\1", name)
        if len(parts) == 1 or len(set(parts)) > 1:
            return name
        return parts[0] if len({self._places[number] for number in ids}) == 1 else name

    def _paths(self, op_name: str) -> list[list[int]]:
        found = _NUMBER.findall(op_name)
        if len(found) < 2:
            return [[int(number)] for token, number in found if token == self._token]
        paths = []
        for name in op_name.split(";"):
            callers, _, combined = name.partition("/(\x01")
            parts = [f"{callers}/\x01{part}" for part in combined.split(":\x01")] if combined else [name]
            paths += [[int(number) for token, number in _NUMBER.findall(part) if token == self._token] for part in parts]
        return paths


def _joined(names: list[str]) -> str:
    """The name of an operation in inlined functions: those of its callers, each with a slash at the end, and its own."""
    joined = ""
    for name in names:
        joined = name if joined and name.startswith(joined) else joined + name
    return joined


def _digest(module: Any, salt: str) -> str:
    """Of all that the table says: the module with its locations."""
    return hashlib.blake2b(to_bytecode(module), digest_size=8, key=salt.encode()).hexdigest()


def _name_of(location: Any) -> str:
    return location.name_str if isinstance(location, ir.NameLoc) else ""


def _function_of(operation: Any) -> str:
    while operation is not None and "sym_name" not in operation.attributes:
        operation = operation.parent
    return ir.StringAttr(operation.attributes["sym_name"]).value if operation is not None else ""


def walk(parent: Any) -> Iterator[Any]:
    """The operations in an operation, each before those in its regions, which may be nested deeper than calls in Python."""
    pending = [directly_in(parent)]
    while pending:
        operation = next(pending[-1], None)
        if operation is None:
            pending.pop()
            continue
        yield operation
        pending.append(directly_in(operation))


def directly_in(parent: Any) -> Iterator[Any]:
    """The operations of an operation's own regions."""
    for region in parent.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
