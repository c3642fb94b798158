# SPDX-License-Identifier: Apache-2.0
"""How much work do the rows of a profile do: flops by type, and bytes that move between memory and the device?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hlotag.hlo import HloModule
from hlotag.hlo.module import Instruction as HloInstruction
from hlotag.hlo.shapes import type_of
from hlotag.hlo.traffic import measure_traffic
from hlotag.profiles.program import Part, Program
from hlotag.results.tags import Instruction
from hlotag.results.times import FAST, OTHER

_PRODUCTS = {"convolution", "dot"}
_LIBRARY_PRODUCTS = ("__cublas$", "__cudnn$conv")
_HIGH = (b'"HIGH"', b'"HIGHEST"')  # In the configuration of a library's call.
_ALIASES = {"u8": "s8"}
_UNKNOWN = "unknown"  # a type without a name, of which no device has a limit
RECOMPUTED = "recomputed"


@dataclass
class Amounts:
    """Work.

    Attributes:
        flops: By type, as `Limits` names it.
        bytes: Read from memory and written to it.
    """

    flops: dict[str, float] = field(default_factory=dict[str, float])
    bytes: float = 0.0

    def add_flops(self, kind: str, flops: float) -> None:
        """Adds flops of a type."""
        if flops:
            self.flops[kind] = self.flops.get(kind, 0.0) + flops


class Meter:
    """The work of a program's events.

    Args:
        program: The program.
        events: By name of what runs as one, how often the trace has it in a step.
    """

    def __init__(self, program: Program, events: Mapping[str, float]) -> None:
        self._program, self._events = program, events
        module = program.module
        self._types = _types_of_products(module) if module else {}
        self._traffic = measure_traffic(module) if module else {}
        once = [events[name] for name in program.once if events.get(name)]
        # A library may run several kernels for an instruction, so events of one may outnumber the runs of the program.
        self._program_runs = min(once, default=1.0)

    def by_place(
        self, parts_of: Callable[[str], Sequence[Part]], value_of: Callable[[Part], str]
    ) -> dict[tuple[str, str], Amounts]:
        """The work of a step by value and phase. `parts_of` gives the parts of what runs as one, none if it has no row."""
        found: dict[tuple[str, str], Amounts] = {}
        for name in self._ran():
            if not (parts := parts_of(name)):
                continue
            runs, traffic = self._runs(name), self._bytes(name)
            for part in parts:
                if part.weight:
                    found.setdefault((value_of(part), part.phase), Amounts()).bytes += part.weight * traffic * runs
            for part, kind, flops in self._flops(name):
                found.setdefault((value_of(part), part.phase), Amounts()).add_flops(kind, flops * runs)
        return found

    def of_rest(self, row_of: Callable[[str], str]) -> dict[str, Amounts]:
        """The work of a step by row without a key. `row_of` gives the row of what runs as one; empty for none."""
        found: dict[str, Amounts] = {}
        for name in self._ran():
            if row := row_of(name):
                amounts, runs = found.setdefault(row, Amounts()), self._runs(name)
                amounts.bytes += self._bytes(name) * runs
                for each, times in self._program.inside(name):
                    amounts.add_flops(self._type_of(each), each.flops * times * runs)
        return found

    def is_product(self, name: str) -> bool:
        """Whether what runs as one holds a product itself, and does not only run one."""
        return any(each.name in self._types for each, _ in self._program.inside(name) if each.kernel == name)

    def products(self) -> dict[str, float]:
        """By type, the flops of a step in products that are not computed again, of all instructions of the program."""
        found = Amounts()
        for each in self._program.audit.instructions:
            if each.name in self._types:
                needed = sum(flops for part, flops in self._parts(each) if part.phase != RECOMPUTED)
                found.add_flops(self._type_of(each), needed * self._runs_of(each))
        return found.flops

    def _ran(self) -> Iterator[str]:
        return (name for name, count in self._events.items() if count)

    def _runs(self, name: str) -> float:
        """How often a step runs what runs as one."""
        inside = self._program.inside(name)
        return self._runs_of(inside[0][0]) if inside else self._events[name]

    def _runs_of(self, each: Instruction) -> float:
        """How often a step runs an instruction: by its loops where all trips are known, else by its events."""
        if each.under and (events := self._events.get(each.kernel)):
            return events
        return each.runs * self._program_runs

    def _bytes(self, name: str) -> float:
        """The bytes of one event."""
        times = {each.kernel: times for each, times in self._program.inside(name)}
        return sum(self._traffic.get(kernel, 0) * often for kernel, often in times.items())

    def _flops(self, name: str) -> Iterator[tuple[Part, str, float]]:
        """The flops of one event, by operation and type."""
        for each, times in self._program.inside(name):
            yield from ((part, self._type_of(each), flops * times) for part, flops in self._parts(each))

    def _parts(self, each: Instruction) -> Iterator[tuple[Part, int]]:
        """The operations of an instruction, each with its flops."""
        if not each.flops or not each.owners:
            return
        for owner, place, flops in zip(each.owners, each.places, each.divide(each.flops), strict=True):
            yield Part(self._program.audit.ops[owner], *place, 0.0), flops

    def _type_of(self, each: Instruction) -> str:
        return self._types.get(each.name, OTHER)


def _types_of_products(module: HloModule) -> dict[str, str]:
    """By product, the type of its operands, as limits name it."""
    return {i.name: _type_of_product(i) for i in module.instructions() if _is_product(i)}


def _is_product(instruction: HloInstruction) -> bool:
    is_library = instruction.opcode == "custom-call" and instruction.proto.custom_call_target.startswith(_LIBRARY_PRODUCTS)
    return is_library or instruction.opcode in _PRODUCTS


def _type_of_product(instruction: HloInstruction) -> str:
    name = type_of(instruction.operands[0].proto.shape)
    if name != "f32":
        return _ALIASES.get(name, name) or _UNKNOWN
    config = instruction.proto.precision_config
    is_high = any(config.operand_precision) or config.algorithm or any(text in instruction.proto.backend_config for text in _HIGH)
    return name if is_high else FAST
