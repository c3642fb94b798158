# SPDX-License-Identifier: Apache-2.0
"""Who computes what: the data flow of a program's operations, and of the HLO instructions made from them."""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence

from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins

_TENSOR = re.compile(r"tensor<((?:[0-9?]+x)*)")


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


class StableHlo(Program):
    """The operations of a StableHLO module.

    Args:
      origins: the operations.
    """

    def __init__(self, origins: Origins):
        from hlotag import _core

        self.helpers = origins.helpers
        self._names, self._entries = origins.names, origins.attributes
        module = origins.module.operation._CAPIPtr
        self._operands, self._types, self._values, self._results = _core.data_flow(module)

    def __len__(self) -> int:
        return len(self._names)

    def name(self, number: int) -> str:
        """As `Program` says."""
        return self._names[number]

    def entries(self, number: int) -> Mapping[str, str]:
        """As `Program` says."""
        return self._entries[number]

    def dimensions(self, number: int) -> tuple[int, ...]:
        """As `Program` says."""
        return _dimensions(self._types[number])

    def operands(self, number: int) -> list[int | None]:
        """As `Program` says."""
        return self._operands[number]

    def results(self) -> list[int | None]:
        """As `Program` says."""
        return self._results

    def value(self, number: int) -> int:
        """What operations have in common which compute the same from the same."""
        return self._values[number]


@functools.cache
def _dimensions(type_text: str) -> tuple[int, ...]:
    found = _TENSOR.match(type_text)
    return tuple(-1 if size == "?" else int(size) for size in found[1].split("x")[:-1]) if found else ()


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

    def _element(self, instruction: Instruction) -> Instruction | None:
        made = self.source(instruction.operands[0])
        return made.operands[instruction.proto.tuple_index] if made.opcode == "tuple" else None


def _single_calls(module: HloModule) -> dict[int, Instruction]:
    """By computation, the call of it, if there is but one."""
    calls = [i for i in module.instructions() if i.opcode == "call"]
    count = Counter(i.called_ids[0] for i in calls)
    return {i.called_ids[0]: i for i in calls if count[i.called_ids[0]] == 1}
