# SPDX-License-Identifier: Apache-2.0
"""The fields of XLA's messages that few instructions have, by protobuf. What all have is read in C++.

Field numbers are those of XLA's `hlo.proto` and `xla_data.proto`, which are stable.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from hlotag._util import protobuf
from hlotag.errors import ParseError

_CLASSES = protobuf.classes(
    {
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
            "shape": (3, "ShapeProto"),
            "literal": (8, "bytes"),  # A `LiteralProto`, which may be large: read on demand.
            "parameter_number": (9, "int64"),
            "tuple_index": (13, "int64"),
            "dimensions": (14, "int64[]"),
            "custom_call_target": (28, "string"),
            "backend_config": (43, "bytes"),
            "replica_groups": (49, "ReplicaGroup[]"),
            "precision_config": (51, "PrecisionConfig"),
            "source_target_pairs": (52, "SourceTarget[]"),
            "comparison_direction": (63, "string"),
            "collective_device_list": (87, "CollectiveDeviceList"),
            "iota_groups": (92, "IotaReplicaGroupList"),
            "mesh_groups": (93, "MeshAxesReplicaGroupList"),
        },
        "InstructionSequence": {"instruction_ids": (1, "int64[]")},
        "Sequence": {"computation_id": (1, "int64"), "sequence": (2, "InstructionSequence")},
        "HloScheduleProto": {"sequences": (1, "Sequence[]")},
        "ComputationDevice": {"replica_device_ids": (1, "int64[]")},
        "DeviceAssignment": {"computation_devices": (3, "ComputationDevice[]")},
        "HloModuleProto": {"schedule": (7, "HloScheduleProto"), "device_assignment": (15, "DeviceAssignment")},
        "HloProto": {"hlo_module": (1, "bytes")},
    }
)
_LONGEST_SCALAR = 256  # bytes of the literal of a scalar, layout included


def read(message: str, data: bytes) -> Any:
    """The message in `data`, such as an "HloInstructionProto". Raises ParseError if there is none."""
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
