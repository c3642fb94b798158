# SPDX-License-Identifier: Apache-2.0
"""What is in memory when a program needs most of it? XLA's own assignment of buffers, joined with operations.

XLA dumps which values share memory (`*-buffer-assignment.txt`), and when each is live (`*-live-range.txt`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hlotag._util.groups import group
from hlotag.audits.makers import Made, Makers
from hlotag.hlo import HloModule
from hlotag.hlo import module as hlo
from hlotag.hlo.opcodes import MOVES
from hlotag.hlo.shapes import text_of
from hlotag.hlo.uses import Value, find_uses
from hlotag.results.buffers import ADDED, ARGUMENTS, CONSTANTS, OUTPUTS, UNUSED, Buffer, Life, Memory
from hlotag.results.tags import Instruction

BUFFERS = "-buffer-assignment.txt"  # the end of the names of files
_ALLOCATION = re.compile(r"^allocation (\d+): size (\d+)(?:, color (\d+))?(?:, page \d+)?(, .*|:)$")
_VALUE = re.compile(r"^ value: <\d+ (\S+?)(\{[\d,]*\})?( \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\)")
_RANGE = re.compile(r"^    (\S+?)(\{[\d,]*\}):(\d+)-(\d+)$")
_STEP = re.compile(r"^    (\d+):(\S+)$")
# Memory spaces of XLA's layouts. The others are in on-chip memory.
_DEVICE, _HOST = 0, 5
# What moves a part of a value, as a loop does that stores one in each trip, is no reader either.
_MOVES = MOVES | {"dynamic-slice", "dynamic-update-slice", "slice"}
# Of what is reserved, the least part of a value whose life is listed.
_LEAST_LIFE = 0.001


class _Value(NamedTuple):
    """A value (at `place` of a tuple) with its offset in an allocation, and when it is live, as positions in the schedule."""

    name: str
    place: str
    is_state: bool  # of a loop: another value has the same place
    size: int
    offset: int
    start: int
    end: int


@dataclass
class _Allocation:
    size: int
    space: int
    about: str
    values: list[_Value]

    @property
    def kind(self) -> str | None:
        """What the allocation is for; "" for temporary values, None for what does not count."""
        if "thread-local" in self.about:
            return None
        found = [kind for word, kind in _KINDS.items() if word in self.about]
        return found[0] if found else ""


_KINDS = {"parameter": ARGUMENTS, "maybe-live-out": OUTPUTS, "constant": CONSTANTS}


def read_memory(folder: Path, module: HloModule, instructions: Sequence[Instruction]) -> Memory | None:
    """Reads what XLA dumped of a module's buffers; None if there is nothing.

    `instructions` are those of the audit, of the same module.
    """
    files = sorted(folder.glob(f"*.{module.name}.*{BUFFERS}"), key=lambda file: file.stat().st_size)
    return read_buffers(files[-1], module, instructions) if files else None


def read_buffers(file: Path, module: HloModule, instructions: Sequence[Instruction]) -> Memory:
    """Reads the assignment of buffers in a file, as `read_memory`."""
    ranges = file.with_name(file.name.replace(BUFFERS, "-live-range.txt"))
    steps, live = _read_ranges(ranges.read_text(encoding="utf-8").splitlines() if ranges.exists() else ())
    allocations = _read_allocations(file.read_text(encoding="utf-8").splitlines(), live)
    at = _find_peak([each for each in allocations if each.kind == "" and each.space == _DEVICE])
    owners = _Owners(module, instructions, _Readers(module, instructions, steps))
    reserved = Counter[int]()
    buffers: list[Buffer] = []
    for each in allocations:
        if each.kind is None:
            continue
        reserved[each.space] += each.size
        if each.space == _DEVICE:
            buffers += _fixed(each) if each.kind else _temporary(each, at, owners)
    found = sorted((buffer for buffer in buffers if buffer.bytes), key=lambda buffer: -buffer.bytes)
    on_chip = sum(size for space, size in reserved.items() if space not in (_DEVICE, _HOST))
    temporary = [each for each in allocations if each.kind == "" and each.space == _DEVICE]
    lives = tuple(_list_lives(temporary, reserved[_DEVICE] * _LEAST_LIFE, owners))
    return Memory(reserved[_DEVICE], reserved[_HOST], on_chip, steps.get(at, ""), tuple(found), at, lives)


def _list_lives(allocations: Sequence[_Allocation], least: float, owners: _Owners) -> list[Life]:
    """When the values are live that are not smaller than `least` bytes."""
    found = []
    for each in allocations:
        places = group(((value.offset, value.size), value) for value in each.values if value.size >= least and value.start >= 0)
        for values in places.values():
            values.sort(key=lambda value: (value.start, value.end))
            starts = [*(value.start for value in values[1:]), math.inf]
            for value, following in zip(values, starts, strict=True):
                end = int(min(value.end, following - 1))
                if end >= value.start:
                    found.append(Life(owners.find(value.name, value.place)._replace(bytes=value.size), value.start, end))
    return sorted(found, key=lambda life: (life.start, -life.buffer.bytes))


def _read_ranges(lines: Sequence[str]) -> tuple[dict[int, str], dict[tuple[str, str], tuple[int, int]]]:
    """The schedule, and by name and index of a value when it is live."""
    steps, live = {}, {}
    for line in lines:
        if found := _RANGE.match(line):
            live[found[1], found[2]] = int(found[3]), int(found[4])
        elif found := _STEP.match(line):
            steps[int(found[1])] = found[2]
    return steps, live


def _read_allocations(lines: Sequence[str], live: Mapping[tuple[str, str], tuple[int, int]]) -> list[_Allocation]:
    allocations: list[_Allocation] = []
    for line in lines:
        if found := _ALLOCATION.match(line):
            allocations.append(_Allocation(int(found[2]), int(found[3] or _DEVICE), found[4], []))
        elif allocations and (found := _VALUE.match(line)):
            name, index = found[1], found[2] or "{}"
            span = live.get((name, index), (-1, -1))
            allocations[-1].values.append(_Value(name, index, bool(found[3]), int(found[4]), int(found[5]), *span))
        elif allocations and line and not line.startswith(" "):  # What follows the allocations is a summary.
            break
    return allocations


def _find_peak(allocations: Sequence[_Allocation]) -> int:
    """The position in the schedule at which temporary values occupy most; places that several values share count once."""
    changes: dict[int, list[tuple[int, tuple[int, int, int]]]] = {}
    for number, each in enumerate(allocations):
        for value in each.values:
            if value.start >= 0:
                place = number, value.offset, value.size
                changes.setdefault(value.start, []).append((1, place))
                changes.setdefault(value.end + 1, []).append((-1, place))
    occupied, counts, most, at = 0, Counter[tuple[int, int, int]](), -1, 0
    for position in sorted(changes):
        for change, place in changes[position]:
            before, counts[place] = counts[place], counts[place] + change
            occupied += place[2] * (bool(counts[place]) - bool(before))
        if occupied > most:
            most, at = occupied, position
    return at


def _fixed(allocation: _Allocation) -> Iterator[Buffer]:
    """The buffers of an argument, an output or a constant."""
    name = allocation.values[0].name if allocation.values else ""
    yield Buffer(name, allocation.size, allocation.kind or "")


def _temporary(allocation: _Allocation, at: int, owners: _Owners) -> Iterator[Buffer]:
    """The values in an allocation at a position of the schedule: each byte is that of one value."""
    values = [value for value in allocation.values if value.start <= at <= value.end]
    # Of several values in one place, what an operation made is before the state of a loop, and the latest before others. What
    # a loop fills is before what was there.
    states = {(value.start, value.offset, value.size): value for value in allocation.values if value.is_state}
    found = [(_owner(value, states.get((value.end, value.offset, value.size)), owners), value) for value in values]
    found.sort(key=lambda each: (each[0].op < 0, -each[0].values, each[1].is_state, -each[1].start, each[1].size))
    taken: list[tuple[int, int]] = []
    used = 0
    for buffer, value in found:
        size = _take(taken, value.offset, value.offset + value.size)
        used += size
        yield buffer._replace(bytes=size)
    yield Buffer("", allocation.size - used, UNUSED)


def _owner(value: _Value, following: _Value | None, owners: _Owners) -> Buffer:
    """The buffer of a value, without its size. An empty array that a loop fills next belongs to what fills it."""
    if following is not None and owners.is_fill(value.name, value.place):
        filled = owners.find(following.name, following.place)
        if filled.values > 1:
            return filled._replace(name=value.name)
    return owners.find(value.name, value.place)


def _take(taken: list[tuple[int, int]], start: int, end: int) -> int:
    """Adds a span to disjoint ones; returns how much of it was free."""
    free = end - start - sum(max(0, min(end, stop) - max(start, begin)) for begin, stop in taken)
    if free:
        touching = [span for span in taken if span[0] <= end and start <= span[1]]
        taken[:] = [span for span in taken if span not in touching]
        taken.append((min([start, *(span[0] for span in touching)]), max([end, *(span[1] for span in touching)])))
    return free


def _element(index: str) -> int:
    """The first number of a tuple's index, `{1,0}`; -1 for the tuple itself."""
    first = index.strip("{}").split(",")[0]
    return int(first) if first else -1


