# SPDX-License-Identifier: Apache-2.0
"""Who computes what: the data flow of a program's operations, and of the HLO instructions made from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from hlotag.hlo.module import Computation, HloModule, Instruction
from hlotag.hlo.origins import ATTRIBUTES, Origins

# What moves values and computes none.
MOVES = frozenset(
    {
        "bitcast",
        "bitcast-convert",
        "broadcast",
        "concatenate",
        "convert",
        "copy",
        "optimization-barrier",
        "pad",
        "reshape",
        "reverse",
    }
    | {"slice", "transpose", "tuple", "get-tuple-element"}
)

_OPCODES = {
    "dot-general": ("dot", "convolution", "reduce"),
    "ragged-dot": ("dot",),
    "convolution": ("convolution", "dot", "reduce"),
    "broadcast-in-dim": ("broadcast", "bitcast"),
    "reshape": ("reshape", "bitcast"),
    "transpose": ("transpose", "bitcast"),
    "select-and-scatter": ("select-and-scatter", "scatter"),
    "reduce-window": ("reduce-window", "reduce"),
    "dynamic-update-slice": ("dynamic-update-slice", "scatter"),
    "dynamic-slice": ("dynamic-slice", "gather"),
    "divide": ("divide", "multiply"),
    "case": ("conditional",),
    "if": ("conditional",),
    "top-k": ("sort", "custom-call", "topk"),
}


class Program:
    """The data flow of numbered operations, followed through calls.

    Args:
      origins: the operations.
    """

    def __init__(self, origins: Origins):
        self._operations = origins.operations
        self._operands: dict[int, list[int | None]] = {}
        self._values: dict[int, object] = {}

    @cached_property
    def _kinds(self) -> list[str]:
        return [operation.name.rpartition(".")[2].replace("_", "-") for operation in self._operations]

    @cached_property
    def _number_of(self) -> dict[object, int]:
        return {operation: number for number, operation in enumerate(self._operations)}

    @cached_property
    def _functions(self) -> dict[str, int]:
        return {
            ir.StringAttr(operation.attributes["sym_name"]).value: number
            for number, operation in enumerate(self._operations)
            if operation.name == "func.func"
        }

    @cached_property
    def _calls(self) -> dict[str, list[int]]:
        calls: dict[str, list[int]] = {}
        for number, operation in enumerate(self._operations):
            if operation.name == "func.call":
                calls.setdefault(_callee(operation), []).append(number)
        return calls

    def kind(self, number: int) -> str:
        """The operation's name as HLO would write it, without its dialect."""
        return self._kinds[number]

    def becomes(self, number: int, opcode: str) -> bool:
        """Whether XLA makes instructions of this opcode from the operation, other than by moving its operands or result."""
        kind = self._kinds[number]
        return opcode == kind or opcode in _OPCODES.get(kind, ())

    def operands(self, number: int) -> list[int | None]:
        """The operations that compute the operands; None for arguments of the program and of region operations."""
        known = self._operands.get(number)
        if known is None:
            known = self._operands[number] = [self._definition(value) for value in self._operations[number].operands]
        return known

    def results(self) -> list[int | None]:
        """The operations that compute the program's results."""
        main = self._functions.get("main")
        return [] if main is None else self._returned(main)

    def source(self, number: int | None, opcode: str) -> int | None:
        """The operation that becomes `opcode`: this one, or the one whose result it and others before it only move."""
        for _ in range(16):
            if number is None or self.becomes(number, opcode):
                return number
            if self.kind(number) != "broadcast-in-dim" and self.kind(number) not in MOVES:
                return None
            number = next(iter(self.operands(number)), None)
        return None

    def value(self, number: int) -> object:
        """A key that operations have in common which compute the same from the same."""
        # Operands before users, without recursion: a chain of operations may be as long as the program.
        pending = [number]
        while pending:
            last = pending[-1]
            unknown = (
                [o for o in self.operands(last) if o is not None and o not in self._values] if last not in self._values else []
            )
            if unknown:
                pending.extend(unknown)
                continue
            self._values.setdefault(last, self._key(last))
            pending.pop()
        return self._values[number]

    def _key(self, number: int) -> object:
        operation = self._operations[number]
        if len(operation.regions) or operation.name in ("func.call", "stablehlo.custom_call", "stablehlo.rng"):
            return number
        operands = []
        for value, definition in zip(operation.operands, self.operands(number), strict=True):
            operands.append(hash(value) if definition is None else self._values[definition])
        names = (a if isinstance(a, str) else a.name for a in operation.attributes)
        attributes = tuple((name, operation.attributes[name]) for name in names if name != ATTRIBUTES)
        types = tuple(result.type for result in operation.results)
        # A tuple of tuples would grow with the program.
        return self._interned.setdefault((operation.name, tuple(operands), attributes, types), -1 - len(self._interned))

    @cached_property
    def _interned(self) -> dict[object, int]:
        return {}

    def _definition(self, value: ir.Value) -> int | None:
        for _ in range(64):
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
                return self._number_of.get(operation)
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

    def source(self, instruction: Instruction) -> Instruction:
        """What computes the value that `instruction` hands on: through a fusion's parameters and results."""
        while True:
            if instruction.opcode == "parameter" and (fusion := self._fusion_of.get(instruction.computation.id)) is not None:
                instruction = fusion.operands[instruction.proto.parameter_number]
            elif instruction.opcode == "fusion":
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
