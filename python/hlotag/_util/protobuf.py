# SPDX-License-Identifier: Apache-2.0
"""Protobuf messages with a few known fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {"string": _Field.TYPE_STRING, "int32": _Field.TYPE_INT32, "int64": _Field.TYPE_INT64, "bytes": _Field.TYPE_BYTES}


def classes(messages: Mapping[str, Mapping[str, tuple[int, str]]]) -> dict[str, Any]:
    """Makes the classes of messages from the number and type of each field.

    A type is a message, "string", "bytes", "int32" or "int64", with `[]` at the end for repeated fields. Keep all classes:
    protobuf creates the class of a nested message when one is first read, and holds no reference to it. If the collector frees
    the class while another thread reads a message, the process crashes.
    """
    file = descriptor_pb2.FileDescriptorProto(name="hlotag.proto", package="hlotag", syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, (number, type_name) in fields.items():
            _add_field(message, field, number, type_name)
    # Not the default pool, in which other packages may have registered XLA's messages.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"hlotag.{name}")) for name in messages}


def _add_field(message: Any, name: str, number: int, type_name: str) -> None:
    base = type_name.removesuffix("[]")
    field = message.field.add(
        name=name, number=number, label=_Field.LABEL_REPEATED if base != type_name else _Field.LABEL_OPTIONAL
    )
    if base in _SCALARS:
        field.type = _SCALARS[base]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".hlotag.{base}"
