# SPDX-License-Identifier: Apache-2.0
"""Every instruction of a compiled program, with what it computes, where from, its tags and its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hlotag._core import ScopePattern
from hlotag.audits.grouping import Values, read_values
from hlotag.audits.model import Findings, Instruction, Op
from hlotag.errors import ArgumentError
from hlotag.tagging.scope_patterns import bind_source, matches

ORDERS = ("work", "program", "schedule")


class Listed(NamedTuple):
    """An instruction with what is known of it.

    Attributes:
        instruction: The instruction.
        op: The operation that it computes, has a piece of or moves the result of; None if XLA added it.
        tags: The tags of its operations, value by key.
    """

    instruction: Instruction
    op: Op | None
    tags: Mapping[str, str]


def list_instructions(audit: Findings, where: str = "", order: str = "work") -> list[Listed]:
    """Lists the instructions that compute or move something, or run. Parameters, tuples and XLA's own constants do neither.

    Args:
        audit: The audit.
        where: Which ones: patterns with commas between, all of which must match. `layer=1*` is a tag, `layer` any value of the
            key; `scope=mlp`, `source=model.py:42`, `phase=backward`, `opcode=dot` and `operation=dot_general` are of the
            instruction. `tag:scope=...` is a tag with this key.
        order: "work", most work first; "program", in the order of the program's operations; or "schedule", as they run: what is
            in a fusion or a loop follows it.

    Returns:
        The instructions.

    Raises:
        ArgumentError: `order` is none of these, or a part of `where` has no name.
    """
    if order not in ORDERS:
        raise ArgumentError(f"order={order!r}: choose from {', '.join(ORDERS)}")
    values = read_values(audit)
    conditions = [_condition(part.strip()) for part in where.split(",") if part.strip()]
    found = [_listed(each, audit.ops, values) for each in audit.instructions]
    found = [each for each in found if all(holds(each) for holds in conditions)]
    if order == "work":
        return sorted(found, key=lambda each: -each.instruction.effort * each.instruction.runs)
    if order == "schedule":
        return found
    return sorted(found, key=lambda each: (each.op is None, each.op.id if each.op else 0))


def _listed(instruction: Instruction, ops: Sequence[Op], values: Values) -> Listed:
    tags: dict[str, str] = {}
    for owner in reversed(instruction.owners):
        tags |= values.get(owner, {})
    return Listed(instruction, ops[instruction.owners[0]] if instruction.owners else None, tags)


def _condition(text: str) -> Callable[[Listed], bool]:
    name, _, pattern = text.partition("=")
    if not name:
        raise ArgumentError(f"{text!r} names nothing: write layer=1, scope=mlp, source=model.py:42 or phase=backward")
    pattern = pattern or "*"
    if name == "scope":
        scope = ScopePattern(pattern)
        return lambda each: scope.advance(0, each.instruction.scope)[1] is not None
    if name == "source":
        return lambda each: each.op is not None and bind_source(pattern, each.op.file, each.op.line, 0) is not None
    fields: dict[str, Callable[[Listed], str]] = {
        "phase": lambda each: each.instruction.phase,
        "opcode": lambda each: each.instruction.opcode,
        "operation": lambda each: each.op.name.rpartition(".")[2] if each.op else "",
    }
    if name in fields:
        return lambda each: matches(pattern, fields[name](each))
    key = name.removeprefix("tag:")
    return lambda each: key in each.tags and matches(pattern, each.tags[key])
