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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from hlotag import _compat
from hlotag._core import Chains
from hlotag.errors import TagError


@dataclass(frozen=True)
class Reserved:
    """hlotag's own value in an equation context. It equals no value of a user's.

    Attributes:
      text: the value; None if the key is removed.
    """

    text: str | None


# The entry `GRAD + key` holds the value of `key` on derived ops, a `Reserved`.
GRAD = "hlotag.grad."
# Sentinel: the key was removed within a block; enclosing tags must not restore it.
UNSET = Reserved(None)

# None: the key was removed; enclosing tags must not restore it.
Entries = dict[str, str | None]


def as_text(value: Any) -> str:
    """The text JAX writes for a metadata value; booleans are lower case.

    Raises:
      TagError: an int has more digits than Python writes.
    """
    try:
        return str(value).lower() if isinstance(value, bool) else str(value)
    except ValueError as error:
        raise TagError(f"a value of {value.bit_length()} bits is too long for a tag: {error}") from None


class _ReservedUse:
    """Whether an equation holds reserved values, so that `patches` must stay installed after the last stage.

    A jaxpr, or the function from `jax.vjp`, may be lowered after the stage in which it was traced.
    """

    is_used = False


reserved = _ReservedUse()


def entries_of(metadata: _compat.Metadata) -> tuple[Entries, Entries]:
    """The entries for forward ops, and those for ops that autodiff derives, from the metadata of a context."""
    forward: Entries = {}
    grad: Entries = {}
    for key, value in metadata.items():
        if not isinstance(value, Reserved):
            forward[key] = as_text(value)
        elif key.startswith(GRAD):
            grad[key.removeprefix(GRAD)] = value.text
        else:
            forward[key] = value.text
    return forward, forward | grad


# Text in scopes that reads like a mark, a transformation, or the separator of a mark.
_AMBIGUOUS = re.compile(r"[\x01()]|^/")
# The scope of a jitted function.
_CALL = re.compile(r"(p?jit\()(.*)(\))", re.DOTALL)


@functools.lru_cache(maxsize=4096)
def escaped(scope: str) -> str:
    r"""A scope's text with each ambiguous character written as `\x01%28`; `hlotag-verify` replaces them."""
    call = _CALL.fullmatch(scope)
    head, text, tail = call.groups() if call else ("", scope, "")
    return head + _AMBIGUOUS.sub(lambda found: f"\x01%{ord(found[0]):02x}", text) + tail


class Marker:
    """Marks the tagged equations of one program, and those with an identity.

    Args:
      identify: whether marks include the identities of equations.
      blank: remove tags instead of marking them.

    Attributes:
      table: (forward entries, derived entries) by mark index, in the order in which the program is lowered, so that the same
        program gives the same table in every process.
      has_escapes: whether a scope had ambiguous characters, which were escaped.
      has_value_tags: whether the program has JAX's own value tags, set while hlotag was off.
    """

    def __init__(self, *, identify: bool = False, blank: bool = False) -> None:
        self.table: list[tuple[Entries, Entries]] = []
        self.has_escapes = False
        self.has_value_tags = False
        self._identify = identify
        self._blank = blank
        self._index: dict[tuple, int] = {}
        self._chains = Chains()
        # By the id of a context: the context, which stays alive, the start of its marks, and its replacement in marked copies.
        self._contexts: dict[int, tuple[Any, str, Any]] = {}

    def mark(self, jaxpr: Any) -> Any:
        """A view of `jaxpr` with its tagged equations marked; inner jaxprs are marked when JAX lowers them."""
        return _compat.JaxprView(jaxpr, partial(_compat.marked_equations, jaxpr.eqns, self._mark_of, self._note_value_tag))

    def name(self, scope: str) -> str:
        """The text of a scope in locations."""
        if self._blank or (text := escaped(scope)) == scope:
            return scope
        self.has_escapes = True
        return text

    def _note_value_tag(self) -> None:
        self.has_value_tags = True

    def _mark_of(self, primitive: Any, context: Any, stack: tuple[Any, ...]) -> tuple[str, Any] | None:
        _, start, plain = self._contexts.get(id(context)) or self._add_context(context)
        chain = self._chains.of(stack, primitive) if self._identify else ""
        if chain:
            return f"{start}:{chain}\x01", plain
        # `start` is empty where tags are removed: the copy of the equation gets no mark.
        return None if plain is context else (start and start + "\x01", plain)

    def _add_context(self, context: Any) -> tuple[Any, str, Any]:
        metadata = _compat.metadata_of(context)
        plain = _compat.with_metadata(context, {}) if metadata else context
        start = "" if self._blank or not (metadata or self._identify) else f"\x01hlotag#{self._row(metadata)}"
        return self._contexts.setdefault(id(context), (context, start, plain))

    def _row(self, metadata: Any) -> int:
        """The number of the table's row for `metadata`."""
        row = entries_of(metadata)
        key = tuple(tuple(sorted(entries.items())) for entries in row)
        index = self._index.setdefault(key, len(self.table))
        if index == len(self.table):
            self.table.append(row)
        return index


class _Lowering(threading.local):
    marker: Marker | None = None


_lowering = _Lowering()


@contextmanager
def marking(marker: Marker | None) -> Iterator[None]:
    """Marks what this thread lowers within the block.

    Args:
      marker: the marker; None turns off the marking of an enclosing lowering.

    Yields:
      Nothing.
    """
    outer = _lowering.marker
    _lowering.marker = marker
    try:
        yield
    finally:
        _lowering.marker = outer


def as_lowered(jaxpr: Any) -> Any:
    """The view of `jaxpr` that JAX lowers: marked within `marking`, else without reserved values, as no pass would remove them.

    JAX lowers parts of a module outside of the function that the stage wraps: the shape checks of an export's arguments.
    """
    if _lowering.marker is not None:
        return _lowering.marker.mark(jaxpr)
    return _compat.JaxprView(jaxpr, partial(_compat.marked_equations, jaxpr.eqns, _as_jax_has_it, lambda: None))


def _name_as_lowered(scope: str) -> str:
    """The text of a scope in locations: escaped only if passes follow, which undo it."""
    return scope if _lowering.marker is None else _lowering.marker.name(scope)


def _as_jax_has_it(_: Any, context: Any, stack: tuple[Any, ...]) -> tuple[str, Any] | None:
    metadata = _compat.metadata_of(context)
    plain = {key: value for key, value in metadata.items() if not isinstance(value, Reserved)}
    return None if len(plain) == len(metadata) else ("", _compat.with_metadata(context, plain))


def attach_table(module: Any, marker: Marker) -> None:
    """Attaches the table of tags to a module, and whether its names have escapes.

    Args:
      module: an `ir.Module` that was lowered within `marking(marker)`.
      marker: the marker.
    """
    from jaxlib.mlir import ir

    def entries(d: Entries) -> ir.DictAttr:
        return ir.DictAttr.get({key: unset if value is None else ir.StringAttr.get(value) for key, value in sorted(d.items())})

    attributes = module.operation.attributes
    if marker.has_escapes:
        attributes["hlotag.escaped"] = ir.UnitAttr.get(module.context)
    if not marker.table:
        return
    with module.context:
        unset = ir.ArrayAttr.get([ir.StringAttr.get("hlotag.unset")])
        attributes["hlotag.tags"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({"forward": entries(f), "derived": entries(d)}) for f, d in marker.table]
        )


@functools.cache
def patches() -> tuple[_compat.Patch, ...]:
    """The patches of JAX by which it lowers marked equations, and escapes scopes."""
    return (*_compat.jaxpr_patches(as_lowered), _compat.scope_patch(_name_as_lowered))
