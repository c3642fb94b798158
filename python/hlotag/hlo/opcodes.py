# SPDX-License-Identifier: Apache-2.0
"""The HLO instructions that an operation may become.

XLA names a replacement after the replaced operation, and sometimes after a neighbour: a dot with a folded transpose has the name
of the transpose. So hlotag believes a name only if the kind of the operation and the opcode agree.
"""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlotag.hlo.module import Instruction


class Kind(enum.IntEnum):
    """The cost class of an operation or instruction. Rewrites may lower the class, never raise it."""

    GLUE = 0  # computes nothing: tuples, copies, wrappers
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
COLLECTIVES = {
    *("all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all"),
    "reduce-scatter",
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
# Renames the dimensions of elements; computes nothing.
RELABELLING = {"reshape", "transpose", "broadcast", "bitcast-convert"}
# Moves values without computing any; an iota counts, as a broadcast of one may be an iota.
MOVES = frozenset(
    {
        *("bitcast", "bitcast-convert", "broadcast", "concatenate", "convert", "copy", "get-tuple-element", "iota"),
        *("opt-barrier", "pad", "reshape", "reverse", "slice", "transpose", "tuple"),
    }
)
# XLA's own instructions, if they have no name.
_XLAS_OWN = frozenset({"bitcast", "copy", "get-tuple-element", "parameter", "partition-id", "replica-id", "tuple"})
# Opaque: may become any instruction but a loop or a branch, which XLA also makes for reasons of its own.
_OPAQUE = {"custom_call", "composite", "custom-call"}
_CONTROL = {"conditional", "while"}
# The opcodes, beside its own, that a heavy operation may be rewritten to.
_REWRITTEN = {
    # If XLA's partitioner splits the reduced dimension, collectives add the parts.
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
# The rewrites of an operation on a single element.
_OF_ONE_PLACE = {"gather": "dynamic-slice", "scatter": "dynamic-update-slice"}


@functools.cache
def kind_of(opcode: str) -> Kind:
    """The kind of an instruction with this opcode."""
    if opcode in _GLUE:
        return Kind.GLUE
    if opcode in _LAYOUT:
        return Kind.LAYOUT
    return Kind.HEAVY if base(opcode) in _HEAVY else Kind.POINTWISE


@functools.cache
def opcode_of(name: str) -> str:
    """The HLO opcode that an operation (`stablehlo.dot_general`, or an opcode) is translated to; empty if it depends."""
    dialect, dot, base = name.rpartition(".")
    if base in _OPAQUE or dialect == "chlo":
        return ""
    return _RENAMED.get(base, base.replace("_", "-")) if dot else name


@functools.cache
def may_be(name: str, opcode: str) -> bool:
    """Whether an operation of this name may have become an instruction with this opcode that is not glue."""
    own, kind = opcode_of(name), kind_of(opcode)
    if opcode == own:
        return True
    if opcode in ("bitcast", "copy"):
        return own in RELABELLING
    if kind == Kind.GLUE or not own:
        return kind != Kind.GLUE and opcode not in _CONTROL
    if kind == Kind.HEAVY:
        group = _HEAVY.get(own, "")
        return _HEAVY[base(opcode)] in _REWRITTEN.get(group, {group})
    if kind == Kind.LAYOUT:
        # Among operations that move elements, only a broadcast may become an iota with its own name.
        is_moved = kind_of(own) == Kind.LAYOUT and (opcode != "iota" or own == "broadcast")
        return is_moved or opcode == _OF_ONE_PLACE.get(own)
    return kind_of(own) >= Kind.POINTWISE


class Role(enum.StrEnum):
    """What an instruction does for an operation that it came from."""

    COMPUTES = "computes"  # The operation's arithmetic, or the move that the operation is.
    PART = "part"  # A piece of what XLA expanded the operation to.
    CARRIES = "carries"  # Moves the operation's result.


# By opcode, the opcode that XLA rewrites to it if an operand is constant: `x - 1` becomes `x + -1`.
REWRITTEN_FROM = {"add": "subtract", "multiply": "divide"}


@functools.cache
def role_of(name: str, opcode: str) -> Role:
    """What an instruction with this opcode does for an operation of this name that it came from."""
    own, kind, group = opcode_of(name), kind_of(opcode), _HEAVY.get(base(opcode), "")
    if opcode == own or (base(opcode) == own and opcode.endswith("-start")):
        return Role.COMPUTES
    if opcode in ("bitcast", "copy") and own in RELABELLING:
        return Role.COMPUTES
    if kind == Kind.GLUE or opcode == "convert" or opcode.endswith("-done"):
        return Role.CARRIES
    if kind == Kind.LAYOUT:
        is_own = kind_of(own) == Kind.LAYOUT or opcode == _OF_ONE_PLACE.get(own)
        return Role.COMPUTES if own and is_own else Role.CARRIES
    if kind == Kind.POINTWISE:
        return Role.COMPUTES if own == REWRITTEN_FROM.get(opcode) else Role.PART
    is_same = group == "custom-call" if not own else kind_of(own) == Kind.HEAVY and group in (_HEAVY.get(own), "custom-call")
    return Role.COMPUTES if is_same and group != "scatter" else Role.PART


def replaces(name: str, opcode: str) -> bool:
    """Whether an instruction that is a part of an operation may be all that XLA left of the operation's arithmetic.

    A sum is no product, even if XLA made a product the sum of pointwise ones, which may be in another kernel.
    """
    group = _HEAVY.get(opcode_of(name))
    is_rewritten = kind_of(opcode) == Kind.HEAVY and _HEAVY[base(opcode)] in _REWRITTEN.get(group or "", ())
    return group is None or (is_rewritten and group != "contraction")


def collective_of(instruction: Instruction) -> str:
    """The opcode of a collective, or of the one that an asynchronous pair runs; "" for other instructions."""
    wrapped = [called.root.opcode for called in instruction.called] if instruction.opcode.startswith("async-") else []
    opcode = base(wrapped[0] if wrapped else instruction.opcode)
    return opcode if opcode in COLLECTIVES else ""


@functools.cache
def traits(name: str) -> tuple[str, bool, bool, bool, str, bool, bool]:
    """The traits of an operation's name or an opcode, for `hlotag._core`.

    They are the opcode, whether it only moves values, whether it relabels elements, whether it is XLA's own if nameless, the
    heavy kind, whether it computes element by element, whether it moves elements.
    """
    opcode = opcode_of(name)
    kind, heavy = kind_of(opcode), _HEAVY.get(base(opcode), "")
    moves = opcode in MOVES, opcode in RELABELLING, opcode in _XLAS_OWN
    return opcode, *moves, heavy, kind == Kind.POINTWISE, kind == Kind.LAYOUT


def base(opcode: str) -> str:
    """The opcode of an asynchronous pair: "all-gather" of "all-gather-start" and "all-gather-done"."""
    return opcode.removesuffix("-start").removesuffix("-done")
