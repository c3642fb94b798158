# SPDX-License-Identifier: Apache-2.0
"""Which operations of the program an HLO instruction came from: by the numbers in names, and by data flow where they fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from hlotag import _core
from hlotag.errors import ParseError
from hlotag.hlo import opcodes
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins

Ids = tuple[int, ...]


def join(module: HloModule, origins: Origins) -> dict[Instruction, Ids]:
    """Joins the instructions of a module to the operations they came from.

    Args:
      module: as XLA's passes made it, with the numbers still in its names.
      origins: the numbered operations.

    Returns:
      The numbers by instruction, those of fused and called computations included: its own first, then those that XLA merged into
      it. Empty for what XLA made without one: parameters, tuples, copies.

    Raises:
      ParseError: instructions refer to what the module does not have.
    """
    return _joined(module, origins.program, None)


def sources(module: HloModule, program: _core.Program, named: Iterable[Ids]) -> dict[Instruction, Ids]:
    """Joins instructions to the operations that they were made from, and leaves out those that merely compute the same.

    Args:
      module: as for `join`.
      program: the operations.
      named: by instruction, the operations that it is named after.

    Returns:
      The numbers by instruction, as of `join`.

    Raises:
      ParseError: instructions refer to what the module does not have.
    """
    return _joined(module, program, list(named))


def _joined(module: HloModule, program: _core.Program, named: Sequence[Ids] | None) -> dict[Instruction, Ids]:
    with _must_be_sound(module):
        return dict(zip(module.instructions(), program.join(module.to_bytes(), opcodes, named), strict=True))


def program_of(module: HloModule, numbers: Sequence[int]) -> _core.Program:
    """Takes instructions for operations.

    Args:
      module: the module.
      numbers: by instruction, which operation it is, counted from 0; -1 for none.

    Returns:
      The operations.

    Raises:
      ParseError: instructions refer to what the module does not have.
    """
    with _must_be_sound(module):
        return _core.program_of_instructions(module.to_bytes(), opcodes, numbers)


@contextmanager
def _must_be_sound(module: HloModule) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ParseError(f"{module.name} is no sound HLO module: {error}") from None
