# SPDX-License-Identifier: Apache-2.0
"""Marks: carry tags from equation contexts to the locations of ops.

JAX attaches the metadata of an equation's context only to the ops that own the equation's results. The equation's name stack is
in the location of every op that the equation lowers to: helper ops, bodies of loops and branches, calls of cached lowerings. So
JAX lowers a copy of each tagged equation. The copy has no metadata in its context, and a *mark*, an index into a table of tags,
at the end of its name stack. The `hlotag-resolve` pass turns marks into attributes and removes them from locations.

JAX's caches share the jaxprs of the trace, so hlotag never changes them.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from hlotag import _compat
from hlotag.tagging.keys import as_text
from hlotag.tagging.matching import PRIMAL, Applied, OwnValue, Primal, RuleSet, primal_of
from hlotag.tagging.scope_patterns import matches_op

if TYPE_CHECKING:
    from jaxlib.mlir import ir


@dataclass(frozen=True)
class Reserved(OwnValue):
    """The value of an entry that says what derived operations get, or that a key was removed.

    Attributes:
        text: The value; None if the key is removed.
    """

    text: str | None


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


@dataclass(frozen=True)
class Row:
    """The tags of equations with one mark.

    Attributes:
        forward: Entries of forward ops.
        derived: Entries of ops that autodiff derives.
        rematted: Entries of ops that `jax.checkpoint` recomputes; None for those of `derived`.
        rules: What rules give.
        primal: The equation that these were made for; None without rules that need it.
        is_primal: Whether these equations are that one, and not derived from it.
    """

    forward: Entries
    derived: Entries
    rematted: Entries | None
    rules: tuple[Applied, ...]
    primal: Primal | None
    is_primal: bool

    def key(self) -> tuple[Any, ...]:
        """What equal rows have in common."""
        entries = (tuple(sorted(each.items())) for each in (self.forward, self.derived, self.rematted or {}))
        return *entries, self.rematted is None, self.rules, id(self.primal), self.is_primal


def row_of(equation: Any, rules: RuleSet | None) -> Row:
    """The tags of an equation of a jaxpr, those by rules included."""
    metadata = _compat.tracing.metadata_of(equation.ctx)
    forward: Entries = {}
    grad: Entries = {}
    remat: Entries = {}
    for key, value in metadata.items():
        if not isinstance(value, OwnValue):
            forward[key] = as_text(value)
        elif not isinstance(value, Reserved):
            continue
        elif key.startswith(GRAD):
            grad[key.removeprefix(GRAD)] = value.text
        elif key.startswith(REMAT):
            remat[key.removeprefix(REMAT)] = value.text
        elif value.text is None:
            forward[key] = None
    derived = forward | grad
    applied = () if rules is None else rules.find_applied(metadata)
    primal = None
    if any(each.depends_on_op() for each in applied):
        primal = metadata.get(PRIMAL) or primal_of(equation.primitive, [atom.aval for atom in equation.invars], equation.params)
    is_primal = primal is not None and primal.primitive is equation.primitive
    return Row(forward, derived, derived | remat if remat else None, applied, primal, is_primal)


# Text in scopes that reads like a mark, a transformation, or the separator of a mark.
_AMBIGUOUS = re.compile(r"[\x01()]|^/")
# The scope of a jitted function.
_CALL = re.compile(r"(p?jit\()(.*)(\))", re.DOTALL)


@functools.lru_cache(maxsize=4096)
def escape(scope: str) -> str:
    r"""A scope's text with each ambiguous character written as `\x01%28`; `hlotag-verify` replaces them."""
    call = _CALL.fullmatch(scope)
    head, text, tail = call.groups() if call else ("", scope, "")
    return head + _AMBIGUOUS.sub(lambda found: f"\x01%{ord(found[0]):02x}", text) + tail


@dataclass
class _Marked:
    """The marks of the equations with one context.

    Attributes:
        plain: The context of their copies.
        has_primal: Whether the context has a primal. Without one, an equation is its own.
        by_equation: Whether a rule depends on the primal.
        marks: The marks, by what they depend on besides the context.
        kept: Equations that keep the context, and ids of equations, alive.
    """

    plain: Any
    has_primal: bool
    by_equation: bool
    marks: dict[Any, str] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)

    def key_of(self, equation: Any) -> Any:
        """What the mark of an equation depends on besides the context."""
        if not self.by_equation:
            return None
        return equation.primitive if self.has_primal else id(equation)


