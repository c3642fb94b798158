# SPDX-License-Identifier: Apache-2.0
"""What an instruction does for its operations, how much that is, and how often it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hlotag.hlo import opcodes
from hlotag.hlo.join import must_be_sound
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.opcodes import Role
from hlotag.hlo.trips import Trips

# TPU's custom calls that compute nothing: they join prefetched parts, and start and end a collective within fusions.
_GLUE_CALLS = {"AllocateBuffer", "AsyncCollectiveDone", "AsyncCollectiveStart", "ConcatBitcast"}

# Custom calls without arithmetic: moves between memories, annotations of XLA's, and comparisons.
_MOVING_CALLS = {
    *("annotate_device_placement", "CreateBuffer", "MoveToDevice", "MoveToHost", "Pin", "PinToDevice", "PinToDeviceSram"),
    *(
        "Unpin",
        "AssumeGatherIndicesInBound",
        "InspectSharding",
        "LayoutConstraint",
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
    ),
    *("PadToStatic", "SliceToDynamic", "TopK", "X64Combine", "X64SplitHigh", "X64SplitLow"),
}
_OF_HOST = "callback"  # in the targets of calls that run a function of the host's
_ESTIMATE = b"cost_estimate"  # in the configuration of a kernel, even if that counts no flops


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
        measured = module.parsed.measure()
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


def find_unknown_flops(module: HloModule) -> list[Instruction]:
    """Finds the custom calls that compute, and of which neither XLA nor the call says how much.

    Raises ParseError for a damaged module.
    """
    calls = [i for i in module.instructions() if i.opcode == "custom-call" and _may_compute(i)]
    work = measure(module) if calls else {}
    return [call for call in calls if not work[call].flops]


def _may_compute(call: Instruction) -> bool:
    target: str = call.proto.custom_call_target
    is_known = is_glue_call(call) or target in _MOVING_CALLS or _OF_HOST in target
    return not is_known and _ESTIMATE not in call.proto.backend_config


class Caller(NamedTuple):
    """What runs a computation.

    Attributes:
        name: The loop, call or branch; empty for the entry, and for a computation that several instructions run.
        runs: How often a run of the program runs the computation, if each conditional takes its largest branch. A loop of unknown
            trips counts once.
        most_runs: The same, whichever branches are taken.
        under: The branches and the loops of unknown trips around the computation, outermost first.
    """

    name: str = ""
    runs: int = 1
    most_runs: int = 1
    under: tuple[str, ...] = ()


def find_callers(module: HloModule, work: Mapping[Instruction, Work]) -> dict[int, Caller]:
    """Finds what runs each computation, by its id. A fusion's is run by what runs the fusion."""
    trips = Trips(module)
    has_branches = any(instruction.opcode == "conditional" for instruction in work)
    totals = _sum_computations(module, work, trips) if has_branches else {}
    callers: dict[int, list[Caller]] = {module.entry.id: [Caller()]}
    found: dict[int, Caller] = {}
    for computation in reversed(module.computations.values()):  # Callers first.
        around = found[computation.id] = _merge(callers.get(computation.id, [Caller()]))
        for instruction in computation.instructions:
            for called, caller in _call(instruction, around, totals, trips):
                callers.setdefault(called, []).append(caller)
    return found


def _merge(callers: Sequence[Caller]) -> Caller:
    """What runs a computation that several instructions run."""
    first, *others = callers
    if not others:
        return first
    unders = {each.under for each in callers}
    under = first.under if len(unders) == 1 else (" or ".join(sorted({", ".join(each) for each in unders if each})),)
    return Caller(
        first.name if all(each.name == first.name for each in others) else "",
        sum(each.runs for each in callers),
        sum(each.most_runs for each in callers),
        under,
    )


def _call(
    instruction: Instruction, around: Caller, totals: Mapping[int, tuple[int, int]], trips: Trips
) -> Iterator[tuple[int, Caller]]:
    """The computations that an instruction runs, each with how it runs them; `around` runs the instruction."""
    called = tuple(dict.fromkeys(instruction.called_ids))
    name, runs, most_runs, under = instruction.name, around.runs, around.most_runs, around.under
    if instruction.opcode == "conditional":
        largest = max(called, key=totals.__getitem__)
        for number, branch in enumerate(called):
            taken = runs if branch == largest else 0
            yield branch, Caller(name, taken, most_runs, (*under, f"branch {number} of {name}"))
        return
    if instruction.opcode == "fusion":
        caller = around
    elif instruction.opcode == "while":
        count = trips.of(instruction)
        times = 1 if count is None else count
        caller = Caller(name, runs * times, most_runs * times, (*under, name) if count is None else under)
    else:
        caller = Caller(name, runs, most_runs, under)
    yield from ((each, caller) for each in called)


def _sum_computations(module: HloModule, work: Mapping[Instruction, Work], trips: Trips) -> dict[int, tuple[int, int]]:
    """The flops and bytes of a run of each computation, by its id, with those of what it runs."""
    totals: dict[int, tuple[int, int]] = {}
    for computation in module.computations.values():  # Callees first.
        flops = size = 0
        for instruction in computation.instructions:
            own = work[instruction]
            called = [totals[each] for each in dict.fromkeys(instruction.called_ids)]
            if instruction.opcode == "conditional":
                called = [max(called)]
            times = (trips.of(instruction) or 1) if instruction.opcode == "while" else 1
            flops += own.flops + times * sum(each[0] for each in called)
            size += own.bytes + times * sum(each[1] for each in called)
        totals[computation.id] = flops, size
    return totals
