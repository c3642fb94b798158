# SPDX-License-Identifier: Apache-2.0
"""The operations that share an instruction's time, by their work."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlotag._text import list_some
from hlotag._util.groups import group
from hlotag.audits.audit import Audit
from hlotag.audits.unknown import note_unknown_flops
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.hlo.partners import Partners, find_partners
from hlotag.profiles.dependences import find_readers
from hlotag.profiles.trace import Device, Trace
from hlotag.profiles.weights import time_rows, weight_of
from hlotag.results.grouping import TAG, Grouping, leave_out_libraries, list_keys, make_reader, read_values, title_of
from hlotag.results.tags import Instruction, Op

# Part of the time in instructions that the audit lacks, from which a trace is of another program.
_MOST_UNKNOWN = 0.01
# Effort of an instruction that computes a scalar, such as a loop's counter.
_SCALAR = 2
_NO_NAME = re.compile(r"\W")  # what cannot be in the name of a kernel


@dataclass(frozen=True)
class Part:
    """A part of an instruction's time.

    Attributes:
        op: The operation that it belongs to.
        scope: The named scopes of the operation in this instruction.
        phase: Its phase there.
        weight: Between 0 and 1; the parts of an instruction have 1 together.
        under: The branches and the loops of unknown trips around it, outermost first.
    """

    op: Op
    scope: str
    phase: str
    weight: float
    under: tuple[str, ...] = ()


class Program:
    """The operations and tags of an audited program, by the names of what runs as one.

    Args:
        audit: The audit.
        module: The module that ran, if it is known; it has the audit's instructions.
        program: Its name in a trace, with its number: `jit_step(6)`.

    Attributes:
        audit: As given.
        module: As given.
        name: The name of the module.
    """

    def __init__(self, audit: Audit, module: HloModule | None = None, program: str = "") -> None:
        instructions = audit.instructions
        self.name = audit.name
        self.audit = audit
        self.module, self._traced = module, program or audit.name
        self._platform = audit.platform
        self._ops = audit.ops
        self._values = read_values(audit)
        self._own = leave_out_libraries(self._values)
        self._inside = group((instruction.kernel, instruction) for instruction in instructions)
        self._callees = group((each.caller, each.kernel) for each in instructions if each.caller)
        self._opcodes = {instruction.name: instruction.opcode for instruction in instructions}
        self.collectives = {instruction.name: instruction for instruction in instructions if instruction.collective}
        """The collectives and the ends of their asynchronous pairs, by name."""
        self._parts: dict[str, tuple[Part, ...]] = {}
        self._times: dict[str, list[tuple[Instruction, float]]] = {}

    @cached_property
    def keys(self) -> list[str]:
        """The keys of the tags."""
        return list_keys(self._values)

    @cached_property
    def kernels(self) -> dict[str, str]:
        """By the name of a GPU's kernel, the instruction that it computes.

        XLA replaces the dots of the instruction's name, or of that of an instruction in a fusion, such as a sort.
        """
        inside = {each.name: each.kernel for each in self.audit.instructions} | {name: name for name in self._inside}
        found = group((_NO_NAME.sub("_", name), kernel) for name, kernel in inside.items())
        return {name: kernels[0] for name, kernels in found.items() if len(kernels) == 1}

    @cached_property
    def once(self) -> set[str]:
        """The instructions that run once in a run of the program."""
        return {each.kernel for each in self.audit.instructions if not each.caller and each.runs == 1}

    @cached_property
    def notes(self) -> list[str]:
        """What the module does not say of its work; nothing if the module is unknown."""
        return note_unknown_flops(self.module) if self.module else []

    @cached_property
    def _rows(self) -> dict[str, float]:
        """By reduction, the time of its rows beside that of their elements; empty if the module is unknown."""
        return time_rows(self.module) if self.module and self._platform == "cpu" else {}

    @cached_property
    def partners(self) -> dict[str, Partners]:
        """By collective, the devices that exchange values; empty if the module is unknown."""
        return find_partners(self.module) if self.module else {}

    @cached_property
    def readers(self) -> dict[str, frozenset[str]]:
        """By instruction, those that start only when it has ended; empty if the module is unknown."""
        return find_readers(self.module) if self.module else {}

    def read(self, traced: Trace) -> list[Device]:
        """Reads what the program did in a trace. Raises ParseError as `Trace.of`."""
        devices = traced.of(self._traced, self.kernels, self.once, self.readers)
        if not self._platform and devices:  # As of a module alone.
            self._platform = devices[0].name.rpartition(":")[0].rpartition(":")[2].lower()
        return devices

    def opcode(self, name: str) -> str:
        """The opcode of an instruction outside of fusions; "fusion" for a fusion, empty if no operation became it."""
        return self._opcodes.get(name, "fusion" if name in self._inside else "")

    def runs_any(self, name: str, others: Container[str]) -> bool:
        """Whether an instruction, such as a loop, runs any of the others."""
        return any(inner in others for inner in self._run_by(name))

    def _run_by(self, name: str) -> Iterator[str]:
        """What an instruction runs, and what that runs."""
        pending = list(self._callees.get(name, ()))
        for inner in pending:  # The list grows. No computation calls itself.
            yield inner
            pending += self._callees.get(inner, ())

    def check_fits(self, busy: Mapping[str, float]) -> None:
        """Raises ParseError if a trace is of another program; `busy` has by instruction how long it ran."""
        unknown = [name for name in busy if name not in self._opcodes and name not in self._inside]
        if sum(busy[name] for name in unknown) > _MOST_UNKNOWN * sum(busy.values()):
            raise ParseError(
                f"the trace and the audit of {self.name} are of different programs: the trace has {list_some(unknown)}, which "
                "the audit lacks; audit the program that was traced, with the same shapes, options and versions"
            )

    def values(self, op: Op) -> Mapping[str, str]:
        """The tags of an operation, value by key, without entries of libraries."""
        return self._own.get(op.id, {})

    def served_by(self, op: Op) -> Op:
        """The operation that takes the gathered value, or makes the summed one, of an inserted collective; or `op`."""
        return self._ops[op.serves[0]] if op.serves else op

    def parts(self, name: str) -> tuple[Part, ...]:
        """Divides what runs as one, and what it runs, among the operations by the work of the instructions.

        Those with most work come first; empty if no operation of the program became the instruction. All branches of a
        conditional have parts; a loop of unknown trips has those of one trip.
        """
        if name not in self._parts:
            self._parts[name] = self._divide([i for n in (name, *self._run_by(name)) for i in self._inside.get(n, ())])
        return self._parts[name]

    def inside(self, name: str) -> list[tuple[Instruction, float]]:
        """The instructions of what runs as one, and of what it runs, each with how often one event runs it.

        Of a conditional, the largest branch runs.
        """
        if name not in self._times:
            self._times[name] = self._count_times(name)
        return self._times[name]

    def _count_times(self, name: str) -> list[tuple[Instruction, float]]:
        own = self._inside.get(name, ())
        inside = [*own, *(each for inner in self._run_by(name) for each in self._inside.get(inner, ()))]
        if runs := max((each.runs for each in own), default=0):
            return [(each, each.runs / runs) for each in inside]
        most_runs = max((each.most_runs for each in own), default=1)
        return [(each, each.most_runs / max(most_runs, 1)) for each in inside]

    def flops(self, name: str) -> int:
        """The flops of one event of what runs as one, with what it runs."""
        return round(sum(each.flops * times for each, times in self.inside(name)))

    def values_by_work(self, name: str) -> dict[str, list[str]]:
        """By key, the values of the operations that take time in what runs as one, the value with most time first."""
        work: dict[str, dict[str, float]] = {}
        for part in [part for part in self.parts(name) if part.weight]:
            for key, value in self.values(part.op).items():
                values = work.setdefault(key, {})
                values[value] = values.get(value, 0.0) + part.weight
        return {key: sorted(values, key=lambda value, of=values: -of[value]) for key, values in work.items()}

    def sure_parts(self, name: str, groups: Sequence[tuple[str, Callable[[Part], str]]]) -> tuple[Part, ...]:
        """The parts of what runs as one; empty if the trace does not say how its time divides among the values of `groups`.

        It does not if a branch, or a loop of unknown trips, is beside other work of another value or phase.
        """
        parts = self.parts(name)
        if len({part.under for part in parts if part.weight}) < 2:
            return parts
        places = {(part.phase, *(read(part) for _, read in groups)) for part in parts if part.weight}
        return parts if len(places) == 1 else ()

    def _time_of(self, each: Instruction) -> float:
        """The time of one run of an instruction beside others, in simple operations on elements of four bytes."""
        if not each.flops or not each.owners:
            return each.effort
        type_name = self._ops[each.owners[0]].type.partition("[")[0]
        arithmetic = each.flops * weight_of(self._platform, each.opcode, type_name, each.fusion)
        return max(arithmetic + self._rows.get(each.name, 0.0), each.bytes / 4)

    def _divide(self, instructions: Sequence[Instruction]) -> tuple[Part, ...]:
        efforts = [self._time_of(each) * each.most_runs for each in instructions]
        if len({each.under for each in instructions if each.owners}) > 1:  # A counter is no work beside the loop's.
            efforts = [0 if each.effort <= _SCALAR else effort for each, effort in zip(instructions, efforts, strict=True)]
        if not any(effort for each, effort in zip(instructions, efforts, strict=True) if each.owners):
            efforts = [1] * len(efforts)
        work: dict[tuple[int, str, str, tuple[str, ...]], float] = {}
        for each, effort in zip(instructions, efforts, strict=True):
            for owner, (scope, phase), weight in zip(each.owners, each.places, each.weights, strict=True):
                place = owner, scope, phase, each.under
                work[place] = work.get(place, 0) + effort * weight / sum(each.weights)
        total = sum(work.values())
        parts = [
            Part(self._ops[owner], scope, phase, effort / total, under) for (owner, scope, phase, under), effort in work.items()
        ]
        return tuple(sorted(parts, key=lambda part: (-part.weight, part.op.id)))

    def grouping(self, by: Grouping | None) -> list[tuple[str, Callable[[Part], str]]]:
        """For each group of rows its title, and what gives the value of a part: empty if the part has none.

        `by` is a key; `source`; `scope`, or `scope:2` for its first two names; `operation`; or several of them, whose values are
        combined. `tag:source` is a key of this name. None is each key of the program by itself. Raises ArgumentError for a key
        that no tag has.
        """
        groups = self.keys if by is None else [by] if by else []

        def reader(group: Grouping) -> Callable[[Part], str]:
            read = make_reader(f"{TAG}{group}" if by is None else group, self._values, self.name, self.keys)
            return lambda part: read(part.op, part.scope)

        return [(title_of(group), reader(group)) for group in groups]
