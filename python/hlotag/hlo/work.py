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
        measured = _core.measure_work(module.to_bytes())
    return dict(zip(module.instructions(), map(Work._make, measured), strict=True))


def find_roles(joined: Mapping[Instruction, tuple[int, ...]], names: Sequence[str]) -> dict[Instruction, Roles]:
    """Finds what each instruction does for the operations that it came from; `names` are those of the operations.

    The parts of an operation that no instruction computes as a whole compute it together.
    """
    whole: set[int] = set()
    found: dict[Instruction, Roles] = {}
    others: list[tuple[Instruction, list[Role]]] = []
    for instruction, numbers in joined.items():
        opcode = instruction.opcode
        if opcode == "custom-call" and is_glue_call(instruction):
            found[instruction] = Roles(carries=numbers)
            continue
        roles = [opcodes.role_of(names[number], opcode) for number in numbers]
        if roles.count(Role.COMPUTES) == len(roles):
            found[instruction] = Roles(numbers)
            whole.update(numbers)
        else:
            found[instruction] = Roles()  # Keeps the order.
            others.append((instruction, roles))
            whole.update([number for number, role in zip(numbers, roles, strict=True) if role is Role.COMPUTES])

    for instruction, roles in others:
        by_role: dict[Role, list[int]] = {role: [] for role in Role}
        for number, role in zip(joined[instruction], roles, strict=True):
            is_all = role is Role.PART and number not in whole and opcodes.replaces(names[number], instruction.opcode)
            by_role[Role.COMPUTES if is_all else role].append(number)
        found[instruction] = Roles(*map(tuple, by_role.values()))
    return found


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
