# SPDX-License-Identifier: Apache-2.0
"""XLA's serialized messages, of which jaxlib accepts truncated ones, and executables, which jaxlib runs in other versions."""

from __future__ import annotations

import functools
import json
import zlib
from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from hlotag._util import protobuf
from hlotag.xla.errors import XlaError

_BYTES = 2  # the wire type of strings, bytes and messages
_MAGIC = b"hlotag executable"
_OF_JAXLIB = b"pjrt_ifrt"  # near the start of serialized executables on every platform
_STAMP_FIELD = 536_870_000  # unused by XLA, so jaxlib skips the stamp


def fields_of(message: bytes) -> set[int] | None:
    """The numbers of a message's fields that are strings, bytes or messages; None for a truncated message or other bytes."""
    try:
        unknown = UnknownFieldSet(Empty.FromString(message))
    except DecodeError:
        return None
    return {field.field_number for field in unknown if field.wire_type == _BYTES}


def field_of(message: bytes, number: int) -> bytes:
    """A field that is a string, bytes or a message; empty if it is absent."""
    values = _holder(number).FromString(message).values
    return values[-1] if values else b""


def with_field(message: bytes, number: int, value: bytes) -> bytes:
    """Replaces a field that is a string, bytes or a message."""
    holder = _holder(number).FromString(message)
    holder.values[:] = [value]
    return holder.SerializeToString()


@functools.cache
def _holder(number: int) -> Any:
    """A class of messages with one known field."""
    return protobuf.classes({"Holder": {"values": (number, "bytes[]")}})["Holder"]


def stamp(executable: bytes, origin: dict[str, Any]) -> bytes:
    """Adds the checksum and the origin of an executable to its bytes, in a field that jaxlib ignores."""
    stamp = _MAGIC + json.dumps([_checksum(executable, origin), origin]).encode()
    return executable + with_field(b"", _STAMP_FIELD, stamp)


def remove_stamp(serialized: bytes) -> tuple[bytes, dict[str, Any] | None]:
    """Splits the result of `stamp`. The origin of jaxlib's own bytes is None.

    Raises:
        XlaError: The bytes are damaged.
    """
    executable, found, stamp = serialized.rpartition(_MAGIC)
    if not found:
        return serialized, None
    try:
        checksum, origin = json.loads(stamp)
        executable = serialized[: -len(with_field(b"", _STAMP_FIELD, _MAGIC + stamp))]
        if checksum == _checksum(executable, origin):
            return executable, origin
    except (ValueError, TypeError):
        pass
    raise XlaError("the serialized executable is damaged: its checksum does not match; serialize it again")


def _checksum(executable: bytes, origin: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(origin).encode(), zlib.crc32(executable))


def looks_like_an_executable(data: bytes) -> bool:
    """Whether bytes are probably a serialized executable."""
    return _MAGIC in data or _OF_JAXLIB in data[:64]
