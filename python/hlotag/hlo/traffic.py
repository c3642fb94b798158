# SPDX-License-Identifier: Apache-2.0
"""How many bytes does an instruction read and write, if each value passes between memory and the device once?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.shapes import bytes_of, type_of

_RUN_OTHERS = {"call", "conditional", "while"}
_NO_ACCESS = {"bitcast", "constant", "get-tuple-element", "parameter", "tuple", "after-all", "partition-id", "replica-id"}
_SLICES = {"dynamic-slice", "gather", "slice"}
_UPDATE = "dynamic-update-slice"
_LIBRARIES = ("__cublas$", "__cudnn$")
_SCRATCH = ("s8", "u8")


def measure_traffic(module: HloModule) -> dict[str, int]:
    """The bytes that one run of each instruction outside of fusions reads and writes, by name.

    A slice counts its result, and an update in place the part that it writes. What runs others has none, nor has the end of an
    asynchronous pair.
    """
    computations = [each for each in module.computations.values() if each.id not in module.fusions]
    return {i.name: _traffic(i) for computation in computations for i in computation.instructions}


def _traffic(instruction: Instruction) -> int:
    opcode = instruction.opcode
    if opcode in _RUN_OTHERS or opcode in _NO_ACCESS or opcode.endswith(("-done", "-update")):
        return 0
    if opcode == "fusion":
        return _read_by_fusion(instruction) + sum(map(_written, _results(instruction.called[0].root)))
    if opcode.endswith("-start"):  # Its result has the operands in it.
        return 2 * sum(_size(each) for each in instruction.operands)
    read = sum(_read(each, [instruction]) for each in dict.fromkeys(instruction.operands))
    return read + _written(instruction)


def _read_by_fusion(fusion: Instruction) -> int:
    body = fusion.called[0]
    users: dict[int, list[Instruction]] = {}
    for instruction in body.instructions:
        for operand in set(instruction.operand_ids):
            users.setdefault(operand, []).append(instruction)
    return sum(_read(i, list(_through_bitcasts(i, users))) for i in body.instructions if i.opcode == "parameter")


def _through_bitcasts(value: Instruction, users: dict[int, list[Instruction]]) -> Iterator[Instruction]:
    """The users of a value, and those of what is the value in another shape."""
    pending = list(users.get(value.id, ()))
    for user in pending:  # The list grows.
        if user.opcode == "bitcast":
            pending += users.get(user.id, ())
        else:
            yield user


def _read(value: Instruction, users: list[Instruction]) -> int:
    """The bytes of a value that its users read together."""
    size = _size(value)
    return min(size, sum(_part_read(value, user, size) for user in users))


def _part_read(value: Instruction, user: Instruction, size: int) -> int:
    is_first = bool(user.operand_ids) and _origin(user.operands[0]) is value
    if user.opcode in _SLICES and is_first:
        return _size(user)
    return 0 if user.opcode == _UPDATE and is_first else size


def _written(instruction: Instruction) -> int:
    if instruction.opcode == _UPDATE:
        return _size(instruction.operands[1])
    shapes = list(_arrays(instruction.proto.shape))
    is_library = instruction.proto.custom_call_target.startswith(_LIBRARIES)
    if is_library and len(shapes) > 1 and type_of(shapes[-1]) in _SCRATCH:
        shapes.pop()
    return sum(map(bytes_of, shapes))


def _results(root: Instruction) -> Iterator[Instruction]:
    """What makes the arrays that a computation returns."""
    root = _origin(root)
    if root.opcode != "tuple":
        yield root
        return
    for each in root.operands:
        yield from _results(each)


def _origin(value: Instruction) -> Instruction:
    while value.opcode == "bitcast":
        value = value.operands[0]
    return value


def _size(instruction: Instruction) -> int:
    return sum(map(bytes_of, _arrays(instruction.proto.shape)))


def _arrays(shape: Any) -> Iterator[Any]:
    """The arrays of a shape."""
    if not shape.tuple_shapes:
        yield shape
    for each in shape.tuple_shapes:
        yield from _arrays(each)
