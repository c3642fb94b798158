# SPDX-License-Identifier: Apache-2.0
"""Who computes what: the data flow of a program's operations, and of the HLO instructions made from them."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.opcodes import MOVES, may_be, opcode_of
from hlotag.hlo.origins import ATTRIBUTES, RECORDS, Origins

_HOPS = 64  # through calls, from a value to where it is made or used
_OF_TAGS = (ATTRIBUTES, RECORDS)
# Instructions whose value another may compute, in another computation.
HANDING_ON = frozenset({"parameter", "fusion", "call", "get-tuple-element"})


class Program(ABC):
    """The data flow of numbered operations, followed through calls; what HLO instructions are joined to."""

    # By number, those of the operations before it that have its number in their names, since they are part of it.
    helpers: Mapping[int, Sequence[int]] = {}

    @abstractmethod
    def name(self, number: int) -> str:
        """The operation's, with its dialect; of an instruction, its opcode."""

    @abstractmethod
    def operands(self, number: int) -> Sequence[int | None]:
        """The operations that compute the operands; None for arguments of the program and of region operations."""

    @abstractmethod
    def users(self, number: int) -> Sequence[int]:
        """The operations that an operation's results are operands of."""

    @abstractmethod
    def results(self) -> Sequence[int | None]:
        """The operations that compute the program's results."""

    @abstractmethod
    def entries(self, number: int) -> Mapping[str, str]:
        """The operation's frontend attributes."""

    @abstractmethod
    def dimensions(self, number: int) -> tuple[int, ...]:
        """Those of its first result."""

    @abstractmethod
    def __len__(self) -> int: ...

    def becomes(self, number: int, opcode: str) -> bool:
        """Whether XLA makes instructions of this opcode from the operation, other than by moving its operands or result."""
        return may_be(self.name(number), opcode)

    def source(self, number: int | None, opcode: str) -> int | None:
        """The operation that becomes `opcode`: this one, or the one whose result it and others before it only move."""
        for _ in range(16):
            if number is None or self.becomes(number, opcode):
                return number
            if opcode_of(self.name(number)) not in MOVES:
                return None
            number = next(iter(self.operands(number)), None)
        return None


class StableHlo(Program):
    """The operations of a StableHLO module.

    Args:
      origins: the operations.
    """

    def __init__(self, origins: Origins):
        self.helpers = origins.helpers
        self._origins = origins
        self._operations, self._names = origins.operations, origins.names
        self._operands: dict[int, list[int | None]] = {}
        self._values: dict[int, object] = {}

    def __len__(self) -> int:
        return len(self._operations)

    def name(self, number: int) -> str:
        """As `Program` says."""
        return self._names[number]

    def becomes(self, number: int, opcode: str) -> bool:
        """As `Program` says."""
        return may_be(self._names[number], opcode)

    def entries(self, number: int) -> Mapping[str, str]:
        """As `Program` says."""
        return self._origins.attributes[number]

    def dimensions(self, number: int) -> tuple[int, ...]:
        """As `Program` says."""
        results = self._operations[number].results
        kind = results[0].type if len(results) else None
        return tuple(kind.shape) if isinstance(kind, ir.RankedTensorType) else ()

    def operands(self, number: int) -> list[int | None]:
        """As `Program` says."""
        known = self._operands.get(number)
        if known is None:
            known = self._operands[number] = [
                self._definition(value) if (made_by := self._made_by.get(value)) is None else made_by
                for value in self._operations[number].operands
            ]
        return known

    def results(self) -> list[int | None]:
        """As `Program` says."""
        main = self._functions.get("main")
        return [] if main is None else self._returned(main)

    def users(self, number: int) -> list[int]:
        """As `Program` says."""
        found: dict[int, None] = {}
        values = list(self._operations[number].results)
        for value in itertools.islice(values, _HOPS):  # It grows meanwhile.
            for use in value.uses:
                operation, position = use.owner.operation, use.operand_number
                if operation.name == "func.call":
                    values.append(self._operations[self._functions[_callee(operation)]].regions[0].blocks[0].arguments[position])
                elif operation.name == "func.return":
                    name = ir.StringAttr(operation.parent.attributes["sym_name"]).value
                    values += [self._operations[call].results[position] for call in self._calls.get(name, ())]
                elif operation in self._numbers:
                    found[self._numbers[operation]] = None
        return list(found)

    @cached_property
    def _functions(self) -> dict[str, int]:
        return {
            ir.StringAttr(operation.attributes["sym_name"]).value: number
            for number, (operation, name) in enumerate(zip(self._operations, self._names, strict=True))
            if name == "func.func"
        }

    @cached_property
    def _calls(self) -> dict[str, list[int]]:
        calls: dict[str, list[int]] = {}
        for number, (operation, name) in enumerate(zip(self._operations, self._names, strict=True)):
            if name == "func.call":
                calls.setdefault(_callee(operation), []).append(number)
        return calls

    @cached_property
    def _numbers(self) -> dict[object, int]:
        return {operation: number for number, operation in enumerate(self._operations)}

    @cached_property
    def _made_by(self) -> dict[object, int]:
        """By value, the operation that it is a result of, calls left out. Values are faster to look up than operations."""
        numbered = zip(self._operations, self._names, strict=True)
        return {
            value: number
            for number, (operation, name) in enumerate(numbered)
            if name != "func.call"
            for value in operation.results
        }

    def value(self, number: int) -> object:
        """A key that operations have in common which compute the same from the same."""
        # Operands before users, without recursion: a chain of operations may be as long as the program.
        values, pending = self._values, [number]
        while pending:
            last = pending[-1]
            if last in values:
                pending.pop()
            elif unknown := [o for o in self.operands(last) if o is not None and o not in values]:
                pending.extend(unknown)
            else:
                values[last] = self._key(last)
        return values[number]

    def _key(self, number: int) -> object:
        operation, name = self._operations[number], self._names[number]
        if name in ("func.call", "stablehlo.custom_call", "stablehlo.rng") or len(operation.regions):
            return number
        definitions = self.operands(number)
        operands = tuple(
            hash(operation.operands[position]) if definition is None else self._values[definition]
            for position, definition in enumerate(definitions)
        )
        types = tuple(result.type for result in operation.results)
        # A tuple of tuples would grow with the program.
        return self._interned.setdefault((name, operands, _attributes(operation), types), -1 - len(self._interned))

    @cached_property
    def _interned(self) -> dict[object, int]:
        return {}

    def _definition(self, value: ir.Value) -> int | None:
        for _ in range(_HOPS):
            owner = value.owner
            if isinstance(owner, ir.Block):
                argument = ir.BlockArgument(value)
                caller = self._only_caller(owner)
                if caller is None:
                    return None
                value = self._operations[caller].operands[argument.arg_number]
                continue
            operation: Any = owner.operation
            if operation.name != "func.call":
                return self._made_by.get(value)
            returned = self._terminator(self._functions[_callee(operation)])
            value = returned.operands[ir.OpResult(value).result_number]
        return None

    def _only_caller(self, block: ir.Block) -> int | None:
        operation = block.owner.operation
        if operation.name != "func.func":
            return None
        calls = self._calls.get(ir.StringAttr(operation.attributes["sym_name"]).value, [])
        return calls[0] if len(calls) == 1 else None

    def _returned(self, function: int) -> list[int | None]:
        return [self._definition(value) for value in self._terminator(function).operands]

    def _terminator(self, function: int) -> ir.Operation:
        block = self._operations[function].regions[0].blocks[0]
        return block.operations[len(block.operations) - 1].operation


