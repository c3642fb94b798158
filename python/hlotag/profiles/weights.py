# SPDX-License-Identifier: Apache-2.0
"""How long does an opcode take for an element, beside others in the same event? Flops count each of them as one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from hlotag.hlo.module import HloModule


class Weight(NamedTuple):
    """Times of an element, where a simple operation on `f32`, such as an addition, takes 1.

    Attributes:
        f32: For elements of 32 bits or less.
        f64: For elements of 64 bits.
    """

    f32: float
    f64: float


_SIMPLE = Weight(1, 2)

# Measured by benchmarks/weights.py on two cores of an Intel Xeon with AVX-512, jax 0.12, November 2026. A simple operation takes
# 0.07 ns there. Of a product, the weight is for each flop; of a reduction, for each element.
_CPU = {
    "atan2": Weight(640, 650),
    "cbrt": Weight(130, 300),
    "ceil": Weight(1.6, 4),
    "convolution": Weight(0.15, 0.3),
    "cosine": Weight(80, 140),
    "divide": Weight(2.5, 11),
    "dot": Weight(0.15, 0.3),
    "erf": Weight(26, 640),
    "exponential": Weight(46, 140),
    "exponential-minus-one": Weight(58, 160),
    "floor": Weight(1.8, 3),
    "log": Weight(36, 75),
    "log-plus-one": Weight(42, 150),
    "logistic": Weight(50, 145),
    "maximum": Weight(2.5, 5),
    "minimum": Weight(2.5, 5),
    "power": Weight(430, 650),
    "reduce": Weight(3, 6),
    "remainder": Weight(350, 370),
    "rsqrt": Weight(16, 34),
    "sine": Weight(78, 130),
    "sqrt": Weight(3.5, 17),
    "tan": Weight(200, 480),
    "tanh": Weight(31, 90),
}

# Measured as `_CPU`: fusions that YNNPACK computes for XLA's CPU code, on `f32`. Medians of ten runs; single runs differ by half.
# An operation that is missing here takes 1. That of `dot` was not measured in a fusion.
_YNN: Mapping[str, float] = {
    "atan2": 425,
    "cbrt": 440,
    "cosine": 8.7,
    "divide": 6.7,
    "dot": 0.15,
    "erf": 21,
    "exponential": 9,
    "exponential-minus-one": 9.5,
    "log": 9.5,
    "log-plus-one": 11,
    "logistic": 15,
    "power": 200,
    "reduce": 1.6,
    "remainder": 310,
    "rsqrt": 14,
    "sine": 8.7,
    "sqrt": 7.7,
    "tan": 14,
    "tanh": 14,
}
_YNN_ROW = 160  # for a row of the minor dimension that is summed, beside its elements
_YNN_NAME = "ynn_fusion"  # XLA's name of such a fusion, before a number

# Not measured by this project: cycles of an H100 in XLA's cost model, xla/service/gpu/model/hlo_op_profiles_data.h, beside those
# of an addition. Opcodes that XLA expands into others count as these.
_GPU = {
    "atan2": Weight(62, 130),
    "cbrt": Weight(25, 84),
    "cosine": Weight(140, 80),
    "divide": Weight(2.7, 75),
    "exponential": Weight(11, 54),
    "exponential-minus-one": Weight(27, 100),
    "log": Weight(24, 116),
    "log-plus-one": Weight(33, 180),
    "logistic": Weight(14, 130),
    "power": Weight(73, 315),
    "rsqrt": Weight(11, 40),
    "sine": Weight(137, 79),
    "sqrt": Weight(11, 47),
    "tanh": Weight(67, 62),
}

# No measurement and no published model of TPUs: there, each opcode counts as its flops.
_TABLES: Mapping[str, Mapping[str, Weight]] = {"cpu": _CPU, "cuda": _GPU, "gpu": _GPU, "rocm": _GPU}


def weight_of(platform: str, opcode: str, type_name: str, fusion: str = "") -> float:
    """The time of a flop of an opcode on JAX's platform.

    `type_name` is the type of its elements, "f32"; `fusion` is the name of the fusion that it is in.
    """
    if is_ynn(platform, fusion):
        return _YNN.get(opcode, 1.0)
    table = _TABLES.get(platform)
    if table is None:
        return 1.0
    weight = table.get(opcode, _SIMPLE)
    return weight.f64 if type_name in ("f64", "c128", "s64", "u64") else weight.f32


def is_ynn(platform: str, fusion: str) -> bool:
    """Whether YNNPACK computes a fusion. XLA's own loops take much longer for functions such as `sine`."""
    return platform == "cpu" and fusion.startswith(_YNN_NAME)


def time_rows(module: HloModule) -> dict[str, float]:
    """By reduction of rows of a minor dimension in YNNPACK's fusions, the time of the rows beside that of the elements."""
    found: dict[str, float] = {}
    for computation, fusion in module.fusions.items():
        if not is_ynn("cpu", fusion.name):
            continue
        for each in module.computations[computation].instructions:
            if each.opcode == "reduce" and len(each.operands[0].dimensions) - 1 in each.proto.dimensions:
                found[each.name] = _YNN_ROW * math.prod(each.dimensions)
    return found
