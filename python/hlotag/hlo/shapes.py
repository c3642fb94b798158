# SPDX-License-Identifier: Apache-2.0
"""The types and sizes that a `ShapeProto` says."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class _Type(NamedTuple):
    name: str
    bits: int


# By XLA's `PrimitiveType`. Those without a name are tuples, tokens and unknown ones.
_TYPES = (
    _Type("", 0),
    _Type("pred", 8),
    *(_Type(f"s{bits}", bits) for bits in (8, 16, 32, 64)),
    *(_Type(f"u{bits}", bits) for bits in (8, 16, 32, 64)),
    *(_Type(f"f{bits}", bits) for bits in (16, 32, 64)),
    _Type("", 0),
    _Type("", 0),
    _Type("c64", 64),
    _Type("bf16", 16),
    _Type("", 0),
    _Type("c128", 128),
)
_SMALL = _Type("", 8)  # Types of a few bits, which come after these.
# F8E5M2, F8E4M3FN, F8E4M3B11FNUZ, F8E5M2FNUZ, F8E4M3FNUZ, F8E4M3, F8E3M4.
_F8 = {19, 20, 23, 24, 25, 28, 29}


def _type_of(shape: Any) -> _Type:
    return _TYPES[shape.element_type] if 0 <= shape.element_type < len(_TYPES) else _SMALL


def bytes_of(shape: Any) -> int:
    """The bytes of an array; 0 for a tuple."""
    return math.prod(shape.dimensions) * _type_of(shape).bits // 8


def type_of(shape: Any) -> str:
    """`f32`; `f8` for all floats of eight bits; empty for a tuple, and for types without a name here."""
    return "f8" if shape.element_type in _F8 else _type_of(shape).name


def text_of(shape: Any) -> str:
    """`f32[8,128]`; empty for a tuple, and for types without a name here."""
    name = _type_of(shape).name
    return f"{name}[{','.join(map(str, shape.dimensions))}]" if name else ""