def _attributes(operation: ir.Operation) -> object:
    """What an operation is beside its operands and tags, to be compared."""
    names = (a if isinstance(a, str) else a.name for a in operation.attributes)
    try:
        return tuple((name, operation.attributes[name]) for name in names if name not in _OF_TAGS)
    except TypeError:  # jaxlib has no class for the elements of complex constants.
        copy = operation.clone()
        for name in _OF_TAGS:
            if name in copy.attributes:
                del copy.attributes[name]
        return str(copy)


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


class Flow:
    """The data flow of an HLO module, as if nothing were fused.

    Args:
      module: the module.
    """

    def __init__(self, module: HloModule):
        self._module = module
        self._fusion_of = {i.called_ids[0]: i for i in module.instructions() if i.opcode == "fusion"}
        self._only_call_of = self._fusion_of | _single_calls(module)

    def source(self, instruction: Instruction) -> Instruction:
        """What computes the value that `instruction` hands on: through parameters and results of fusions and calls."""
        while True:
            if instruction.opcode == "parameter" and (caller := self._only_call_of.get(instruction.computation.id)) is not None:
                instruction = caller.operands[instruction.proto.parameter_number]
            elif instruction.opcode in ("fusion", "call"):
                instruction = instruction.called[0].root
            elif instruction.opcode == "get-tuple-element" and (made := self._element(instruction)) is not None:
                instruction = made
            else:
                return instruction

    def users_first(self) -> Iterator[Instruction]:
        """All instructions, users before their operands; of fused computations at the place of the fusion."""
        for computation in reversed(self._module.computations.values()):
            if computation.id not in self._fusion_of:
                yield from self._users_first(computation)

    def _users_first(self, computation: Computation) -> Iterator[Instruction]:
        for instruction in reversed(computation.instructions):
            yield instruction
            if instruction.opcode == "fusion":
                yield from self._users_first(instruction.called[0])

    def _element(self, instruction: Instruction) -> Instruction | None:
        made = self.source(instruction.operands[0])
        return made.operands[instruction.proto.tuple_index] if made.opcode == "tuple" else None


def _single_calls(module: HloModule) -> dict[int, Instruction]:
    """By computation, the call of it, if there is but one."""
    calls = [i for i in module.instructions() if i.opcode == "call"]
    count = Counter(i.called_ids[0] for i in calls)
    return {i.called_ids[0]: i for i in calls if count[i.called_ids[0]] == 1}
