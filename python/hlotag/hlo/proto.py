# SPDX-License-Identifier: Apache-2.0
"""HLO modules as protobuf messages with the fields that hlotag uses.

Field numbers are those of XLA's `hlo.proto` and `xla_data.proto`, which are stable. All other fields stay in a message as unknown
fields, and are written back unchanged.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from hlotag._util import protobuf
from hlotag.errors import ParseError

_CLASSES = protobuf.classes(
    {
        "FrontendAttributes": {"map": (1, "map")},
        "MetadataPayload": {"text": (1, "string"), "index": (2, "int64")},
        "OpMetadata": {
            "op_type": (1, "string"),
            "op_name": (2, "string"),
            "source_file": (3, "string"),
            "source_line": (4, "int32"),
            "stack_frame_id": (15, "int32"),
            "metadata_payload": (20, "MetadataPayload"),
        },
        "LayoutProto": {"memory_space": (8, "int64")},
        "ShapeProto": {
            "element_type": (2, "int32"),
            "dimensions": (3, "int64[]"),
            "tuple_shapes": (4, "ShapeProto[]"),
            "layout": (5, "LayoutProto"),
        },
        "LiteralProto": {
            "shape": (1, "ShapeProto"),
            "s32s": (4, "int32[]"),
            "s64s": (5, "int64[]"),
            "u32s": (6, "int64[]"),
            "u64s": (7, "int64[]"),
        },
        "ReplicaGroup": {"replica_ids": (1, "int64[]")},
        "SourceTarget": {"source": (1, "int64"), "target": (2, "int64")},
        "IotaReplicaGroupList": {
            "num_replica_groups": (1, "int64"),
            "num_devices_per_group": (2, "int64"),
            "reshape_dims": (3, "int64[]"),
            "transpose_perm": (4, "int32[]"),
        },
        "CollectiveDeviceList": {"replica_groups": (1, "ReplicaGroup[]"), "iota": (2, "IotaReplicaGroupList")},
        "MeshAxis": {"name": (1, "string"), "size": (2, "int64")},
        "Mesh": {"axes": (1, "MeshAxis[]"), "device_ids": (2, "int64[]")},
        "SubAxis": {"pre_size": (1, "int64"), "size": (2, "int64")},
        "AxisRef": {"mesh_axis_index": (1, "int64"), "sub_axis": (2, "SubAxis")},
        "MeshAxesReplicaGroupList": {"mesh": (1, "Mesh"), "axes": (2, "AxisRef[]")},
        "PrecisionConfig": {"operand_precision": (1, "int32[]"), "algorithm": (2, "int32")},
        "HloInstructionProto": {
            "name": (1, "string"),
            "opcode": (2, "string"),
            "shape": (3, "ShapeProto"),
            "metadata": (7, "OpMetadata"),
            "dimensions": (14, "int64[]"),
            "literal": (8, "bytes"),  # A `LiteralProto`, which may be large: read on demand.
            "parameter_number": (9, "int64"),
            "fusion_kind": (11, "string"),
            "tuple_index": (13, "int64"),
            "custom_call_target": (28, "string"),
            "id": (35, "int64"),
            "operand_ids": (36, "int64[]"),
            "backend_config": (43, "bytes"),
            "called_computation_ids": (38, "int64[]"),
            "comparison_direction": (63, "string"),
            "replica_groups": (49, "ReplicaGroup[]"),
            "precision_config": (51, "PrecisionConfig"),
            "source_target_pairs": (52, "SourceTarget[]"),
            "frontend_attributes": (68, "FrontendAttributes"),
            "collective_device_list": (87, "CollectiveDeviceList"),
            "iota_groups": (92, "IotaReplicaGroupList"),
            "mesh_groups": (93, "MeshAxesReplicaGroupList"),
        },
        "HloComputationProto": {
            "name": (1, "string"),
            "instructions": (2, "HloInstructionProto[]"),
            "id": (5, "int64"),
            "root_id": (6, "int64"),
            "execution_thread": (8, "string"),
        },
        "InstructionSequence": {"instruction_ids": (1, "int64[]")},
        "Sequence": {"computation_id": (1, "int64"), "sequence": (2, "InstructionSequence")},
        "HloScheduleProto": {"sequences": (1, "Sequence[]")},
        "FileLocation": {
            "file_name_id": (1, "int32"),
            "function_name_id": (2, "int32"),
            "line": (3, "int32"),
            "column": (4, "int32"),
        },
        "StackFrame": {"file_location_id": (1, "int32"), "parent_frame_id": (2, "int32")},
        "StackFrameIndexProto": {
            "file_names": (1, "string[]"),
            "function_names": (2, "string[]"),
            "file_locations": (3, "FileLocation[]"),
            "stack_frames": (4, "StackFrame[]"),
        },
        "ComputationDevice": {"replica_device_ids": (1, "int64[]")},
        "DeviceAssignment": {"computation_devices": (3, "ComputationDevice[]")},
        "HloModuleProto": {
            "name": (1, "string"),
            "computations": (3, "HloComputationProto[]"),
            "entry_computation_id": (6, "int64"),
            "schedule": (7, "HloScheduleProto"),
            "device_assignment": (15, "DeviceAssignment"),
            "stack_frame_index": (17, "StackFrameIndexProto"),
            "frontend_attributes": (19, "FrontendAttributes"),
            "metadata_payloads": (22, "string[]"),
        },
        "HloProto": {"hlo_module": (1, "bytes")},
    }
)
_LONGEST_SCALAR = 256  # bytes of the literal of a scalar, layout included
HloModuleProto = _CLASSES["HloModuleProto"]


def read(data: bytes) -> Any:
    """The `HloModuleProto` in `data`. Raises ParseError if there is none."""
    return _read("HloModuleProto", data)


def read_instruction(data: bytes) -> Any:
    """The `HloInstructionProto` in `data`. Raises ParseError if there is none."""
    return _read("HloInstructionProto", data)


def _read(message: str, data: bytes) -> Any:
    try:
        return _CLASSES[message].FromString(data)
    except DecodeError:
        raise ParseError(f"{len(data)} bytes are not a serialized {message}") from None


def module_of_dump(data: bytes, file: str) -> bytes:
    """The serialized `HloModuleProto` in a serialized `HloProto`, as XLA dumps it. Raises ParseError for other bytes."""
    try:
        return _CLASSES["HloProto"].FromString(data).hlo_module
    except DecodeError:
        raise ParseError(f"{file}: not a complete HloProto; dump the module again with --xla_dump_hlo_as_proto") from None


def integer_of(literal: bytes) -> int | None:
    """The value of a serialized `LiteralProto` that is one integer of 32 or 64 bits; None for others."""
    if len(literal) > _LONGEST_SCALAR:
        return None
    read = _CLASSES["LiteralProto"].FromString(literal)
    values = [*read.s32s, *read.s64s, *read.u32s, *read.u64s]
    return values[0] if len(values) == 1 and not read.shape.dimensions else None
