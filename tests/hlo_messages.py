# SPDX-License-Identifier: Apache-2.0
"""HLO modules with fields that XLA would not write."""

from collections.abc import Callable
from typing import Any

from hlotag.hlo import proto


def changed(data: bytes, change: Callable[[Any], None]) -> bytes:
    """A serialized module after `change` of its `HloModuleProto`."""
    module = proto.read(data)
    change(module)
    return module.SerializeToString(deterministic=True)


def as_dump(data: bytes) -> bytes:
    """The `HloProto` with a serialized module, as XLA dumps it."""
    return proto._CLASSES["HloProto"](hlo_module=data).SerializeToString()
