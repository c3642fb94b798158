# SPDX-License-Identifier: Apache-2.0
"""Which HLO instructions an operation may have become.

XLA gives the name of an operation to whatever it replaces it by, and sometimes to what it replaces another one by: a dot whose
transposed operand it folded is called like the transpose. What a name says is believed where kind and opcode agree.
"""

from __future__ import annotations

import enum
import functools


class Kind(enum.IntEnum):
    """What an operation or instruction does, coarsely; a rewrite may make lower kinds of a higher one, never the other way."""

    GLUE = 0  # says nothing of a program: tuples, copies, wrappers
    LAYOUT = 1  # moves elements
    POINTWISE = 2  # computes element by element
    HEAVY = 3  # everything else


_GLUE = {
    *("add-dependency", "after-all", "async-done", "async-start", "async-update", "bitcast", "call", "constant", "copy"),
    *("copy-done", "copy-start", "domain", "fusion", "get-tuple-element", "opt-barrier", "parameter", "partition-id"),
    *("replica-id", "tuple"),
}
_LAYOUT = {
    *("broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "iota", "pad", "reshape", "reverse", "slice"),
    "transpose",
}
_HEAVY = {
    "all-gather": "all-gather",
    "all-reduce": "all-reduce",
    "all-to-all": "all-to-all",
    "cholesky": "linear-algebra",
    "collective-broadcast": "collective-broadcast",
    "collective-permute": "collective-permute",
    "conditional": "conditional",
    "convolution": "contraction",
    "custom-call": "custom-call",
    "dot": "contraction",
    "fft": "fft",
    "gather": "gather",
    "infeed": "infeed",
    "outfeed": "outfeed",
    "recv": "recv",
    "reduce": "reduce",
    "reduce-scatter": "reduce-scatter",
    "reduce-window": "reduce",
    "rng": "rng",
    "rng-bit-generator": "rng",
    "scatter": "scatter",
    "select-and-scatter": "scatter",
    "send": "send",
    "sort": "sort",
    "topk": "sort",
    "triangular-solve": "linear-algebra",
    "while": "while",
}
# From StableHLO's names to HLO's, where they differ by more than dashes.
_RENAMED = {
    "broadcast_in_dim": "broadcast",
    "dynamic_broadcast_in_dim": "broadcast",
    "dynamic_reshape": "reshape",
    "dynamic_iota": "iota",
    "dynamic_pad": "pad",
    "real_dynamic_slice": "slice",
    "dot_general": "dot",
    "dynamic_gather": "gather",
    "dynamic_conv": "convolution",
    "case": "conditional",
    "if": "conditional",
    "bitcast_convert": "bitcast-convert",
    "manual_computation": "call",
    "optimization_barrier": "opt-barrier",
}
# Where all elements stay in their order, nothing has to be computed.
RELABELLING = {"reshape", "transpose", "broadcast", "bitcast-convert"}
# What moves values and computes none; a broadcast of an iota is one.
MOVES = frozenset(
    {
        *("bitcast", "bitcast-convert", "broadcast", "concatenate", "convert", "copy", "get-tuple-element", "iota"),
        *("opt-barrier", "pad", "reshape", "reverse", "slice", "transpose", "tuple"),
    }
)
# What XLA adds for its own ends, and gives no name: it is nobody's operation.
_XLAS_OWN = frozenset({"bitcast", "copy", "get-tuple-element", "parameter", "partition-id", "replica-id", "tuple"})
# What they become is theirs alone to know.
_OPAQUE = {"custom_call", "composite", "custom-call"}
# Beside its own kind, what a heavy operation is rewritten to.
_REWRITTEN = {
    # Where XLA's partitioner splits what they sum up, collectives add the parts.
    "contraction": {"contraction", "reduce", "custom-call", "all-reduce", "reduce-scatter"},
    "reduce": {"reduce", "all-reduce", "reduce-scatter", "contraction", "custom-call"},
    "scatter": {"scatter", "while", "reduce", "sort", "custom-call", "all-reduce", "reduce-scatter"},
    "gather": {"gather", "while", "contraction"},
    "sort": {"sort", "custom-call"},
    "fft": {"fft", "custom-call"},
    "rng": {"rng", "while", "custom-call"},
    "linear-algebra": {"linear-algebra", "while", "custom-call", "contraction"},
    "reduce-scatter": {"reduce-scatter", "all-reduce"},
    "all-reduce": {"reduce-scatter", "all-reduce"},
}
# What one that takes a single place is rewritten to.
_OF_ONE_PLACE = {"gather": "dynamic-slice", "scatter": "dynamic-update-slice"}


@functools.cache
def kind_of(opcode: str) -> Kind:
    """The kind of an instruction.

    Args:
        opcode: As in HLO text.

    Returns:
        Its kind.
    """
    if opcode in _GLUE:
        return Kind.GLUE
    if opcode in _LAYOUT:
        return Kind.LAYOUT
    return Kind.HEAVY if _base(opcode) in _HEAVY else Kind.POINTWISE


@functools.cache
def opcode_of(name: str) -> str:
    """The HLO opcode that an operation is translated to, or an empty string where that is open.

    Args:
        name: `stablehlo.dot_general`, or an opcode.

    Returns:
        The opcode.
    """
    dialect, dot, base = name.rpartition(".")
    if base in _OPAQUE or dialect == "chlo":
        return ""
    return _RENAMED.get(base, base.replace("_", "-")) if dot else name


@functools.cache
def may_be(name: str, opcode: str) -> bool:
    """Whether an operation may have become an instruction that is more than glue.

    Args:
        name: The operation's.
        opcode: The instruction's.

    Returns:
        False for glue too.
    """
    own, kind = opcode_of(name), kind_of(opcode)
    if opcode == own:
        return True
    if opcode in ("bitcast", "copy"):
        return own in RELABELLING
    if kind == Kind.GLUE or not own:
        return kind != Kind.GLUE
    if kind == Kind.HEAVY:
        group = _HEAVY.get(own, "")
        return _HEAVY[_base(opcode)] in _REWRITTEN.get(group, {group})
    if kind == Kind.LAYOUT:
        # Of what moves elements, only a broadcast of an iota is made an iota under its own name.
        is_moved = kind_of(own) == Kind.LAYOUT and (opcode != "iota" or own == "broadcast")
        return is_moved or opcode == _OF_ONE_PLACE.get(own)
    return kind_of(own) >= Kind.POINTWISE


@functools.cache
def traits(name: str) -> tuple[str, bool, bool, bool, str]:
    """What `hlotag._core.join` asks of a name.

    Args:
        name: An operation's, or an opcode.

    Returns:
        The opcode; whether that only moves values, relabels elements, is XLA's own where it has no name; and its heavy kind.
    """
    opcode = opcode_of(name)
    return opcode, opcode in MOVES, opcode in RELABELLING, opcode in _XLAS_OWN, _HEAVY.get(_base(opcode), "")


def _base(opcode: str) -> str:
    return opcode.removesuffix("-start").removesuffix("-done")