class Marker:
    """Marks the tagged equations of one program.

    Args:
        rules: The rules of the stage.
        blank: Remove tags instead of marking them.

    Attributes:
        table: The rows by mark, in the order in which the program is lowered, so that the same program gives the same table in
            every process.
        has_escapes: Whether a scope had ambiguous characters, which were escaped.
        has_value_tags: Whether the program has JAX's own value tags, set while hlotag was off.
        has_backward_rules: Whether names have marks of the user's backward rules.
    """

    def __init__(self, *, rules: RuleSet | None = None, blank: bool = False) -> None:
        self.table: list[Row] = []
        self.has_escapes = False
        self.has_value_tags = False
        self.has_backward_rules = False
        self.rules = rules
        self._blank = blank
        self._index: dict[tuple, int] = {}
        self._contexts: dict[int, _Marked] = {}  # by the id of a context

    def mark(self, jaxpr: Any) -> Any:
        """A view of `jaxpr` with its tagged equations marked; inner jaxprs are marked when JAX lowers them."""
        return _compat.jaxprs.JaxprView(
            jaxpr, partial(_compat.jaxprs.mark_equations, jaxpr.eqns, self._mark_of, self._value_tag_of)
        )

    def primals(self) -> tuple[Primal, ...]:
        """The distinct primals of the table, in order."""
        return tuple({id(row.primal): row.primal for row in self.table if row.primal is not None}.values())

    def name(self, scope: str) -> str:
        """The text of a scope in locations."""
        if self._blank or (text := escape(scope)) == scope:
            return scope
        self.has_escapes = True
        return text

    def mark_of_backward_rule(self) -> str:
        """The mark of operations that the user's backward rules bind."""
        if self._blank:
            return ""
        self.has_backward_rules = True
        return "\x01hlotag#custom\x01"

    def _value_tag_of(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The entries that JAX attaches for a value tag: none if marks do."""
        if VALUE in metadata:
            return {}
        self.has_value_tags = True
        return metadata

    def _mark_of(self, equation: Any) -> tuple[str, Any] | None:
        context = equation.ctx
        known = self._contexts.get(id(context)) or self._contexts.setdefault(id(context), self._marked(context))
        key = known.key_of(equation)
        mark = known.marks.get(key)
        if mark is None:
            known.marks[key] = mark = self._new_mark(equation)
            known.kept.append(equation)
        return None if known.plain is context and not mark else (mark, known.plain)

    def _marked(self, context: Any) -> _Marked:
        metadata = _compat.tracing.metadata_of(context)
        by_equation = self.rules is not None and self.rules.needs_primal(metadata)
        plain = _compat.tracing.with_metadata(context, {}) if metadata else context
        return _Marked(plain, PRIMAL in metadata, by_equation)

    def _new_mark(self, equation: Any) -> str:
        if self._blank or (self.rules is None and not _compat.tracing.metadata_of(equation.ctx)):
            return ""
        row = row_of(equation, self.rules)
        return f"\x01hlotag#{self._number(row)}\x01" if row.forward or row.derived or row.rematted or row.rules else ""

    def _number(self, row: Row) -> int:
        index = self._index.setdefault(row.key(), len(self.table))
        if index == len(self.table):
            self.table.append(row)
        return index


class _Lowering(threading.local):
    marker: Marker | None = None


_lowering = _Lowering()


@contextmanager
def marking(marker: Marker | None) -> Iterator[None]:
    """Marks what this thread lowers within the block; None turns off the marking of an enclosing lowering."""
    outer = _lowering.marker
    try:
        _lowering.marker = marker
        yield
    finally:
        _lowering.marker = outer


# The element of name stacks in the user's backward rules. It has a text only if passes follow, which remove it.
BACKWARD_RULE = _compat.backward_rules.NameElement(
    lambda: "" if _lowering.marker is None else _lowering.marker.mark_of_backward_rule()
)


def view_as_lowered(jaxpr: Any) -> Any:
    """The view of `jaxpr` that JAX lowers: marked within `marking`, else without reserved values, as no pass would remove them.

    JAX lowers parts of a module outside of the function that the stage wraps: the shape checks of an export's arguments.
    """
    if _lowering.marker is not None:
        return _lowering.marker.mark(jaxpr)
    if not _compat.jaxprs.has_metadata(jaxpr, _is_own):
        return jaxpr
    return _compat.jaxprs.JaxprView(jaxpr, partial(_compat.jaxprs.mark_equations, jaxpr.eqns, _as_jax_has_it, _without_reserved))


def _name_as_lowered(scope: str) -> str:
    """The text of a scope in locations: escaped only if passes follow, which undo it."""
    return scope if _lowering.marker is None else _lowering.marker.name(scope)


def _as_jax_has_it(equation: Any) -> tuple[str, Any] | None:
    context = equation.ctx
    metadata = _compat.tracing.metadata_of(context)
    plain = _without_reserved(metadata)
    return None if plain is metadata else ("", _compat.tracing.with_metadata(context, plain))


def _is_own(value: Any) -> bool:
    return isinstance(value, OwnValue)


def _without_reserved(metadata: Any) -> Any:
    plain = {key: value for key, value in metadata.items() if not _is_own(value)}
    return metadata if len(plain) == len(metadata) else plain


def attach_table(module: ir.Module, marker: Marker, kinds: Mapping[Primal, frozenset[str]]) -> None:
    """Attaches the table of tags to a module that was lowered within `marking(marker)`, and whether its names have escapes.

    `kinds` are the names of the operations that each primal of the table lowers to.
    """
    from jaxlib.mlir import ir

    attributes = module.operation.attributes
    if marker.has_escapes:
        attributes["hlotag.escaped"] = ir.UnitAttr.get(module.context)
    if not marker.table and not marker.has_backward_rules and marker.rules is None:
        return
    with module.context:
        attributes["hlotag.tags"] = _attribute([_as_attribute(row, kinds) for row in marker.table])
        if marker.rules is not None:
            rules = zip(marker.rules.names, marker.rules.rules, strict=True)
            attributes["hlotag.rules"] = _attribute([{"name": name, "text": rule.text} for name, rule in rules])


def _as_attribute(row: Row, kinds: Mapping[Primal, frozenset[str]]) -> dict[str, Any]:
    attribute: dict[str, Any] = {"forward": row.forward, "derived": row.derived}
    if row.rematted is not None:
        attribute["remat"] = row.rematted
    if rules := [each for applied in row.rules for each in _of_rule(applied, row, kinds)]:
        attribute["rules"] = rules
    return attribute


def _of_rule(applied: Applied, row: Row, kinds: Mapping[Primal, frozenset[str]]) -> Iterator[dict[str, Any]]:
    """What a rule gives to the operations of a row, as `hlotag-resolve` reads it.

    A rule with an `op` selects among the operations of a primal equation. What derives from the equation gets entries if the
    equation has such an operation.
    """
    rule = {"rule": applied.index}
    of_derived = {"derived": applied.derived} | ({"remat": applied.rematted} if applied.rematted != applied.derived else {})
    of_own = {"forward": applied.forward} | ({"custom": applied.custom} if applied.custom != applied.forward else {})
    everything = rule | of_own | of_derived
    if not applied.depends_on_op():
        yield everything
        return
    patterns: dict[str, Any] = {"op": applied.op or "*"} | ({"unless": list(applied.unless)} if applied.unless else {})
    if row.primal is None:
        yield everything | patterns
        return
    names = kinds[row.primal]
    # What JAX lowers once and calls is tagged as a whole.
    is_apart = row.is_primal and "func.call" not in names
    if is_apart:
        yield rule | of_own | {"derived": {}} | patterns
    if _has_kind(applied, names):
        yield rule | {"forward": {}} | of_derived if is_apart else everything


def _has_kind(applied: Applied, names: frozenset[str]) -> bool:
    return any(
        (applied.op is None or matches_op(applied.op, name)) and not any(matches_op(each, name) for each in applied.unless)
        for name in names
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


PATCHES = (*_compat.hooks.jaxpr_patches(view_as_lowered), _compat.hooks.scope_patch(_name_as_lowered))
