# SPDX-License-Identifier: Apache-2.0
"""How are XLA's serialized messages checked and edited? jaxlib accepts truncated ones, and cannot replace a field."""

from __future__ import annotations

import functools
from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from hlotag._util import protobuf

_BYTES = 2  # the wire type of strings, bytes and messages


def parts(message: bytes) -> set[int]:
    """Lists the fields of a message that are strings, bytes or messages.

    Args:
        message: The message.

    Returns:
        The numbers of the fields.

    Raises:
        ValueError: The bytes are not a message, or are truncated.
    """
    try:
        unknown = UnknownFieldSet(Empty.FromString(message))
    except DecodeError as error:
        raise ValueError(f"{error}: not a protocol buffer, or truncated") from None
    return {field.field_number for field in unknown if field.wire_type == _BYTES}


def part_of(message: bytes, number: int) -> bytes:
    """Reads a field that is a string, bytes or a message.

    Args:
        message: A message.
        number: The field's number.

    Returns:
        The value; empty if the field is absent or the bytes are not a message.
    """
    try:
        values = _holder(number).FromString(message).values
        return values[-1] if values else b""
    except DecodeError:
        return b""


def with_part(message: bytes, number: int, value: bytes) -> bytes:
    """Replaces a field of a message.

    Args:
        message: A message.
        number: The number of a field that is a string, bytes or a message.
        value: The new value.

    Returns:
        The message with the new value.
    """
    holder = _holder(number).FromString(message)
    holder.values[:] = [value]
    return holder.SerializeToString()


@functools.cache
def _holder(number: int) -> Any:
    """A class of messages with one known field."""
    return protobuf.classes({"Holder": {"values": (number, "bytes[]")}})["Holder"]
