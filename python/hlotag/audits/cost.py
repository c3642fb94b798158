# SPDX-License-Identifier: Apache-2.0
"""The cost of an operation: floating-point operations and bytes, estimated from its types."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

from hlotag.audits.model import Op
from hlotag.hlo.opcodes import Kind, kind_of, opcode_of
from hlotag.mlir.modules import type_in_hlo

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_SHAPE = re.compile(r"\[([\d,]*)\]")
_BITS = re.compile(r"\d+")


def of_operation(operation: ir.Operation) -> dict[str, Any]:
    """The fields `type`, `flops` and `bytes` of an `Op` for an operation of StableHLO."""
    operands, results = ([type_in_hlo(value.type) for value in values] for values in (operation.operands, operation.results))
    if not results:
        return {}
    (name, shape), more = results[0], len(results) - 1
    text = f"{name}[{','.join('?' if size < 0 else str(size) for size in shape)}]" if name else str(operation.results[0].type)
    return {
        "type": f"{text} and {more} more" if more else text,
        "flops": _flops(operation, [shape for _, shape in operands], shape),
        "bytes": sum(_size(name, shape) for name, shape in (*operands, *results)),
    }


def shape_of(op: Op) -> tuple[int, ...] | None:
    """The dimensions of an operation's first result; None if unknown."""
    found = _SHAPE.search(op.type)
    return tuple(map(int, _BITS.findall(found[1]))) if found else None


def in_words(flops: int, size: int) -> str:
    """Formats work: `2.1 Gflop`; `4.2 MB` if `flops` is 0; empty if both are 0."""
    return _scale(flops, "flop") if flops else _scale(size, "B") if size else ""


def _scale(number: int, unit: str) -> str:
    for prefix, factor in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}{unit}"
    return f"{number} {unit}"


def _size(name: str, shape: tuple[int, ...]) -> int:
    bits = _BITS.search(name)
    size = max(8, int(bits[0])) // 8 if bits else 1
    return max(0, prod(shape)) * size if name else 0


def _flops(operation: ir.Operation, operands: list[tuple[int, ...]], result: tuple[int, ...]) -> int:
    from jaxlib.mlir.dialects import stablehlo

    elements = max(0, prod(result))
    opcode = opcode_of(operation.name)
    if operation.name == "stablehlo.dot_general":
        axes = stablehlo.DotDimensionNumbers(operation.attributes["dot_dimension_numbers"]).lhs_contracting_dimensions
        return 2 * elements * max(0, prod(operands[0][axis] for axis in axes))
    if operation.name == "stablehlo.convolution":
        axis = stablehlo.ConvDimensionNumbers(operation.attributes["dimension_numbers"]).kernel_output_feature_dimension
        return 2 * elements * max(0, prod(operands[1])) // max(1, operands[1][axis])
    if opcode == "reduce":
        return max(0, prod(operands[0]))
    return elements if kind_of(opcode) == Kind.POINTWISE else 0
