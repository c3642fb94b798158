# SPDX-License-Identifier: Apache-2.0
"""`HloModuleProto` for the protobuf library: the few fields that are used here.

Field numbers are those of XLA's `hlo.proto` and `xla_data.proto`, which protobuf keeps stable. Fields that are not listed stay
in a message as unknown fields, and are written back as they were read.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from hlotag.errors import HloError

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {"string": _Field.TYPE_STRING, "int32": _Field.TYPE_INT32, "int64": _Field.TYPE_INT64, "bytes": _Field.TYPE_BYTES}

# message: {field: (number, type)}; a type that ends in [] is repeated.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "FrontendAttributes": {"map": (1, "map")},
    "OpMetadata": {
        "op_type": (1, "string"),
        "op_name": (2, "string"),
        "source_file": (3, "string"),
        "source_line": (4, "int32"),
        "stack_frame_id": (15, "int32"),
    },
    "ShapeProto": {"element_type": (2, "int32"), "dimensions": (3, "int64[]"), "tuple_shapes": (4, "ShapeProto[]")},
    "HloInstructionProto": {
        "name": (1, "string"),
        "opcode": (2, "string"),
        "shape": (3, "ShapeProto"),
        "metadata": (7, "OpMetadata"),
        "parameter_number": (9, "int64"),
        "fusion_kind": (11, "string"),
        "tuple_index": (13, "int64"),
        "custom_call_target": (28, "string"),
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
    },
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
    "HloModuleProto": {
        "name": (1, "string"),
        "computations": (3, "HloComputationProto[]"),
        "entry_computation_id": (6, "int64"),
        "stack_frame_index": (17, "StackFrameIndexProto"),
        "frontend_attributes": (19, "FrontendAttributes"),
    },
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="hlotag/hlo.proto", package="hlotag.hlo", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, type_name) in fields.items():
            _add_field(message, field, number, type_name)
    # A pool of its own: XLA's messages may be registered in the default one by other packages.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = [*_MESSAGES, *(f"{name}.MapEntry" for name, fields in _MESSAGES.items() if "map" in {t for _, t in fields.values()})]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"hlotag.hlo.{name}")) for name in names}


def _add_field(message: Any, name: str, number: int, type_name: str) -> None:
    if type_name == "map":
        entry = message.nested_type.add(name="MapEntry")
        entry.options.map_entry = True
        for number_in_entry, half in enumerate(("key", "value"), start=1):
            _add_field(entry, half, number_in_entry, "string")
        type_name = f"{message.name}.MapEntry[]"
    base = type_name.removesuffix("[]")
    field = message.field.add(
        name=name, number=number, label=_Field.LABEL_REPEATED if base != type_name else _Field.LABEL_OPTIONAL
    )
    if base in _SCALARS:
        field.type = _SCALARS[base]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".hlotag.hlo.{base}"


# Protobuf makes the class of a message inside another when one is first read, and keeps no reference to it. If the collector
# frees such a class while another thread reads a message of it, the process ends; so all of them live as long as this module.
_CLASSES = _classes()
HloModuleProto = _CLASSES["HloModuleProto"]


def read(data: bytes) -> Any:
    """The `HloModuleProto` in `data`.

    Raises:
      HloError: `data` is not a serialized HLO module.
    """
    try:
        return HloModuleProto.FromString(data)
    except DecodeError:
        raise HloError(
            f"{len(data)} bytes are not a serialized HloModuleProto; `as_serialized_hlo_module_proto()` of a module, or a dump "
            "made with --xla_dump_hlo_as_proto, gives one"
        ) from None


def write(module: Any) -> bytes:
    """The bytes of an `HloModuleProto`, the same in every process."""
    return module.SerializeToString(deterministic=True)
