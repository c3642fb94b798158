# SPDX-License-Identifier: Apache-2.0
"""What an instruction does for its operations, how much that is, and how often it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hlotag import _core
from hlotag.hlo import opcodes
from hlotag.hlo.join import must_be_sound
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.opcodes import Role

_TRIPS = re.compile(rb'"known_trip_count":\{"n":"(\d+)"')
# TPU's custom calls that compute nothing: they join prefetched parts, and start and end a collective within fusions.
_GLUE_CALLS = {"AllocateBuffer", "AsyncCollectiveDone", "AsyncCollectiveStart", "ConcatBitcast"}


class Work(NamedTuple):
    """The work of one run of an instruction, on one device.

    Attributes:
        flops: As XLA's cost analysis counts them, and 1 for each transcendental function.
        bytes: Written to memory, or read from places that other values choose.
        effort: Both on one scale.
    """

    flops: int = 0
    bytes: int = 0
    effort: int = 0


class Roles(NamedTuple):
    """The operations that an instruction came from, by what it does for them.

    Attributes:
        computes: Those whose arithmetic it does, or that are the move that it is.
        parts: Those whose expansion it is a piece of.
        carries: Those whose result it moves.
    """

    computes: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()
    carries: tuple[int, ...] = ()


def measure(module: HloModule) -> dict[Instruction, Work]:
    """Measures each instruction. What runs others has no work of its own. Raises ParseError for a damaged module."""
    with must_be_sound(module):
        measured = _core.measure_work(module.to_bytes(), opcodes)
    return dict(zip(module.instructions(), map(Work._make, measured), strict=True))


def find_roles(joined: Mapping[Instruction, Sequence[int]], names: Sequence[str]) -> dict[Instruction, Roles]:
    """Finds what each instruction does for the operations that it came from; `names` are those of the operations.

    The parts of an operation that no instruction computes as a whole compute it together.
    """
    found = {i: [(number, _role(names[number], i)) for number in numbers] for i, numbers in joined.items()}
    whole = {number for roles in found.values() for number, role in roles if role == Role.COMPUTES}

    def final(instruction: Instruction, number: int, role: Role) -> Role:
        is_all = role == Role.PART and number not in whole and opcodes.replaces(names[number], instruction.opcode)
        return Role.COMPUTES if is_all else role

    return {i: _by_role([(number, final(i, number, role)) for number, role in roles]) for i, roles in found.items()}


def _role(name: str, instruction: Instruction) -> Role:
    return Role.CARRIES if is_glue_call(instruction) else opcodes.role_of(name, instruction.opcode)


def _by_role(roles: Sequence[tuple[int, Role]]) -> Roles:
    return Roles(*(tuple([number for number, role in roles if role == wanted]) for wanted in Role))


def is_glue_call(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call that computes nothing."""
    return instruction.opcode == "custom-call" and instruction.proto.custom_call_target in _GLUE_CALLS


class Caller(NamedTuple):
    """What runs a computation.

    Attributes:
        name: The loop, call or branch; empty for the entry, and for a computation that several instructions run.
        runs: How often a run of the program runs the computation, as far as XLA knows the trips of its loops.
    """

    name: str = ""
    runs: int = 1


def find_callers(module: HloModule) -> dict[int, Caller]:
    """Finds what runs each computation, by its id. A fusion's is run by what runs the fusion."""
    found: dict[int, Caller] = {module.entry.id: Caller()}
    for computation in reversed(module.computations.values()):  # Callers first.
        around = found.setdefault(computation.id, Caller())
        for instruction in computation.instructions:
            for called in instruction.called_ids:
                caller = around if instruction.opcode == "fusion" else Caller(instruction.name, around.runs * _trips(instruction))
                if found.setdefault(called, caller) != caller:
                    found[called] = Caller("", caller.runs)
    return found


def _trips(instruction: Instruction) -> int:
    known = _TRIPS.search(instruction.proto.backend_config) if instruction.opcode == "while" else None
    return int(known[1]) if known else 1
