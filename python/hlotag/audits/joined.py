# SPDX-License-Identifier: Apache-2.0
"""The instructions of a compiled module, joined to the operations that they came from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from hlotag._util.groups import group
from hlotag.hlo import HloModule
from hlotag.hlo.collectives import Collective, find_starts, read_collective
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import Kind, collective_of, kind_of
from hlotag.hlo.origins import place_of
from hlotag.hlo.work import Caller, Roles, find_callers, find_roles, measure
from hlotag.results import tags
from hlotag.results.tags import Op, default_phase

Named = Mapping[Instruction, tuple[int, ...]]
"""By instruction of a module, operations."""

Place = tuple[str, str]
"""Scope and phase."""

# What is never an event of its own.
NEVER_RUN = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}
_NO_ROLES = Roles()


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
        restored: By name of an instruction, its entries after the HLO stage; empty if the stage did not run.
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
        """Whether an instruction has a tag that the HLO stage did not give it."""
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

    def instructions(self, ops: Sequence[Op]) -> list[tags.Instruction]:
        """The instructions that came from operations, and what else runs, in the order in which they first run.

        Fusions are left out: what is in a fusion says what it computes, unless XLA made all of it.
        """
        default = default_phase(op.phase for op in ops)
        joined = {
            i: (*found, *self.equal.get(i, ()))
            for i, found in self.joined.items()
            if found and i.opcode not in ("fusion", "parameter")
        } | dict(self.inserted)
        last = self.last or self.module
        work, fusions = measure(last), last.fusions
        callers = find_callers(last, work)
        as_run = list(last.list_as_run())
        order, starts = {i.name: place for place, i in enumerate(as_run)}, find_starts(as_run)
        by_name = {i.name: i for i in work} if self.last else {}
        roles = find_roles(joined, [op.name for op in ops])
        # By computation, what an instruction in it has after its own fields.
        around = {number: (fusions[number].name if number in fusions else "", caller) for number, caller in callers.items()}
        outside = "", Caller()

        def instruction(i: Instruction, running: Instruction) -> tags.Instruction:
            fusion, caller = around.get(running.computation.id, outside)
            place = self._place_of(i, joined.get(i, ()), ops, default)
            flops, size, effort = work[running]
            doing = roles.get(i, _NO_ROLES)
            exchanges = read_collective(running) or Collective("", "", 0)
            if running.name in starts:
                exchanges = exchanges._replace(start=starts[running.name])
            done = flops, size, effort, caller.runs, caller.name
            around_it = caller.most_runs, caller.under
            made = tags.Instruction(running.name, i.opcode, fusion, *doing, *place, *done, *exchanges, *around_it)
            return self._with_places(i, made)

        if self.last:
            found = [instruction(i, running) for i in joined if (running := self.renamed.get(i) or by_name.get(i.name))]
        else:
            found = [instruction(i, i) for i in joined]
        known = {each.kernel for each in found}
        others = (i for i in work if i.computation.id not in fusions and i.opcode not in NEVER_RUN and i.name not in known)
        found += [instruction(i, i) for i in others]
        # What is in a computation that nothing calls never runs.
        return sorted((each for each in found if each.name in order), key=lambda each: order[each.name])

    def _place_of(self, i: Instruction, owners: Sequence[int], ops: Sequence[Op], default: str) -> tuple[str, str]:
        """The scope and phase of an instruction: by its name, unless that is another one's.

        XLA names some after the loop around them. The name of a combined collective stands for none of its operations.
        """
        named = self.named.get(i, ())
        is_combined = len(owners) > 1 and bool(collective_of(i))
        is_named = bool(owners) and not ops[owners[0]].serves and not set(owners).isdisjoint(named)
        is_own = not owners or (is_named and not is_combined)
        # XLA joins the names of merged instructions by ";".
        scope, phase = place_of(i.op_name.partition(";")[0]) if is_own and i.op_name else ("", "")
        if owners:
            of_first = self.place_in(i, owners[0])
            scope, phase = scope if is_own and i.op_name else of_first[0], phase or of_first[1]
        return scope, phase or default

    def _with_places(self, i: Instruction, made: tags.Instruction) -> tags.Instruction:
        """The instruction with the places of its owners, if these are not all its own."""
        places = [self.place_in(i, owner) for owner in made.owners] if len(made.owners) > 1 else []
        if all(place == (made.scope, made.phase) for place in places):
            return made
        return made._replace(scopes=tuple([scope for scope, _ in places]), phases=tuple([phase for _, phase in places]))


def find_renamed(before: Named, after: Named) -> dict[Instruction, Instruction]:
    """Finds the instructions to which XLA gave other names, by opcode and the operations that they are named after, or by place.

    After the HLO stage, TPU's compiler gives kernels other names, and GPU's compiler makes some collectives synchronous.
    """
    old, new = ({i.name for i in named} for named in (before, after))

    def others(named: Named, known: set[str]) -> dict[Hashable, list[Instruction]]:
        found = [(i, ids) for i, ids in named.items() if i.name not in known and kind_of(i.opcode) == Kind.HEAVY]
        return group(((i.opcode, ids or (i.computation.name, i.dimensions)), i) for i, ids in found)

    made = others(after, old)
    return {i: j for place, found in others(before, new).items() for i, j in zip(found, made.get(place, ()), strict=False)}
