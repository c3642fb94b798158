# SPDX-License-Identifier: Apache-2.0
"""Views of an HLO module's computations and instructions, fast enough for 100,000 instructions."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from hlotag import _core


def _proto() -> types.ModuleType:
    """Imports the messages lazily: protobuf takes longer to import than the rest of hlotag."""
    from hlotag.hlo import proto

    return proto


_NO_ATTRIBUTES: Mapping[str, str] = {}


class Instruction:
    """An instruction of a computation.

    Attributes:
        proto: The `HloInstructionProto`; changes of it change the written module.
        name, opcode: As in HLO text, without "%".
        op_name: The name in `OpMetadata`: JAX's scope and primitive; "" if absent.
        id: Unique within its computation.
        operand_ids: Ids of the operands, in the same computation.
        called_ids: Ids of the called computations: a fusion's, a loop's body and condition, ...
        computation: The computation with the instruction.
    """

    __slots__ = ("_entries", "called_ids", "computation", "id", "name", "op_name", "opcode", "operand_ids", "proto")

    def __init__(self, instruction: Any, computation: Computation):
        self.proto = instruction
        self.computation = computation
        self._entries: Mapping[str, str] | None = None
        self.name: str = instruction.name
        self.opcode: str = instruction.opcode
        self.op_name: str = instruction.metadata.op_name
        self.id: int = instruction.id
        self.operand_ids: tuple[int, ...] = tuple(instruction.operand_ids[:])  # A slice is one read.
        self.called_ids: tuple[int, ...] = tuple(instruction.called_computation_ids[:])

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.name}>"

    @property
    def attributes(self) -> Mapping[str, str]:
        """The frontend attributes. Read-only: instructions with equal attributes may share one object."""
        return self.computation.module.attributes_of(self.proto)

    @attributes.setter
    def attributes(self, entries: Mapping[str, str]) -> None:
        written = self.proto.frontend_attributes.map
        written.clear()
        for key, value in entries.items():  # Not `update`, which is several times as slow.
            written[key] = value
        self._entries = None

    @property
    def entries(self) -> Mapping[str, str]:
        """The frontend attributes, with those that XLA has moved to fields of their own. Read once: audits ask often."""
        if self._entries is None:
            self._entries = self._read_entries()
        return self._entries

    def _read_entries(self) -> Mapping[str, str]:
        proto, module, moved = self.proto, self.computation.module, {}
        if (metadata := proto.metadata).HasField("metadata_payload"):
            moved["xla_metadata_payload"] = module.payload_of(metadata.metadata_payload)
        if self.opcode == "call" and proto.backend_config:
            moved["backend_config"] = proto.backend_config.decode(errors="replace")
        entries = module.attributes_of(proto)
        return {**entries, **moved} if moved else entries

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
        return self.computation.module.source_of(self.proto.metadata)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions of an array result, () for scalars and tuples."""
        return tuple(self.proto.shape.dimensions)


class Computation:
    """A computation: the entry, or one that an instruction calls.

    Attributes:
        name, id: As in the module.
        instructions: In an order in which operands come before their users.
    """

    def __init__(self, computation: Any, module: HloModule):
        self.proto = computation
        self.module = module
        self.name: str = computation.name
        self.id: int = computation.id
        self.instructions = [Instruction(i, self) for i in computation.instructions]

    def __repr__(self) -> str:
        return f"<computation {self.name}>"

    @cached_property
    def by_id(self) -> dict[int, Instruction]:
        """The instructions by id."""
        return {i.id: i for i in self.instructions}

    @property
    def root(self) -> Instruction:
        """The instruction that is the computation's result."""
        return self.by_id[self.proto.root_id]


class HloModule:
    """An HLO module.

    Args:
        module: A serialized `HloModuleProto`, or the message.

    Attributes:
        name: Of the module.
        proto: The message; changes of it change the written module.

    Raises:
        ParseError: The bytes are not an HLO module.
    """

    def __init__(self, module: Any):
        self.proto = _proto().read(module) if isinstance(module, bytes) else module
        self._data = module if isinstance(module, bytes) else None
        self.name: str = self.proto.name
        self._known_attributes: dict[bytes, Mapping[str, str]] = {}  # By serialized form.
        self._places: dict[int, tuple[str, int] | None] = {}  # By stack frame.

    def __repr__(self) -> str:
        return f"<HLO module {self.name}>"

    def __len__(self) -> int:
        return sum(len(c.instructions) for c in self.proto.computations)

    @cached_property
    def parsed(self) -> _core.Module:
        """The module as it was read, for C++. Raises ValueError if it is damaged."""
        return _core.Module(self.to_bytes() if self._data is None else self._data)

    @cached_property
    def computations(self) -> dict[int, Computation]:
        """The computations by id, callees before their callers; made lazily."""
        return {c.id: Computation(c, self) for c in self.proto.computations}

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
        return self.computations[self.proto.entry_computation_id]

    def instructions(self) -> Iterator[Instruction]:
        """All instructions, those of fused and called computations included; callees first."""
        for computation in self.computations.values():
            yield from computation.instructions

    def attributes_of(self, instruction: Any) -> Mapping[str, str]:
        """The frontend attributes of an `HloInstructionProto`, as in `Instruction.attributes`."""
        # Do not read an absent message: protobuf would create it.
        if not instruction.HasField("frontend_attributes"):
            return _NO_ATTRIBUTES
        # Serializing a map is three times as fast as reading it, and there are few distinct maps.
        message = instruction.frontend_attributes
        written = message.SerializeToString()
        if (entries := self._known_attributes.get(written)) is None:
            entries = self._known_attributes[written] = dict(message.map)
        return entries

    def to_bytes(self) -> bytes:
        """The serialized module, with unknown fields unchanged."""
        return _proto().write(self.proto)

    def payload_of(self, payload: Any) -> str:
        """The text of a `MetadataPayload`. The module has each text once; "" if it lacks the payload's."""
        texts = self.proto.metadata_payloads
        return payload.text or (texts[payload.index] if 0 <= payload.index < len(texts) else "")

    def source_of(self, metadata: Any) -> tuple[str, int] | None:
        """(file, line) that an `OpMetadata` names, directly or by a stack frame."""
        if metadata.source_file:
            return metadata.source_file, metadata.source_line
        frame: int = metadata.stack_frame_id
        if frame not in self._places:
            self._places[frame] = self._place_of(frame)
        return self._places[frame]

    def _place_of(self, frame: int) -> tuple[str, int] | None:
        index = self.proto.stack_frame_index
        # Ids count from 1; 0 means no frame.
        if not 0 < frame <= len(index.stack_frames):
            return None
        place = index.file_locations[index.stack_frames[frame - 1].file_location_id - 1]
        return index.file_names[place.file_name_id - 1], place.line


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
