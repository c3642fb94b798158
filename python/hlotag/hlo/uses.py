# SPDX-License-Identifier: Apache-2.0
"""Which instructions read a value? Followed into fusions, calls, branches and the state of loops."""

from __future__ import annotations

from collections.abc import Iterator

from hlotag.hlo.module import Computation, HloModule, Instruction

# The name of an instruction, and the element of its tuple; None for the value itself.
Value = tuple[str, int | None]

# These only name values, and these hand operands on to the computation of the same number.
_NAMES_ONLY = {"bitcast", "get-tuple-element", "tuple"}
_RUNS = {"async-start", "call", "fusion"}


def find_uses(module: HloModule) -> dict[Value, list[str]]:
    """Finds the instructions that read each value, by name.

    What is in a fusion, a call, a branch or a loop reads the value, and not the instruction that runs it.
    """
    uses: dict[Value, dict[str, None]] = {}
    for computation in module.computations.values():  # Callees come first.
        for instruction in computation.instructions:
            if instruction.opcode in _NAMES_ONLY:
                continue
            for value, reads in _reads(instruction, uses):
                uses.setdefault(value, {}).update(reads)
    return {value: list(readers) for value, readers in uses.items()}


def _reads(instruction: Instruction, uses: dict[Value, dict[str, None]]) -> Iterator[tuple[Value, dict[str, None]]]:
    """The values that an instruction takes, each with what reads it."""
    for number, operand in enumerate(instruction.operands):
        inside = _parameters(instruction, number)
        if not inside:
            yield from ((value, {instruction.name: None}) for value in _values(operand, None))
            continue
        for element in (None, *range(len(operand.proto.shape.tuple_shapes))):
            readers = {name: None for each in inside for name in uses.get((each.name, element), ())}
            yield from ((value, readers) for value in _values(operand, element))


def _parameters(instruction: Instruction, number: int) -> list[Instruction]:
    """The parameters that an operand becomes; empty if the instruction reads it itself."""
    if instruction.opcode in _RUNS and instruction.called_ids:
        return [_parameter(instruction.called[0], number)]
    if instruction.opcode == "while":
        return [_parameter(each, 0) for each in instruction.called]
    if instruction.opcode == "conditional" and number:
        return [_parameter(instruction.called[number - 1], 0)]
    return []


def _parameter(computation: Computation, number: int) -> Instruction:
    return next(i for i in computation.instructions if i.opcode == "parameter" and i.proto.parameter_number == number)


def _values(at: Instruction, element: int | None) -> Iterator[Value]:
    """The values that an instruction, or an element of its tuple, names."""
    if at.opcode == "get-tuple-element" and element is None:
        yield from _values(at.operands[0], at.proto.tuple_index)
    elif at.opcode == "tuple":
        yield from (value for n, each in enumerate(at.operands) if element in (None, n) for value in _values(each, None))
    elif at.opcode == "bitcast":
        yield from _values(at.operands[0], element)
    else:
        yield at.name, element
        if at.opcode in ("call", "fusion", "while"):  # The computation's result is the instruction's.
            yield from _values(at.called[0].root, element)