class _Owners:
    """The operations whose values instructions make."""

    def __init__(self, module: HloModule, instructions: Sequence[Instruction], readers: _Readers) -> None:
        self._readers = readers
        self._known = {each.name: each for each in instructions}
        self._by_name: dict[str, hlo.Instruction] = {each.name: each for each in module.instructions()}
        self._makers = Makers(module, self._known)
        self._inside = group((each.fusion, each) for each in instructions if each.fusion)

    def find(self, name: str, index: str) -> Buffer:
        """The buffer, without its size, of a value: an instruction's, or at an index of its tuple."""
        instruction = self._by_name.get(name)
        type_name = _type_of(instruction, index) if instruction else ""
        made = self._made(name, index)
        known = self._operations(name, made.makers)
        if known is None:
            return Buffer(name, 0, ADDED, type=type_name)
        at = _element(index)
        # A collective that XLA combined has an operation for each element of its tuple.
        is_combined = bool(known.collective) and 0 <= at < len(known.owners)
        number = at if is_combined else 0
        scope, phase = known.places[number]
        readers, read_at = self._readers.find(name, index)
        return Buffer(name, 0, "", known.owners[number], scope, phase, type_name, made.values, readers, read_at)

    def is_fill(self, name: str, index: str) -> bool:
        """Whether a value is an array without values of its own."""
        return self._made(name, index).is_fill

    def _made(self, name: str, index: str) -> Made:
        instruction = self._by_name.get(name)
        return self._makers.find(instruction, _element(index)) if instruction else Made(())

    def _operations(self, name: str, makers: Sequence[hlo.Instruction]) -> Instruction | None:
        """The best of the makers of a value that has operations."""
        found = [self._known.get(maker.name) for maker in makers] or [self._known.get(name)]
        if made := next((each for each in found if each and each.owners), None):
            return made
        # XLA may have made the root of a fusion: then the fusion's instruction with most work.
        inside = [each for each in self._inside.get(name, ()) if each.owners]
        return max(inside, key=lambda each: each.effort) if inside else None


