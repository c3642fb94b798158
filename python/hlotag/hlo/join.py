# SPDX-License-Identifier: Apache-2.0
"""Which operations of the program an HLO instruction came from: by the numbers in names, and by data flow where they fail.

Names fail in few places. XLA gives an instruction that absorbs another the other's name (a dot that folds a transpose), makes
some without any (constants, expansions), and keeps one of two equal ones.
"""

from __future__ import annotations

from collections.abc import Callable

from hlotag.errors import HloError
from hlotag.hlo import opcodes
from hlotag.hlo.graph import Program, StableHlo
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins

Ids = tuple[int, ...]


def join(module: HloModule, origins: Origins, *, only_tags: bool = False) -> dict[Instruction, Ids]:
    """Joins the instructions of a module to the operations they came from.

    Args:
      module: as XLA's passes made it, with the numbers still in its names.
      origins: the numbered operations.
      only_tags: leaves out what makes no difference to any instruction's tags: an equal operation with the same ones.

    Returns:
      For every instruction, those of fused and called computations included, the numbers of its operations: its own first, then
      those that XLA merged into it. Empty for what XLA made without one: parameters, tuples, copies.
    """
    program = StableHlo(origins)
    ids = sources(module, program, lambda instruction: origins.ids_of(instruction.op_name))
    return _with_equals(ids, program, only_tags=only_tags)


def sources(module: HloModule, program: Program, named: Callable[[Instruction], Ids]) -> dict[Instruction, Ids]:
    """Joins instructions to the operations that they were made from, and leaves out those that merely compute the same.

    Args:
      module: as for `join`.
      program: the operations.
      named: the operations that an instruction is named after.

    Returns:
      As `join`.

    Raises:
      HloError: instructions refer to what the module does not have.
    """
    from hlotag import _core

    try:
        found = _core.join(module, program, named, opcodes)
    except ValueError as error:
        raise HloError(f"{module.name} is no sound HLO module: {error}") from None
    return dict(zip(module.instructions(), found, strict=True))


def _with_equals(ids: dict[Instruction, Ids], program: StableHlo, *, only_tags: bool) -> dict[Instruction, Ids]:
    """Adds the operations that are gone, since XLA found that another computes the same."""
    present = set().union(*ids.values())
    # By number, its kind and its entries; equal ones are one object.
    kinds = [(program.name(number), id(program.entries(number))) for number in range(len(program))]
    entries: dict[str, set[int]] = {}  # Of operations that are there, by kind.
    for name, own in {kinds[number] for number in present}:
        entries.setdefault(name, set()).add(own)

    def matters(number: int) -> bool:
        """Whether one that is gone could be equal to one that is there."""
        name, own = kinds[number]
        alike = entries.get(name, set())
        return bool(program.entries(number) and alike - {own}) if only_tags else bool(alike)

    absent = [number for number in range(len(program)) if number not in present and matters(number)]
    if not absent:
        return ids
    names = {program.name(number) for number in absent}
    by_value: dict[object, list[int]] = {}
    for number in absent:
        by_value.setdefault(program.value(number), []).append(number)
    equals = {number: by_value.get(program.value(number), ()) for number in present if program.name(number) in names}
    return {
        instruction: (*numbers, *also) if numbers and (also := equals.get(numbers[0])) else numbers
        for instruction, numbers in ids.items()
    }
