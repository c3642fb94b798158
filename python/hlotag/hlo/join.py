# SPDX-License-Identifier: Apache-2.0
"""The operations that an HLO instruction came from: by the numbers in its name, else by data flow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from hlotag import _core
from hlotag.errors import ParseError
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins

Ids = tuple[int, ...]


def join(module: HloModule, origins: Origins, *, equal: bool = True) -> dict[Instruction, Ids]:
    """Joins the instructions of a module after XLA's passes to the operations they came from.

    Returns the numbers of each instruction, also in fused and called computations: first its own operation's, then those of
    operations that XLA merged into it, and with `equal` those that only have an equal value. Empty for XLA's own instructions:
    parameters, tuples, copies. Raises ParseError if an instruction refers to an id that is not in the module.
    """
    return _join(module, origins.program, None, "" if equal else "equal")


def sources(module: HloModule, program: _core.Program, named: Iterable[Ids]) -> dict[Instruction, Ids]:
    """As `join`, for modules without numbers.

    `named` has for each instruction the operations that it is named after, then the calls that it was inlined from. Leaves out
    operations that only have an equal value.
    """
    return _join(module, program, list(named), "")


def _join(module: HloModule, program: _core.Program, named: Sequence[Ids] | None, without: str) -> dict[Instruction, Ids]:
    with must_be_sound(module):
        return dict(zip(module.instructions(), program.join(module.parsed, named, without=without), strict=True))


def program_of(module: HloModule, numbers: Sequence[int]) -> _core.Program:
    """Makes a program of the instructions of a module. `numbers` has the index of the operation of each instruction; -1 for none.

    Raises ParseError as `join`.
    """
    with must_be_sound(module):
        return module.parsed.program_of(numbers)


@contextmanager
def must_be_sound(module: HloModule) -> Iterator[None]:
    """Turns an error about a module into ParseError."""
    try:
        yield
    except ValueError as error:
        raise ParseError(f"{module.name} is not a valid HLO module: {error}") from None
