# SPDX-License-Identifier: Apache-2.0
"""The instructions of a compiled module, joined to the operations that they came from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from hlotag._util.groups import group
from hlotag.hlo import HloModule
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import Kind, kind_of

Named = Mapping[Instruction, tuple[int, ...]]
"""By instruction of a module, operations."""

Place = tuple[str, str]
"""Scope and phase."""


@dataclass
class Joined:
    """A module after XLA's passes, joined to the operations.

    Attributes:
        module: The module.
        named: By instruction, the operations that it is named after.
        joined: By instruction, the operations that it came from, by name or data flow.
        place_in: Returns the place of an operation under the calls that an instruction was inlined from.
        callers: By instruction, the calls that it was inlined from, outermost first.
        inserted: By collective that XLA inserted, its operations.
        equal: By instruction, further operations whose value it has, which XLA merged with its own.
        restored: By name of an instruction, its entries after the HLO pass; empty if that did not run.
        hidden: The keys that XLA did not see.
        fusions: By id of a computation, the fusion that it is part of, if instructions do not repeat the fusion's tags.
        last: The module that runs, if XLA's passes went on after `module`.
        renamed: By instruction, what it is in the module that runs, if that has another name.
    """

    module: HloModule
    named: Named
    joined: Named
    place_in: Callable[[Instruction, int], Place]
    callers: Named = field(default_factory=dict)
    inserted: Named = field(default_factory=dict)
    equal: Named = field(default_factory=dict)
    restored: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    fusions: Mapping[int, Instruction] = field(default_factory=dict)
    last: HloModule | None = None
    renamed: Mapping[Instruction, Instruction] = field(default_factory=dict)

    def name_of(self, instruction: Instruction) -> str:
        """The name of an instruction in the module that runs."""
        return self.renamed.get(instruction, instruction).name

    def has(self, instruction: Instruction, key: str, value: str) -> bool:
        """Whether an instruction has a tag."""
        found = self.value_of(instruction, key)
        return found == value or (found is not None and value in found.split(","))

    def has_left(self, instruction: Instruction, key: str, value: str) -> bool:
        """Whether an instruction has a tag that the HLO pass did not give it."""
        found = self._left(instruction, key)
        return found == value or (found is not None and value in found.split(","))

    def value_of(self, instruction: Instruction, key: str) -> str | None:
        """What an instruction has for a key."""
        return self.restored[instruction.name].get(key) if self.restored else self._left(instruction, key)

    def _left(self, instruction: Instruction, key: str) -> str | None:
        found = instruction.entries.get(key)
        if found is None and self.fusions and (fusion := self.fusions.get(instruction.computation.id)):
            return fusion.entries.get(key)
        return found


def find_renamed(before: Named, after: Named) -> dict[Instruction, Instruction]:
    """Finds the instructions to which XLA gave other names, by opcode and the operations that they are named after, or by place.

    After the HLO pass, TPU's compiler gives kernels other names, and GPU's compiler makes some collectives synchronous.
    """
    old, new = ({i.name for i in named} for named in (before, after))

    def others(named: Named, known: set[str]) -> dict[Hashable, list[Instruction]]:
        found = [(i, ids) for i, ids in named.items() if i.name not in known and kind_of(i.opcode) == Kind.HEAVY]
        return group(((i.opcode, ids or (i.computation.name, i.dimensions)), i) for i, ids in found)

    made = others(after, old)
    return {i: j for place, found in others(before, new).items() for i, j in zip(found, made.get(place, ()), strict=False)}
