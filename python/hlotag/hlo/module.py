# SPDX-License-Identifier: Apache-2.0
"""Views of an HLO module's computations and instructions, fast enough for 100,000 instructions."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

from hlotag import _core
from hlotag._util.collection import no_collection
from hlotag._util.groups import group
from hlotag.errors import ParseError


def _proto() -> types.ModuleType:
    """Imports the messages lazily: protobuf takes longer to import than the rest of hlotag."""
    from hlotag.hlo import proto

    return proto


class Instruction:
    """An instruction of a computation.

    Attributes:
        computation: The computation with the instruction.
        number: Its place among all instructions of the module.
        name, opcode: As in HLO text, without "%".
        op_name: The name in `OpMetadata`: JAX's scope and primitive; "" if absent.
        id: Unique within its computation.
        operand_ids: Ids of the operands, in the same computation.
        called_ids: Ids of the called computations: a fusion's, a loop's body and condition, ...
        attributes: The frontend attributes. Instructions with equal attributes share the object.
    """

    __slots__ = (
        "_entries",
        "_proto",
        "attributes",
        "called_ids",
        "computation",
        "id",
        "name",
        "number",
        "op_name",
        "opcode",
        "operand_ids",
    )

    def __init__(self, computation: Computation, number: int, row: _core.InstructionRow) -> None:
        self.computation = computation
        self.number = number
        self.name = row.name
        self.opcode = row.opcode
        self.op_name = row.op_name
        self.id = row.id
        self.operand_ids = row.operand_ids
        self.called_ids = row.called_ids
        self.attributes: Mapping[str, str] = row.attributes
        self._entries: Mapping[str, str] | None = None
        self._proto: Any = None

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.name}>"

    @property
    def proto(self) -> Any:
        """The fields that few instructions have, as an `HloInstructionProto`; read when it is first asked for."""
        if self._proto is None:
            self._proto = _proto().read("HloInstructionProto", self.computation.module.parsed.message(self.number))
        return self._proto

    @property
    def entries(self) -> Mapping[str, str]:
        """The frontend attributes, with those that XLA has moved to fields of their own. Read once: audits ask often."""
        if self._entries is None:
            self._entries = self._read_entries()
        return self._entries

    def _read_entries(self) -> Mapping[str, str]:
        moved: dict[str, str] = {}
        if (payload := self.computation.module.parsed.payload(self.number)) is not None:
            moved["xla_metadata_payload"] = payload
        if self.opcode == "call" and self.proto.backend_config:
            moved["backend_config"] = self.proto.backend_config.decode(errors="replace")
        return {**self.attributes, **moved} if moved else self.attributes

    @property
    def operands(self) -> list[Instruction]:
        """The operands, in order."""
        return [self.computation.by_id[i] for i in self.operand_ids]

    @property
    def called(self) -> list[Computation]:
        """The called computations."""
        return [self.computation.module.computations[i] for i in self.called_ids]

    @property
    def source(self) -> tuple[str, int] | None:
        """(file, line) of the user's code, if XLA has it."""
        return self.computation.module.places.of(self.number)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions of an array result, () for scalars and tuples."""
        return self.computation.module.parsed.dimensions(self.number)


class Computation:
    """A computation: the entry, or one that an instruction calls.

    Attributes:
        module: The module with the computation.
        name, id: As in the module.
        thread: The thread that runs it; "" for the main one.
        instructions: In an order in which operands come before their users.
        root: The instruction that is the computation's result.
    """

    def __init__(self, module: HloModule, first: int, row: _core.ComputationRow) -> None:
        self.module = module
        self.name = row.name
        self.thread = row.thread
        self.id = row.id
        self.instructions = [Instruction(self, number, each) for number, each in enumerate(row.instructions, first)]
        self.root = self.instructions[row.root]

    def __repr__(self) -> str:
        return f"<computation {self.name}>"

    @cached_property
    def by_id(self) -> dict[int, Instruction]:
        """The instructions by id."""
        return {i.id: i for i in self.instructions}


class HloModule:
    """An HLO module, which C++ reads once.

    Args:
        data: A serialized `HloModuleProto`.

    Attributes:
        name: Of the module.
        parsed: The module in C++.

    Raises:
        ParseError: The bytes are not an HLO module.
    """

    def __init__(self, data: bytes) -> None:
        with _must_be_a_module(data):
            self.parsed = _core.Module(data)
            self.name = self.parsed.name

    def __repr__(self) -> str:
        return f"<HLO module {self.name}>"

    def __len__(self) -> int:
        return len(self.parsed)

    @cached_property
    def proto(self) -> Any:
        """The fields beside the computations, as an `HloModuleProto`."""
        return _proto().read("HloModuleProto", self.parsed.header())

    @cached_property
    def places(self) -> _core.Places:
        """The files and lines of the instructions."""
        return _core.Places(self.parsed)

    @cached_property
    def computations(self) -> dict[int, Computation]:
        """The computations by id, callees before their callers; made lazily. Raises ParseError for text that is not UTF-8."""
        found: dict[int, Computation] = {}
        first = 0
        with _must_be_a_module(self.parsed.data), no_collection():
            for row in self.parsed.computations():
                made = Computation(self, first, row)
                found[made.id] = made
                first += len(made.instructions)
        return found

    @cached_property
    def callers(self) -> dict[int, list[Instruction]]:
        """By id of a computation, the instructions that call it, once for each call; the branches of one may be equal."""
        return group((called, i) for i in self.instructions() for called in i.called_ids)

    @cached_property
    def fusions(self) -> dict[int, Instruction]:
        """By id of a computation, the fusion that it is part of, as its body or the body of a reduction in it."""
        found: dict[int, Instruction] = {}
        for computation in reversed(self.computations.values()):  # Callers first.
            around = found.get(computation.id)
            for instruction in computation.instructions:
                if fusion := around or (instruction if instruction.opcode == "fusion" else None):
                    found.update(dict.fromkeys(instruction.called_ids, fusion))
        return found

    @cached_property
    def sequences(self) -> dict[int, list[Instruction]]:
        """By id of a computation, its instructions in the order of the schedule; those of fusions have none.

        If the module has no schedule, the order of its instructions counts as one.
        """
        found = {s.computation_id: list(s.sequence.instruction_ids) for s in self.proto.schedule.sequences}
        if found:
            return {n: [self.computations[n].by_id[i] for i in ids] for n, ids in found.items()}
        return {c.id: c.instructions for c in self.computations.values() if c.id not in self.fusions}

    def list_as_run(self) -> Iterator[Instruction]:
        """All instructions in the order in which they first run. What is in a fusion or a loop follows it."""
        pending, seen = [iter(self.sequences[self.entry.id])], {self.entry.id}
        while pending:
            for instruction in pending[-1]:
                yield instruction
                if called := [c for c in instruction.called if c.id not in seen]:
                    seen.update(c.id for c in called)
                    pending += [iter(self.sequences.get(c.id, c.instructions)) for c in reversed(called)]
                    break
            else:
                pending.pop()

    @property
    def entry(self) -> Computation:
        """The entry computation."""
        return self.computations[self.parsed.entry]

    def instructions(self) -> Iterator[Instruction]:
        """All instructions, those of fused and called computations included; callees first."""
        for computation in self.computations.values():
            yield from computation.instructions

    def with_attributes(self, changed: Mapping[Instruction, Mapping[str, str]]) -> bytes:
        """The serialized module with other frontend attributes on some instructions."""
        return self.parsed.with_attributes({i.number: dict(entries) for i, entries in changed.items()})


@contextmanager
def _must_be_a_module(data: bytes) -> Iterator[None]:
    """A block in which an error of C++ says that `data` is no module."""
    try:
        yield
    except ValueError as error:
        raise ParseError(
            f"{len(data)} bytes are not a serialized HloModuleProto ({error}); pass `as_serialized_hlo_module_proto()` of a "
            "module, or a dump made with --xla_dump_hlo_as_proto"
        ) from None


def of_executable(executable: Any) -> list[HloModule]:
    """The optimized modules of a `jax.stages.Compiled`, or of what its `runtime_executable()` gives."""
    if hasattr(executable, "runtime_executable"):
        executable = executable.runtime_executable()
    return [HloModule(m.as_serialized_hlo_module_proto()) for m in executable.hlo_modules()]


class MemoryUse(NamedTuple):
    """What a program reserves for temporary values, in bytes.

    Attributes:
        device: On the device.
        host: In the host's memory.
    """

    device: int
    host: int


def memory_of(executable: Any) -> MemoryUse | None:
    """What XLA says of the memory of an executable, a `jax.stages.Compiled` or jaxlib's own; None if it says nothing."""
    if hasattr(executable, "runtime_executable"):
        executable = executable.runtime_executable()
    try:
        stats = executable.get_compiled_memory_stats()
    except (AttributeError, RuntimeError):  # Some backends have no such count.
        return None
    return MemoryUse(stats.temp_size_in_bytes, stats.host_temp_size_in_bytes)
