# SPDX-License-Identifier: Apache-2.0
"""What an audit says of each instruction: the operations it computes, its scope and phase, its work, how often it runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hlotag.audits.joined import Joined
from hlotag.hlo.collectives import Collective, find_starts, read_collective
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import collective_of
from hlotag.hlo.origins import place_of
from hlotag.hlo.work import Caller, Roles, find_callers, find_roles, measure
from hlotag.results import tags
from hlotag.results.tags import Op, default_phase

# What is never an event of its own.
NEVER_RUN = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple"}
_NO_ROLES, _OUTSIDE, _NO_COLLECTIVE = Roles(), Caller(), Collective("", "", 0)


def describe_instructions(found: Joined, ops: Sequence[Op]) -> list[tags.Instruction]:
    """The instructions that came from operations, and what else runs, in the order in which they first run.

    Fusions are left out: what is in a fusion says what it computes, unless XLA made all of it.
    """
    return _Rows(found, ops).make()


class _Rows:
    """The rows of a module's instructions.

    Args:
        found: The module.
        ops: The operations.
    """

    def __init__(self, found: Joined, ops: Sequence[Op]) -> None:
        self._found, self._ops = found, ops
        self._default = default_phase(op.phase for op in ops)
        self._owners = {
            i: (*numbers, *found.equal.get(i, ()))
            for i, numbers in found.joined.items()
            if numbers and i.opcode not in ("fusion", "parameter")
        } | dict(found.inserted)
        self._roles = find_roles(self._owners, [op.name for op in ops])
        module = found.last or found.module
        as_run = list(module.list_as_run())
        self._order = {instruction.name: place for place, instruction in enumerate(as_run)}
        self._starts = find_starts(as_run)
        self._work, self._fusions = measure(module), module.fusions
        self._callers = find_callers(module, self._work)

    def make(self) -> list[tags.Instruction]:
        """The rows, in the order in which the instructions first run."""
        rows = [self._make(i, running) for i in self._owners if (running := self._running(i))]
        known = {row.kernel for row in rows}
        others = (i for i in self._work if i.computation.id not in self._fusions and i.opcode not in NEVER_RUN)
        rows += [self._make(i, i) for i in others if i.name not in known]
        # What is in a computation that nothing calls never runs.
        return sorted((row for row in rows if row.name in self._order), key=lambda row: self._order[row.name])

    def _running(self, i: Instruction) -> Instruction | None:
        """What an instruction is in the module that runs."""
        return i if self._found.last is None else self._found.renamed.get(i) or self._by_name.get(i.name)

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        return {i.name: i for i in self._work}

    def _make(self, i: Instruction, running: Instruction) -> tags.Instruction:
        """The row of an instruction; `running` is what it is in the module that runs."""
        computation = running.computation.id
        fusion, caller = self._fusions.get(computation), self._callers.get(computation, _OUTSIDE)
        scope, phase = self._place_of(i)
        work, roles = self._work[running], self._roles.get(i, _NO_ROLES)
        collective = read_collective(running) or _NO_COLLECTIVE
        row = tags.Instruction(
            name=running.name,
            opcode=i.opcode,
            fusion=fusion.name if fusion else "",
            ops=roles.computes,
            parts=roles.parts,
            carries=roles.carries,
            scope=scope,
            phase=phase,
            flops=work.flops,
            bytes=work.bytes,
            effort=work.effort,
            runs=caller.runs,
            caller=caller.name,
            collective=collective.opcode,
            start=self._starts.get(running.name, collective.start),
            group=collective.group,
            shares=collective.parts,
            most_runs=caller.most_runs,
            under=caller.under,
        )
        return self._with_places(i, row)

    def _place_of(self, i: Instruction) -> tuple[str, str]:
        """The scope and phase of an instruction: by its name, unless that is another one's.

        XLA names some after the loop around them. The name of a combined collective stands for none of its operations.
        """
        owners, ops = self._owners.get(i, ()), self._ops
        named = self._found.named.get(i, ())
        is_combined = len(owners) > 1 and bool(collective_of(i))
        is_named = bool(owners) and not ops[owners[0]].serves and not set(owners).isdisjoint(named)
        is_own = not owners or (is_named and not is_combined)
        # XLA joins the names of merged instructions by ";".
        scope, phase = place_of(i.op_name.partition(";")[0]) if is_own and i.op_name else ("", "")
        if owners:
            of_first = self._found.place_in(i, owners[0])
            scope, phase = scope if is_own and i.op_name else of_first[0], phase or of_first[1]
        return scope, phase or self._default

    def _with_places(self, i: Instruction, row: tags.Instruction) -> tags.Instruction:
        """The row with the places of its owners, if these are not all its own."""
        places = [self._found.place_in(i, owner) for owner in row.owners] if len(row.owners) > 1 else []
        if all(place == (row.scope, row.phase) for place in places):
            return row
        return row._replace(scopes=tuple([scope for scope, _ in places]), phases=tuple([phase for _, phase in places]))
