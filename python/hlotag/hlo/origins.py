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

from jax.extend.mlir import ir

from hlotag.pipeline import to_bytecode

ATTRIBUTES = "mhlo.frontend_attributes"

# A path component in front of the others, since XLA names instructions after the last one. The control character keeps it apart
# from names of users.
_NUMBER = re.compile(r"\x01([0-9a-f]+):([0-9]+)\x01/")
_FILE = re.compile(r'"([^"]*)":(\d+):(\d+)')


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

    Attributes:
      token: names the module; equal for equal modules, in every process.
      module: the numbered module.
      operations: by number.
    """

    def __init__(self, module: Any, salt: str = ""):
        self.module = module
        self.token = _digest(module, salt)
        self.operations = list(walk(module.operation))
        with module.context:
            self._number()

    def __len__(self) -> int:
        return len(self.operations)

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
    def attributes(self) -> list[dict[str, str]]:
        """The frontend attributes of each operation; those of XLA's text form only, which are all that XLA takes."""
        return [entries_of(operation) for operation in self.operations]

    def ids_of(self, op_name: str) -> tuple[int, ...]:
        """The numbers in an `op_name`, one for each operation that XLA merged, the first first; callers are left out."""
        found = []
        for part in op_name.split(";"):
            numbers = [int(number) for token, number in _NUMBER.findall(part) if token == self.token]
            if numbers:
                found.append(numbers[-1])
        return tuple(dict.fromkeys(found))

    def _number(self) -> None:
        following: tuple[Any, str] | None = None
        for number in range(len(self.operations) - 1, -1, -1):
            operation = self.operations[number]
            location = operation.location
            # XLA gives constants no metadata, and would make up another instruction name where there is none.
            if operation.name == "stablehlo.constant" or not isinstance(location, ir.NameLoc):
                continue
            if operation.name != "stablehlo.broadcast_in_dim":
                name = self._name(number, location)
                following = location, name
            elif following is not None and following[0] == location:
                # Operand and operation of one equation, which XLA may merge: where the locations are equal, so must the names be.
                name = following[1]
            elif "/" in location.name_str:
                name = self._name(number, location)
            else:
                continue
            operation.location = ir.Location.name(name, location.child_loc)

    def _name(self, number: int, location: Any) -> str:
        return f"\x01{self.token}:{number}\x01/{location.name_str}"


def without_numbers(op_name: str) -> str:
    """`op_name` as JAX writes it."""
    return _NUMBER.sub("", op_name)


def _digest(module: Any, salt: str) -> str:
    """Of all that the table says: the module with its locations."""
    return hashlib.blake2b(to_bytecode(module), digest_size=8, key=salt.encode()).hexdigest()


def _name_of(location: Any) -> str:
    return location.name_str if isinstance(location, ir.NameLoc) else ""


def _function_of(operation: Any) -> str:
    while operation is not None and "sym_name" not in operation.attributes:
        operation = operation.parent
    return ir.StringAttr(operation.attributes["sym_name"]).value if operation is not None else ""


def entries_of(operation: Any) -> dict[str, str]:
    """The frontend attributes of an operation that are text."""
    if ATTRIBUTES not in operation.attributes:
        return {}
    entries = ir.DictAttr(operation.attributes[ATTRIBUTES])
    return {entry.name: entry.attr.value for entry in entries if isinstance(entry.attr, ir.StringAttr)}


def walk(parent: Any) -> Iterator[Any]:
    """The operations in an operation, each before those in its regions."""
    for region in parent.regions:
        for block in region.blocks:
            for view in block.operations:
                operation = view.operation
                yield operation
                yield from walk(operation)
