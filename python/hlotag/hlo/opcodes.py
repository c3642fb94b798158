# SPDX-License-Identifier: Apache-2.0
"""The HLO instructions that an operation may become. The table is C++'s: `cpp/lib/hlo/opcodes.cpp`."""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING

from hlotag import _core

if TYPE_CHECKING:
    from hlotag.hlo.module import Instruction


class Kind(enum.IntEnum):
    """The cost class of an operation or instruction. Rewrites may lower the class, never raise it."""

    GLUE = 0  # computes nothing: tuples, copies, wrappers
    LAYOUT = 1  # moves elements
    POINTWISE = 2  # computes element by element
    HEAVY = 3  # everything else


class Role(enum.StrEnum):
    """What an instruction does for an operation that it came from."""

    COMPUTES = "computes"  # The operation's arithmetic, or the move that the operation is.
    PART = "part"  # A piece of what XLA expanded the operation to.
    CARRIES = "carries"  # Moves the operation's result.


_ROLES = tuple(Role)
COLLECTIVES = _core.COLLECTIVES
MOVES = _core.MOVES
"""Moves values without computing any; an iota counts, as a broadcast of one may be an iota."""
RELABELLING = _core.RELABELLING
"""Renames the dimensions of elements; computes nothing."""


@functools.cache
def kind_of(opcode: str) -> Kind:
    """The kind of an instruction with this opcode."""
    return Kind(_core.kind_of(opcode))


@functools.cache
def opcode_of(name: str) -> str:
    """The HLO opcode that an operation (`stablehlo.dot_general`, or an opcode) is translated to; empty if it depends."""
    return _core.opcode_of(name)


@functools.cache
def may_be(name: str, opcode: str) -> bool:
    """Whether an operation of this name may have become an instruction with this opcode that is not glue."""
    return _core.may_be(name, opcode)


@functools.cache
def role_of(name: str, opcode: str) -> Role:
    """What an instruction with this opcode does for an operation of this name that it came from."""
    return _ROLES[_core.role_of(name, opcode)]


def replaces(name: str, opcode: str) -> bool:
    """Whether an instruction that is a part of an operation may be all that XLA left of the operation's arithmetic."""
    return _core.replaces(name, opcode)


def collective_of(instruction: Instruction) -> str:
    """The opcode of a collective, or of the one that an asynchronous pair runs; "" for other instructions."""
    wrapped = [called.root.opcode for called in instruction.called] if instruction.opcode.startswith("async-") else []
    opcode = base(wrapped[0] if wrapped else instruction.opcode)
    return opcode if opcode in COLLECTIVES else ""


def base(opcode: str) -> str:
    """The opcode of an asynchronous pair: "all-gather" of "all-gather-start" and "all-gather-done"."""
    return opcode.removesuffix("-start").removesuffix("-done")
