# SPDX-License-Identifier: Apache-2.0
"""Which operations of the program an HLO instruction came from."""

from __future__ import annotations

from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins


def join(module: HloModule, origins: Origins) -> dict[Instruction, tuple[int, ...]]:
    """Joins the instructions of a module to the operations they came from.

    Args:
      module: as XLA has it before scheduling, with the numbers still in its names.
      origins: the numbered operations.

    Returns:
      For every instruction, those of fused and called computations included, the numbers of its operations: its own first, then
      those that XLA merged into it. Empty for what XLA made without one: parameters, tuples, copies.
    """
    return {instruction: origins.ids_of(instruction.op_name) for instruction in module.instructions()}
