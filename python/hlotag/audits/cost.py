# SPDX-License-Identifier: Apache-2.0
"""The type and the work of an operation, as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hlotag.audits.model import Op
from hlotag.mlir.modules import type_in_hlo

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_SHAPE = re.compile(r"\[([\d,]*)\]")
_NUMBER = re.compile(r"\d+")


def type_of(operation: ir.Operation) -> str:
    """Element type and shape of the first result of an operation of StableHLO; empty if it has none."""
    if not len(operation.results):
        return ""
    name, shape = type_in_hlo(operation.results[0].type)
    text = f"{name}[{','.join('?' if size < 0 else str(size) for size in shape)}]" if name else str(operation.results[0].type)
    more = len(operation.results) - 1
    return f"{text} and {more} more" if more else text


def shape_of(op: Op) -> tuple[int, ...] | None:
    """The dimensions of an operation's first result; None if unknown."""
    found = _SHAPE.search(op.type)
    return tuple(map(int, _NUMBER.findall(found[1]))) if found else None


def in_words(flops: int, size: int) -> str:
    """Formats work: `2.1 Gflop`; `4.2 MB` if `flops` is 0; empty if both are 0."""
    return _scale(flops, "flop") if flops else _scale(size, "B") if size else ""


def _scale(number: int, unit: str) -> str:
    for prefix, factor in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}{unit}"
    return f"{number} {unit}"
