# SPDX-License-Identifier: Apache-2.0
"""Every instruction of a compiled program, with what it computes, where from, its tags and its work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hlotag._core import ScopePattern, TextPattern
from hlotag._util.arguments import did_you_mean
from hlotag.errors import ArgumentError
from hlotag.results.grouping import TAG, Values, leave_out_libraries, list_keys, read_values
from hlotag.results.tags import Instruction, Op

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

ORDERS = ("work", "program", "schedule")
LISTED_COLUMNS = ("instruction", "opcode", "fusion", "operation", "phase", "source", "scope", "tags", "flops", "bytes", "runs")


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


def list_instructions(audit: Audit, where: str = "", order: str = "work") -> list[Listed]:
    """Lists the instructions that compute or move something, or run. Parameters, tuples and XLA's own constants do neither.

    Args:
        audit: The audit.
        where: Which ones: patterns with commas between, all of which must match. `fusion.16` is an instruction, or those in a
            fusion; `layer=1*` is a tag, `layer` any value of the key; `scope=mlp`, `source=model.py:42`, `phase=backward`,
            `opcode=dot` and `operation=dot_general` are of the instruction. `tag:scope=...` is a tag with this key.
        order: "work", most work first; "program", in the order of the program's operations; or "schedule", as they run: what is
            in a fusion or a loop follows it.

    Returns:
        The instructions.

    Raises:
        ArgumentError: `order` is none of these, or a part of `where` names nothing.
    """
    if order not in ORDERS:
        raise ArgumentError(f"order={order!r}: choose from {', '.join(ORDERS)}")
    values = leave_out_libraries(read_values(audit))
    names = {name for each in audit.instructions for name in (each.name, each.kernel)}
    conditions = [_condition(part.strip(), names, list_keys(values)) for part in where.split(",") if part.strip()]
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


def listed_row(each: Listed) -> tuple[str, ...]:
    """The cells of `LISTED_COLUMNS`. The operation is in brackets if the instruction does not compute it as a whole."""
    i, op = each.instruction, each.op
    operation = "added by XLA" if op is None else op.title if i.ops else f"(of {op.title})"
    tags = ", ".join(f"{key}={value}" for key, value in each.tags.items())
    work = f"{i.flops}", f"{i.bytes}", f"{i.runs}"
    return i.name, i.opcode, i.fusion, operation, i.phase, op.source if op else "", i.scope, tags, *work


def _condition(text: str, names: Collection[str], keys: Collection[str]) -> Callable[[Listed], bool]:
    name, equals, pattern = text.partition("=")
    if not equals and name in names:
        return lambda each: name in (each.instruction.name, each.instruction.kernel)
    pattern = pattern or "*"
    if name == "scope":
        scope = ScopePattern(pattern)
        return lambda each: scope.advance(0, each.instruction.scope)[1] is not None
    whole = TextPattern(pattern)
    if name == "source":
        return lambda each: each.op is not None and whole.match_source(each.op.file, each.op.line, 0) is not None
    fields: dict[str, Callable[[Listed], str]] = {
        "phase": lambda each: each.instruction.phase,
        "opcode": lambda each: each.instruction.opcode,
        "operation": lambda each: each.op.name.rpartition(".")[2] if each.op else "",
    }
    if name in fields:
        return lambda each: whole.match(fields[name](each)) is not None
    key = name.removeprefix(TAG)
    if key not in keys:
        known = [*keys, "scope", "source", *fields]
        meant = did_you_mean(key, [*known, *names]) or f"; choose from {', '.join(known)}, or name an instruction"
        raise ArgumentError(f"{text!r}: no instruction and no key of a tag has this name{meant}")
    return lambda each: key in each.tags and whole.match(each.tags[key]) is not None
