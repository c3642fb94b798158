# SPDX-License-Identifier: Apache-2.0
"""From equation contexts to locations: what lowering would lose goes into the names of the equations.

JAX attaches the metadata of an equation's context to the ops that own the equation's results, and to nothing else. Its name
stack, in contrast, is in the location of every op that the equation lowers to: helper ops, bodies of loops and branches, calls of
cached lowerings. So lowering is shown a copy of each tagged equation, with a *mark* at the end of its name stack, an
index into a table of tags, and without metadata in its context. The `hlotag-resolve` pass turns marks into attributes and
removes them, so that locations come out as JAX writes them.

The jaxprs of the trace are shared with JAX's caches and are never changed.
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
    """A value in a context that is hlotag's own, and equals no text of a user's.

    Attributes:
      text: the value; None if the key is not to be there.
    """

    text: str | None


# `GRAD + key` maps to what ops derived by autodiff get for that key, a `Reserved`.
GRAD = "hlotag.grad."
# The value of a key that was taken away within a block. Were the key only gone, a tagged loop around it would give it back.
UNSET = Reserved(None)

# None: the key is not to be there, whatever encloses the operation says.
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
    """Whether anything of hlotag's own went into an equation, and `PATCHES` have to stay in JAX after the last stage.

    What was traced in a stage may be lowered after it: a jaxpr, the function that `jax.vjp` gives.
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


# What a scope would be read for: a mark, a transformation, a separator that belongs to a mark.
_AMBIGUOUS = re.compile(r"[\x01()]|^/")
# What JAX calls a jitted function.
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
      identify: whether marks are to have the identities of equations.
      blank: takes the tags out instead, and leaves no trace of them.

    Attributes:
      table: (forward entries, derived entries) by mark index, in the order in which the program is lowered, so that the same
        program gives the same table in every process.
      has_escapes: whether a scope has characters that would be read as something else.
      has_value_tags: whether the program holds value tags of JAX's own, which were set while hlotag was off.
    """

    def __init__(self, *, identify: bool = False, blank: bool = False) -> None:
        self.table: list[tuple[Entries, Entries]] = []
        self.has_escapes = False
        self.has_value_tags = False
        self._identify = identify
        self._blank = blank
        self._index: dict[tuple, int] = {}
        self._chains = Chains()
        # By their ids, the contexts, which are kept alive; with the start of a mark's text, and what equations have instead.
        self._contexts: dict[int, tuple[Any, str, Any]] = {}

    def mark(self, jaxpr: Any) -> Any:
        """`jaxpr` as it is to be lowered, its own tagged equations marked; those of jaxprs in its equations are in their turn."""
        return _compat.JaxprView(jaxpr, partial(_compat.marked_equations, jaxpr.eqns, self._mark_of, self._note_value_tag))

    def name(self, scope: str) -> str:
        """The text that stands for a scope in the names of locations."""
        if self._blank or (text := escaped(scope)) == scope:
            return scope
        self.has_escapes = True
        return text

    def _note_value_tag(self) -> None:
        self.has_value_tags = True

    def _mark_of(self, primitive: Any, context: Any, stack: tuple[Any, ...]) -> tuple[str, Any] | None:
        is_tagged = bool(_compat.metadata_of(context))
        if not self._identify and not is_tagged:
            return None
        if self._blank:
            return "", _compat.with_metadata(context, {})
        _, start, plain = self._contexts.get(id(context)) or self._add_context(context)
        chain = self._chains.of(stack, primitive) if self._identify else ""
        if not chain and not is_tagged:
            return None
        return (f"{start}:{chain}\x01" if chain else start + "\x01"), plain

    def _add_context(self, context: Any) -> tuple[Any, str, Any]:
        metadata = _compat.metadata_of(context)
        row = entries_of(metadata)
        key = tuple(tuple(sorted(entries.items())) for entries in row)
        index = self._index.setdefault(key, len(self.table))
        if index == len(self.table):
            self.table.append(row)
        plain = _compat.with_metadata(context, {}) if metadata else context
        return self._contexts.setdefault(id(context), (context, f"\x01hlotag#{index}", plain))


class _Lowering(threading.local):
    marker: Marker | None = None


_lowering = _Lowering()


@contextmanager
def marking(marker: Marker | None) -> Iterator[None]:
    """Within the block, what this thread lowers is marked.

    Args:
      marker: marks it; None leaves it as it is, whatever the lowering that this one is part of does.

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
    """What is lowered for `jaxpr`: marked within `marking`; elsewhere no pass follows, and nothing reserved may be left.

    JAX lowers parts of a module outside of the function that the stage wraps: what an export checks of its arguments' shapes.
    """
    if _lowering.marker is not None:
        return _lowering.marker.mark(jaxpr)
    return _compat.JaxprView(jaxpr, partial(_compat.marked_equations, jaxpr.eqns, _as_jax_has_it, lambda: None))


def _name_as_lowered(scope: str) -> str:
    """`scope` as names of locations have it: only passes that follow could read it, and could replace its escapes."""
    return scope if _lowering.marker is None else _lowering.marker.name(scope)


def _as_jax_has_it(_: Any, context: Any, stack: tuple[Any, ...]) -> tuple[str, Any] | None:
    metadata = _compat.metadata_of(context)
    plain = {key: value for key, value in metadata.items() if not isinstance(value, Reserved)}
    return None if len(plain) == len(metadata) else ("", _compat.with_metadata(context, plain))


def attach_table(module: Any, marker: Marker) -> None:
    """Puts on a module what its names need to be read: the table of tags, and whether there are escapes.

    Args:
      module: an `ir.Module` that was lowered while `marker` marked.
      marker: has marked it.
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


PATCHES = (*_compat.jaxpr_patches(as_lowered), _compat.scope_patch(_name_as_lowered))
