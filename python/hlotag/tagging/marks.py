# SPDX-License-Identifier: Apache-2.0
"""The table of a program's tags, and the values of entries that only hlotag reads.

A *mark* is text in the location of an op: an index into a table of tags, which is an attribute of the module. The pass
`hlotag-resolve` turns marks into attributes and removes them from locations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlotag import _compat
from hlotag._core import matches_op
from hlotag.tagging.keys import as_text
from hlotag.tagging.matching import Applied, RuleSet
from hlotag.tagging.phases import Phase

if TYPE_CHECKING:
    from jaxlib.mlir import ir


@dataclass(frozen=True)
class Reserved:
    """The value of an entry that only hlotag puts into equation contexts. It equals no value of a user's.

    Attributes:
        text: What derived operations get; None if the key is removed.
    """

    text: str | None

    def __str__(self) -> str:
        """What JAX attaches where hlotag has no part in lowering."""
        return ""


# The entries `GRAD + key` and `REMAT + key` hold the value of `key` on derived and on recomputed ops, a `Reserved`.
GRAD = "hlotag.grad."
REMAT = "hlotag.remat."
# The entry of a value tag: CHECKED from `hlotag.tag`, APPLIED once the equations behind the value have it. JAX's tag has none.
VALUE = "hlotag.value"
CHECKED, APPLIED = Reserved("checked"), Reserved("applied")
# Sentinel: the key was removed within a block; enclosing tags must not restore it.
UNSET = Reserved(None)

# None: the key was removed; enclosing tags must not restore it.
Entries = dict[str, str | None]


def settle(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that operations derived from those with `metadata` have, as their own."""
    grad = {key.removeprefix(GRAD): entry for key, entry in metadata.items() if key.startswith(GRAD)}
    settled = {key: entry for key, entry in metadata.items() if not key.startswith(GRAD)}
    return settled | {key: UNSET if entry.text is None else entry.text for key, entry in grad.items()}


def key_of(name: str) -> str:
    """The key that an entry of a context is about: `k` for `k`, `GRAD + k` and `REMAT + k`."""
    return name.removeprefix(GRAD).removeprefix(REMAT)


def without_reserved(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entries that JAX may attach; the same object if these are all."""
    plain = {key: value for key, value in metadata.items() if not isinstance(value, Reserved)}
    return metadata if len(plain) == len(metadata) else plain


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
        rules = tuple((rule.key(), rank, rule.entries[self.phase]) for rule, rank in zip(self.rules, self.ranks(), strict=True))
        entries = (
            tuple(sorted(self.entries.items(), key=str)),
            tuple((key, rank, tuple(sorted(each.items(), key=str))) for key, rank, each in rules),
        )
        of_op = (self.phase, id(self.primal), self.is_primal) if self.primal is not None else ()
        return *entries, self.withheld, of_op

    def ranks(self) -> list[int]:
        """The place of each rule's depth among those of all, from 0."""
        depths = sorted({applied.depth for applied in self.rules})
        return [depths.index(applied.depth) for applied in self.rules]

    def __bool__(self) -> bool:
        return bool(self.entries or self.rules or self.withheld)


def entries_in(metadata: Mapping[str, Any], phase: Phase) -> Entries:
    """The entries of a context for operations of a phase."""
    entries: Entries = {}
    for key, value in metadata.items():
        if not isinstance(value, Reserved):
            entries[key] = as_text(value)
        elif value.text is None and key_of(key) == key:
            entries[key] = None
    for prefix, phases in ((GRAD, (Phase.DERIVED, Phase.REMATTED)), (REMAT, (Phase.REMATTED,))):
        if phase in phases:
            entries |= {key.removeprefix(prefix): value.text for key, value in metadata.items() if key.startswith(prefix)}
    return entries


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
    equation has such an operation. If it has none, a derived operation of the kind is selected itself.
    """
    given: dict[str, Any] = {"rule": applied.index, "entries": applied.entries[row.phase]}
    if not applied.depends_on_op():
        return given
    patterns: dict[str, Any] = {"op": applied.rule.op or "*"} | ({"unless": list(applied.unless)} if applied.unless else {})
    if row.primal is None:
        return given | patterns
    names = kinds(row.primal)
    is_derived = row.phase in (Phase.DERIVED, Phase.REMATTED)
    # What JAX lowers once and calls is tagged as a whole.
    if row.is_primal and not is_derived and "func.call" not in names:
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


PATCHES = (_compat.hooks.attaching_patch(without_reserved),)
