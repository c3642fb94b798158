# SPDX-License-Identifier: Apache-2.0
"""Which jaxlib serialized an executable? jaxlib does not check, and runs executables of other versions.

The stamp is an extra protobuf field after jaxlib's bytes, with an unused number, so that jaxlib can still read the whole.
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
        platform: The platform that it is for, with the platform's version.
        num_replicas: Its replicas.
        num_partitions: Its partitions.
    """

    jaxlib: str
    platform: str
    num_replicas: int
    num_partitions: int


def stamped(executable: bytes, stamp: Stamp) -> bytes:
    """Adds a stamp.

    Args:
        executable: An executable that jaxlib serialized.
        stamp: Its origin.

    Returns:
        The executable with the stamp.
    """
    about = json.dumps([_checksum(executable, asdict(stamp)), asdict(stamp)]).encode()
    return executable + _wire.with_part(b"", _FIELD, about + len(about).to_bytes(4, "little") + _MAGIC)


def unstamped(serialized: bytes) -> tuple[bytes, Stamp | None]:
    """Removes the stamp.

    Args:
        serialized: The result of `stamped`, or of jaxlib.

    Returns:
        jaxlib's bytes, and the stamp or None.

    Raises:
        XlaError: The bytes are damaged.
    """
    if not serialized.endswith(_MAGIC):
        return serialized, None
    damaged = XlaError("the serialized executable is damaged: it is not what was serialized; serialize it again")
    end = len(serialized) - len(_MAGIC) - 4
    size = int.from_bytes(serialized[max(end, 0) : end + 4], "little")
    executable = serialized[: max(end + 4 + len(_MAGIC) - len(_wire.with_part(b"", _FIELD, bytes(size + 4 + len(_MAGIC)))), 0)]
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
    """Whether bytes look like a serialized executable.

    Args:
        data: Any bytes.

    Returns:
        Whether they look like one.
    """
    return data.endswith(_MAGIC) or _OF_JAXLIB in data[:64]