class _Readers:
    """The instructions that read values, with their positions in the schedule."""

    def __init__(self, module: HloModule, instructions: Sequence[Instruction], steps: Mapping[int, str]) -> None:
        self._known = {each.name: each for each in instructions}
        self._uses = find_uses(module)
        self._places = {name: at for at, name in steps.items()}

    def find(self, name: str, index: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The readers of a value, past moves, and their positions."""
        element = _element(index)
        pending: list[Value] = [(name, None if element < 0 else element)]
        seen, found = set(pending), dict[str, int]()
        for value in pending:  # The list grows.
            for reader in self._uses.get(value, ()):
                known, further = self._known.get(reader), (reader, None)
                if (known is None or known.opcode in _MOVES) and further in self._uses:
                    pending += [further] if further not in seen else []
                    seen.add(further)
                else:
                    found[reader] = self._places.get(known.kernel if known else reader, -1)
        return tuple(found), tuple(found.values())


def _type_of(instruction: hlo.Instruction, index: str) -> str:
    """The type of a value, at an index of its tuple such as `{1,0}`."""
    shape = instruction.proto.shape
    for number in filter(None, index.strip("{}").split(",")):
        if int(number) >= len(shape.tuple_shapes):
            return ""
        shape = shape.tuple_shapes[int(number)]
    return text_of(shape)
