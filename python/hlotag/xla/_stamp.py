# SPDX-License-Identifier: Apache-2.0
"""Which jaxlib serialized an executable? jaxlib does not check, and runs executables of other versions.

The stamp is an extra protobuf field after jaxlib's bytes, with an unused number, so that jaxlib can still read the bytes.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any

from hlotag.xla import _wire
from hlotag.xla._errors import XlaError

_FIELD = 536_870_000
_MAGIC = b"hlotag executable"
_OF_JAXLIB = b"pjrt_ifrt"  # near the start of serialized executables on every platform


@dataclass(frozen=True)
class Stamp:
    """The origin of a serialized executable.

    Attributes:
        jaxlib: The version of the jaxlib that compiled it.
        platform: The platform and version that it runs on.
        num_replicas: The number of replicas.
        num_partitions: The number of partitions.
    """

    jaxlib: str
    platform: str
    num_replicas: int
    num_partitions: int


def stamped(executable: bytes, stamp: Stamp) -> bytes:
    """Adds a stamp to an executable.

    Args:
        executable: An executable that jaxlib serialized.
        stamp: The origin of the executable.

    Returns:
        The executable with the stamp.
    """
    about = json.dumps([_checksum(executable, asdict(stamp)), asdict(stamp)]).encode()
    return executable + _wire.with_part(b"", _FIELD, about + len(about).to_bytes(4, "little") + _MAGIC)


def unstamped(serialized: bytes) -> tuple[bytes, Stamp | None]:
    """Removes the stamp from an executable.

    Args:
        serialized: The result of `stamped`, or jaxlib's own bytes.

    Returns:
        jaxlib's bytes, and the stamp or None.

    Raises:
        XlaError: The bytes are damaged.
    """
    if not serialized.endswith(_MAGIC):
        return serialized, None
    damaged = XlaError("the serialized executable is damaged: its checksum does not match; serialize it again")
    end = len(serialized) - len(_MAGIC) - 4
    size = int.from_bytes(serialized[max(end, 0) : end + 4], "little")
    field = _wire.with_part(b"", _FIELD, bytes(size + 4 + len(_MAGIC)))  # As long as the stamp's field.
    executable = serialized[: max(len(serialized) - len(field), 0)]
    try:
        checksum, fields = json.loads(serialized[max(end - size, 0) : end])
        stamp = Stamp(**fields)
    except (ValueError, TypeError):
        raise damaged from None
    if _checksum(executable, fields) != checksum:
        raise damaged
    return executable, stamp


def _checksum(executable: bytes, fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields).encode(), zlib.crc32(executable))


def looks_serialized(data: bytes) -> bool:
    """Tells a serialized executable from other bytes.

    Args:
        data: Any bytes.

    Returns:
        Whether the bytes look like a serialized executable.
    """
    return data.endswith(_MAGIC) or _OF_JAXLIB in data[:64]
