# SPDX-License-Identifier: Apache-2.0
"""HLO modules as messages of their own, which tests compare with hlotag's view, and give fields that XLA would not write."""

from collections.abc import Callable
from typing import Any

from hlotag._util import protobuf

CLASSES = protobuf.classes(
    {
        "Entry": {"key": (1, "string"), "value": (2, "string")},
        "FrontendAttributes": {"map": (1, "Entry[]")},
        "MetadataPayload": {"text": (1, "string"), "index": (2, "int64")},
        "OpMetadata": {
            "op_name": (2, "string"),
            "source_file": (3, "string"),
            "source_line": (4, "int32"),
            "stack_frame_id": (15, "int32"),
            "metadata_payload": (20, "MetadataPayload"),
        },
        "ShapeProto": {"dimensions": (3, "int64[]")},
        "HloInstructionProto": {
            "name": (1, "string"),
            "opcode": (2, "string"),
            "shape": (3, "ShapeProto"),
            "metadata": (7, "OpMetadata"),
            "parameter_number": (9, "int64"),
            "tuple_index": (13, "int64"),
            "id": (35, "int64"),
            "operand_ids": (36, "int64[]"),
            "called_computation_ids": (38, "int64[]"),
            "frontend_attributes": (68, "FrontendAttributes"),
        },
        "HloComputationProto": {
            "name": (1, "string"),
            "instructions": (2, "HloInstructionProto[]"),
            "id": (5, "int64"),
            "root_id": (6, "int64"),
            "execution_thread": (8, "string"),
        },
        "HloModuleProto": {
            "name": (1, "string"),
            "computations": (3, "HloComputationProto[]"),
            "entry_computation_id": (6, "int64"),
            "metadata_payloads": (22, "string[]"),
        },
        "HloProto": {"hlo_module": (1, "HloModuleProto")},
    }
)


def read(data: bytes) -> Any:
    """The `HloModuleProto` in `data`."""
    return CLASSES["HloModuleProto"].FromString(data)


def changed(data: bytes, change: Callable[[Any], None]) -> bytes:
    """A serialized module after `change` of its `HloModuleProto`."""
    module = read(data)
    change(module)
    return module.SerializeToString(deterministic=True)


def as_dump(data: bytes) -> bytes:
    """The `HloProto` with a serialized module, as XLA dumps it."""
    return CLASSES["HloProto"](hlo_module=read(data)).SerializeToString()
