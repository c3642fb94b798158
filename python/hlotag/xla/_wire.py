# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers as far as this package needs them: the fields of one message, unparsed.

jaxlib reads and writes XLA's messages, but takes a truncated one for a smaller one, and cannot replace a part of one.
"""

from __future__ import annotations

from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}


@dataclass(frozen=True)
class Field:
    """A field of a message.

    Attributes:
        number: The field's number.
        is_bytes: Whether its value is a string, bytes or a message.
        start: Where the field begins in the message.
        value: Where its value begins.
        end: Where the field ends.
    """

    number: int
    is_bytes: bool
    start: int
    value: int
    end: int


def fields(message: bytes) -> list[Field]:
    """Lists the fields of a message, in the order in which they are written.

    Args:
        message: The message.

    Returns:
        Its fields.

    Raises:
        ValueError: This is not a message, or it is cut off; with the offset.
    """
    found, at = [], 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if number == 0 or wire_type not in {_VARINT, _BYTES, *_FIXED}:
            raise ValueError(f"no field begins at byte {start}")
        size, value = 0, at
        if wire_type == _VARINT:
            _, at = _varint(message, at)
        elif wire_type == _BYTES:
            size, value = _varint(message, at)
            at = value + size
        else:
            at += _FIXED[wire_type]
        if at > len(message):
            raise ValueError(f"the field at byte {start} is cut off: it needs {at - len(message)} more bytes")
        found.append(Field(number, wire_type == _BYTES, start, value, at))
    return found


def value_of(message: bytes, number: int) -> bytes:
    """Reads a field that is a string, bytes or a message.

    Args:
        message: The message.
        number: The field's number.

    Returns:
        Its value; empty if the message does not have it.

    Raises:
        ValueError: This is not a message.
    """
    return next((message[f.value : f.end] for f in fields(message) if f.number == number and f.is_bytes), b"")


def with_field(message: bytes, number: int, value: bytes) -> bytes:
    """Gives a field of a message another value.

    Args:
        message: The message.
        number: The number of a field that is a string, bytes or a message.
        value: Its value.

    Returns:
        The message with this value in place of those it had.

    Raises:
        ValueError: This is not a message.
    """
    others = b"".join(message[f.start : f.end] for f in fields(message) if f.number != number)
    return others + field(number, value)


def field(number: int, value: bytes) -> bytes:
    """Writes a field.

    Args:
        number: The field's number.
        value: A string, bytes or a message.

    Returns:
        The field, with its key.
    """
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(value)) + value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise ValueError(f"a number is cut off at byte {at}")
        byte = message[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
    raise ValueError(f"the number before byte {at} is too long")


def _as_varint(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    result.append(number)
    return bytes(result)
