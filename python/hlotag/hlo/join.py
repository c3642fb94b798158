# SPDX-License-Identifier: Apache-2.0
"""Which operations of the program an HLO instruction came from: by the numbers in names, and by data flow where they fail.

Names fail in few places. XLA gives an instruction that absorbs another the other's name (a dot that folds a transpose), makes
some without any (constants, expansions), and keeps one of two equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hlotag.errors import HloError
from hlotag.hlo import opcodes
from hlotag.hlo.graph import Program, StableHlo
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """The instructions of a module, in order, and what they came from.

    Attributes:
      ids: the numbers of an instruction's operations: its own first, then those that XLA merged into it. Empty for what XLA made
        without one: parameters, tuples, copies.
      op_names: as `Instruction` has them, with numbers.
      attributes: the frontend attributes; equal ones may be one object.
    """

    ids: Sequence[Ids]
    op_names: Sequence[str]
    attributes: Sequence[Mapping[str, str]]


def join(module: HloModule, origins: Origins) -> dict[Instruction, Ids]:
    """Joins the instructions of a module to the operations they came from.

    Args:
      module: as XLA's passes made it, with the numbers still in its names.
      origins: the numbered operations.

    Returns:
      The numbers by instruction, those of fused and called computations included, as in `Joined`.

    Raises:
      HloError: instructions refer to what the module does not have.
    """
    return dict(zip(module.instructions(), joined(module, origins).ids, strict=True))


def joined(module: HloModule, origins: Origins, *, only_tags: bool = False) -> Joined:
    """As `join`, without an object for each instruction.

    Args:
      module: as for `join`.
      origins: as for `join`.
      only_tags: leaves out what makes no difference to any instruction's tags: an equal operation with the same ones.

    Returns:
      What came from what.
    """
    program = StableHlo(origins)
    found = _sources(module, program, lambda _, op_name: origins.ids_of(op_name))
    return replace(found, ids=_with_equals(found.ids, origins, program, only_tags=only_tags))


def sources(module: HloModule, program: Program, named: Callable[[Instruction], Ids]) -> dict[Instruction, Ids]:
    """Joins instructions to the operations that they were made from, and leaves out those that merely compute the same.

    Args:
      module: as for `join`.
      program: the operations.
      named: the operations that an instruction is named after.

    Returns:
      The numbers by instruction, as in `Joined`.

    Raises:
      HloError: instructions refer to what the module does not have.
    """
    instructions = list(module.instructions())
    found = _sources(module, program, lambda position, _: named(instructions[position]))
    return dict(zip(instructions, found.ids, strict=True))


def _sources(module: HloModule, program: Program, named: Callable[[int, str], Ids]) -> Joined:
    """`named` is asked by the position of an instruction and its `op_name`."""
    from hlotag import _core

    try:
        return Joined(*_core.join(module.to_bytes(), program, named, opcodes))
    except ValueError as error:
        raise HloError(f"{module.name} is no sound HLO module: {error}") from None


def _with_equals(ids: Sequence[Ids], origins: Origins, program: StableHlo, *, only_tags: bool) -> Sequence[Ids]:
    """Adds the operations that are gone, since XLA found that another computes the same."""
    present = set().union(*ids)
    # By number, the operation's name and which entries it has; equal ones are one object.
    kinds = list(zip(origins.names, map(id, origins.attributes), strict=True))
    entries: dict[str, set[int]] = {}  # Of operations that are there, by name.
    for name, own in {kinds[number] for number in present}:
        entries.setdefault(name, set()).add(own)
    empty = {id(own) for own in origins.attributes if not own}

    def matters(kind: tuple[str, int]) -> bool:
        """Whether one that is gone could be equal to one that is there."""
        name, own = kind
        alike = entries.get(name, set())
        return own not in empty and bool(alike - {own}) if only_tags else bool(alike)

    mattering = {kind for kind in set(kinds) if matters(kind)}
    absent = [number for number, kind in enumerate(kinds) if kind in mattering and number not in present]
    if not absent:
        return ids
    names = {origins.names[number] for number in absent}
    by_value: dict[object, list[int]] = {}
    for number in absent:
        by_value.setdefault(program.value(number), []).append(number)
    equals = {number: by_value.get(program.value(number), ()) for number in present if origins.names[number] in names}
    return [(*numbers, *also) if numbers and (also := equals.get(numbers[0])) else numbers for numbers in ids]
