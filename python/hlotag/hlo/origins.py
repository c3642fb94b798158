# SPDX-License-Identifier: Apache-2.0
"""The numbers by which HLO instructions are joined to StableHLO operations.

The number is in the operation's location name, which XLA carries through its passes as `OpMetadata.op_name`. XLA joins the names
of merged operations with `;`, and writes `call/callee` when it inlines. Names do not affect XLA; unique frontend attributes would
keep XLA from merging equal kernels.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from jaxlib.mlir import ir

from hlotag import _core
from hlotag.mlir import connection
from hlotag.mlir.modules import to_bytecode

# The attribute with the origins of an operation's entries, in an audited program.
RECORDS = "hlotag.origins"

# The name of a call or loop itself, before a number in it: no scope.
_CALL = re.compile(r"(?:^|(?<=/))[^/(\x01]+/(?=\x01)")
_FILE = re.compile(r'"([^"]*)":(\d+):(\d+)')
# A number in a text of XLA's, which writes the control character as it is, as C or as JSON.
_NUMBER = re.compile(r"(?:\x01|\\001|\\u0001)(?P<token>[0-9a-f]{16}):(?P<number>\d+)(?:\x01|\\001|\\u0001)/?")
_NAMED = 4  # operations that an error of XLA's is explained by, at most


@dataclass(frozen=True, slots=True)
class Origin:
    """An operation of the module that XLA compiles.

    Attributes:
        id: The number, in the order of the module's text.
        op: E.g. "stablehlo.dot_general".
        name: The location's name with scopes, e.g. "jit(f)/layer_0/dot_general"; in a called function, relative to it.
        source: "file:line:column" of the innermost frame, or "".
        function: The symbol of the function with the operation.
        phase: "forward", "backward" or "recomputed"; "" if the name does not say: outside of derivatives, in called functions.
        attributes: Its frontend attributes.
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
        module: An `ir.Module`. Its locations get the numbers.
        salt: Distinguishes tokens of equal modules.
        every: Whether each operation has its own number, for reports. By default, operands that XLA might merge with their
            equation share its number, which keeps XLA's metadata unchanged.

    Attributes:
        token: Identifies the module; equal for equal modules, in every process.
        module: The numbered module.
        program: The operations, for C++.
    """

    def __init__(self, module: ir.Module, salt: str = "", *, every: bool = False):
        connection.ensure()
        self.module = module
        self.token = hashlib.blake2b(to_bytecode(module), digest_size=8, key=salt.encode()).hexdigest()
        self.program = _core.number_operations(module, self.token, every=every)

    def __len__(self) -> int:
        return len(self.program)

    def __getitem__(self, number: int) -> Origin:
        operation = self.operations[number]
        name = self.name_of(number)
        found = _FILE.search(str(operation.location))
        return Origin(
            number,
            operation.name,
            name,
            ":".join(found.groups()) if found else "",
            _function_of(operation),
            place_of(name)[1],
            self._entries[self.program[number][1]],
        )

    def __iter__(self) -> Iterator[Origin]:
        return (self[number] for number in range(len(self)))

    def name_of(self, number: int) -> str:
        """The location's name of an operation, as `Origin.name`."""
        return self.plain(_name_of(self.operations[number].location))

    @cached_property
    def _entries(self) -> list[dict[str, str]]:
        return self.program.entries()

    @cached_property
    def operations(self) -> list[Any]:
        """The operations by number."""
        return list(walk(self.module.operation))

    def ids_of(self, op_name: str) -> tuple[int, ...]:
        """The numbers of the merged operations in an `op_name`, in order, without callers."""
        return self.program.read_name(op_name)[0]

    def callers_of(self, op_name: str) -> tuple[int, ...]:
        """The numbers of inlined calls in an `op_name`, outermost first."""
        return tuple(dict.fromkeys(self.program.read_name(op_name)[1]))

    def explain(self, text: str) -> str:
        """An error text of XLA's without numbers, and the operations that these stand for, with tags and lines."""
        numbers = [int(found["number"]) for found in _NUMBER.finditer(text) if found["token"] == self.token]
        lines = [_NUMBER.sub("", text)]
        for origin in [self[number] for number in dict.fromkeys(numbers) if number < len(self)][:_NAMED]:
            tags = ", ".join(f"{key}={value}" for key, value in origin.attributes.items())
            lines.append(f"hlotag: {origin.op}{f' with {tags}' if tags else ''} at {origin.source or origin.name}")
        return "\n".join(lines)

    def plain(self, op_name: str) -> str:
        """`op_name` without numbers."""
        return self.program.read_name(op_name)[2]


def without_numbers(name: str) -> str:
    """A name as XLA writes it without the numbers of any module."""
    return _core.without_numbers(name) if "\x01" in name else name


@lru_cache(1 << 18)  # as many as the names of a large program: a smaller one would forget each before it is asked for again
def place_of(name: str) -> tuple[str, str]:
    """Reads a name of JAX's, such as "jit(f)/transpose(jvp(layer_0))/mul", with or without numbers of any module.

    Returns the path of named scopes, and the phase: "forward", "backward", "recomputed", or "" outside of derivatives.
    """
    return _core.name_path(without_numbers(_CALL.sub("", name)) if "\x01" in name else name)


def _name_of(location: Any) -> str:
    if not isinstance(location, ir.NameLoc):
        return ""
    # A name `"type:"(...)` around it is the kind of the operation.
    return _name_of(location.child_loc) if location.name_str.endswith(":") else location.name_str


def _function_of(operation: ir.Operation | None) -> str:
    while operation is not None and "sym_name" not in operation.attributes:
        operation = operation.parent
    return ir.StringAttr(operation.attributes["sym_name"]).value if operation is not None else ""


def walk(parent: Any) -> Iterator[Any]:
    """The operations nested in an operation, in pre-order. Iterative, because regions may be deeper than Python's stack."""
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
