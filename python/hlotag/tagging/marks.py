# SPDX-License-Identifier: Apache-2.0
"""The table of a program's tags.

A *mark* is text in the location of an op: an index into a table of tags, which is an attribute of the module. The pass
`hlotag-resolve` turns marks into attributes and removes them from locations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotag import _compat
from hlotag._core import matches_op
from hlotag.tagging.entries import Entries, forward_texts
from hlotag.tagging.matching import Applied, RuleSet
from hlotag.tagging.phases import Phase

if TYPE_CHECKING:
    from jaxlib.mlir import ir


@dataclass(frozen=True)
class Row:
    """The tags of equations with one mark.

    Attributes:
        entries: Those of the program.
        rules: What rules give, in the order in which later ones win.
        phase: The phase for which they give it.
        withheld: Keys that a rule gives to the call or loop around these equations, and not to them, with the rule.
        primal: The equation that these were made for; None without rules that need it.
        is_primal: Whether these equations are that one, and not derived from it.
    """

    entries: Entries
    rules: tuple[Applied, ...] = ()
    phase: Phase = Phase.FORWARD
    withheld: tuple[tuple[str, int], ...] = ()
    primal: Any = None
    is_primal: bool = False

    def key(self) -> tuple[Any, ...]:
        """What equal rows have in common."""
        rules = tuple(
            (rule.key(), rank, frozenset(rule.entries[self.phase].items()))
            for rule, rank in zip(self.rules, self.ranks(), strict=True)
        )
        of_op = (self.phase, id(self.primal), self.is_primal) if self.primal is not None else ()
        return frozenset(self.entries.items()), rules, self.withheld, of_op

    def ranks(self) -> list[int]:
        """The place of each rule's depth among those of all, from 0."""
        depths = sorted({applied.depth for applied in self.rules})
        return [depths.index(applied.depth) for applied in self.rules]

    def __bool__(self) -> bool:
        return bool(self.entries or self.rules or self.withheld)


Kinds = Callable[[Any], frozenset[str]]
"""The names of the operations that a primal lowers to."""


def attach_escaped(module: ir.Module) -> None:
    """Notes in a module that its names have escapes."""
    from jaxlib.mlir import ir

    module.operation.attributes["hlotag.escaped"] = ir.UnitAttr.get(module.context)


def attach_table(module: ir.Module, table: Sequence[Row], rules: RuleSet | None, kinds: Kinds) -> None:
    """Attaches the table of tags to a module whose locations have marks, and the texts of rules."""
    attributes = module.operation.attributes
    with module.context:
        attributes["hlotag.tags"] = _attribute([_as_attribute(row, kinds) for row in table])
        if rules is not None:
            texts = zip(rules.names, rules.rules, strict=True)
            attributes["hlotag.rules"] = _attribute([{"name": name, "text": rule.text} for name, rule in texts])


def _as_attribute(row: Row, kinds: Kinds) -> dict[str, Any]:
    attribute: dict[str, Any] = {"entries": row.entries}
    rules = [{"rule": rule, "entries": {key: None}} for key, rule in row.withheld]
    for applied, rank in zip(row.rules, row.ranks(), strict=True):
        if (given := _of_rule(applied, row, kinds)) is not None:
            rules.append(given | ({"depth": rank} if rank else {}))
    if rules:
        attribute["rules"] = rules
    return attribute


def _of_rule(applied: Applied, row: Row, kinds: Kinds) -> dict[str, Any] | None:
    """What a rule gives to the operations of a row, as `hlotag-resolve` reads it; None for nothing.

    A rule with an `op` selects among the operations of a primal equation. What derives from the equation gets entries if the
    equation has such an operation. If it has none, a derived operation of the kind is selected itself. What was made for an
    equation without operations derives from none, and is selected as an operation of the program.
    """
    given: dict[str, Any] = {"rule": applied.index, "entries": applied.entries[row.phase]}
    if not applied.depends_on_op():
        return given
    patterns: dict[str, Any] = {"op": applied.rule.op or "*"} | ({"unless": list(applied.unless)} if applied.unless else {})
    if row.primal is None:
        return given | patterns
    names = kinds(row.primal)
    is_derived = row.phase in (Phase.DERIVED, Phase.REMATTED)
    # What JAX lowers once and calls is tagged as a whole. For an equation without operations, which names a value that
    # `jax.checkpoint` saves, JAX makes one that rounds the value.
    if (row.is_primal or not names) and not is_derived and "func.call" not in names:
        return given | patterns
    if _has_kind(applied, names):
        return given
    if row.is_primal or applied.rule.phase == "forward":
        return None
    return given | patterns | ({} if is_derived else {"entries": applied.entries[Phase.DERIVED]})


def _has_kind(applied: Applied, names: frozenset[str]) -> bool:
    op = applied.rule.op
    return any(
        (op is None or matches_op(op, name)) and not any(matches_op(each, name) for each in applied.unless) for name in names
    )


def _attribute(value: Any) -> Any:
    """A Python value as an MLIR attribute; None is `["hlotag.unset"]`."""
    from jaxlib.mlir import ir

    if isinstance(value, list):
        return ir.ArrayAttr.get([_attribute(each) for each in value])
    if isinstance(value, Mapping):
        return ir.DictAttr.get({key: _attribute(value[key]) for key in sorted(value)})
    if value is None:
        return ir.ArrayAttr.get([ir.StringAttr.get("hlotag.unset")])
    return ir.StringAttr.get(str(value))


PATCHES = (_compat.hooks.attaching_patch(forward_texts),)
