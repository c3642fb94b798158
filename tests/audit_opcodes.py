# SPDX-License-Identifier: Apache-2.0
"""Which HLO instructions compute an operation, and which only carry it: what `audit_truth.py` goes by, written by hand.

It is apart from hlotag's own table, `hlotag.hlo.opcodes`, since the truth is to be found without what it is compared with.
"""

# Instructions that only carry what others compute.
CARRIERS = {"copy", "bitcast", "call", "tuple", "get-tuple-element", "transpose", "reshape", "broadcast"}
# Of these, what XLA puts around an instruction, under its name, when it moves a change of shape past it.
RELABELLED = {"bitcast", "copy", "reshape", "transpose"}
GLUE = CARRIERS | {"fusion", "parameter", "constant"}

# XLA rewrites arithmetic to any other: the remainder by a power of two to a mask, a square root and a division to `rsqrt`.
ARITHMETIC = {
    *("abs", "add", "and", "cbrt", "ceil", "clamp", "compare", "complex", "convert", "cosine", "divide", "exponential"),
    *("exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic", "maximum", "minimum"),
    *("multiply", "negate", "not", "or", "power", "real", "remainder", "round-nearest-even", "rsqrt", "select"),
    *("shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh"),
    "xor",
}

# Instructions that compute an operation, beside the one of the same name.
COMPUTED_BY = {
    "stablehlo.broadcast_in_dim": {"broadcast", "reshape", "bitcast", "transpose", "copy", "iota"},
    "stablehlo.reshape": {"reshape", "bitcast", "copy", "broadcast", "transpose"},
    "stablehlo.transpose": {"transpose", "bitcast", "copy", "reshape"},
    "stablehlo.dot_general": {"convolution", "dot", "multiply", "add", "reduce", "custom-call"},
    "stablehlo.convolution": {"convolution", "dot", "multiply", "custom-call", "reduce"},
    "stablehlo.slice": {"slice", "broadcast"},
    "stablehlo.reverse": {"reverse", "broadcast"},
    "stablehlo.pad": {"pad", "slice", "broadcast"},
    "stablehlo.concatenate": {"concatenate", "pad"},
    "stablehlo.select_and_scatter": {"select-and-scatter", "scatter"},
    "stablehlo.case": {"conditional", "select"},
    "stablehlo.dynamic_slice": {"dynamic-slice", "slice"},
    "stablehlo.divide": {"divide", "multiply"},
    "stablehlo.subtract": {"subtract", "add"},
    "stablehlo.scatter": {"scatter", "dynamic-update-slice", "select"},
    "stablehlo.gather": {"gather", "dynamic-slice"},
}


def computes(name: str, opcode: str) -> bool:
    base, opcode = name.rpartition(".")[2].replace("_", "-"), opcode.removesuffix("-start")
    return (name.startswith("chlo.") and opcode not in GLUE) or opcode == base or opcode in COMPUTED_BY.get(name, ())


def rewritten(name: str, opcode: str) -> bool:
    return name.rpartition(".")[2].replace("_", "-") in ARITHMETIC and opcode in ARITHMETIC
