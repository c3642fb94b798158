# SPDX-License-Identifier: Apache-2.0
"""From equation contexts to locations: what lowering would lose goes into the names of the equations.

JAX attaches the metadata of an equation's context to the ops that own the equation's results, and to nothing else. Its name
stack, in contrast, is in the location of every op that the equation lowers to: helper ops, bodies of loops and branches, calls of
cached lowerings. So, just before lowering, each tagged equation is copied with a *mark* at the end of its name stack, an
index into a table of tags, and without metadata in its context. The `hlotag-resolve` pass turns marks into attributes and
removes them, so that locations come out as JAX writes them.

The jaxprs of the trace are shared with JAX's caches and are never changed; a jaxpr without tags is not copied.
"""

from __future__ import annotations

from typing import Any

from hlotag import _compat

# Reserved keys in a context say what ops derived by autodiff get instead: `GRAD + key` maps to KEEP + value, or to DROP.
GRAD = "hlotag.grad."
KEEP = "="
DROP = "-"

# A kernel's jaxpr is lowered by its own compiler, which does not know marks.
_OPAQUE = frozenset({"pallas_call", "core_map", "mpmd_map"})

_JAXPRS = _compat.JAXPR_TYPES

# The value of a key that was taken away within a block. Were the key only gone, a tagged loop around it would give it back.
UNSET = "\x01hlotag.unset"

# None: the key is not to be there, whatever encloses the operation says.
Entries = dict[str, str | None]


def as_text(value: Any) -> str:
    """The text JAX writes for a metadata value; booleans are lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def split_phases(metadata: _compat.Metadata) -> tuple[Entries, Entries]:
    """The entries for forward ops, and those for ops that autodiff derives, from the metadata of a context."""
    own = {key: value for key, value in metadata.items() if not key.startswith(GRAD)}
    forward: Entries = {key: None if value == UNSET else as_text(value) for key, value in own.items()}
    derived = dict(forward)
    for reserved, value in metadata.items():
        if not reserved.startswith(GRAD):
            continue
        key = reserved.removeprefix(GRAD)
        if value.startswith(DROP):
            derived[key] = None
        else:
            derived[key] = value.removeprefix(KEEP)
    return forward, derived


class Marker:
    """Marks the tagged equations of one program.

    Args:
      blank: takes the tags out instead, and leaves no trace of them.

    Attributes:
      table: (forward entries, derived entries) by mark index, in the order in which the program first uses them, so that the same
        program gives the same table in every process.
      has_value_tags: whether the program holds value tags of JAX's own: it was traced before hlotag was turned on.
    """

    def __init__(self, *, blank: bool = False) -> None:
        self.table: list[tuple[Entries, Entries]] = []
        self.has_value_tags = False
        self._blank = blank
        self._index: dict[tuple, int] = {}
        # By id, with the object kept alive; a jaxpr shared by several callers must stay shared, for JAX lowers it once.
        self._jaxprs: dict[int, tuple[Any, Any]] = {}
        self._marks: dict[int, _compat.EquationMark] = {}

    def mark(self, jaxpr: Any) -> Any:
        """`jaxpr`, open or closed, with all tagged equations marked; the same object if there are none."""
        if (done := self._jaxprs.get(id(jaxpr))) is not None:
            return done[1]
        result = _compat.with_equations(jaxpr, self._mark_equations)
        self._jaxprs[id(jaxpr)] = (jaxpr, result)
        return result

    def _mark_equations(self, jaxpr: Any) -> list[Any] | None:
        changed: list[Any] | None = None
        for number, equation in enumerate(jaxpr.eqns):
            params = equation.params
            for value in params.values():  # For most equations this loop is all that is done.
                kind = type(value)
                if kind in _JAXPRS or ((kind is tuple or kind is list) and not _JAXPRS.isdisjoint(map(type, value))):
                    params = self._mark_params(equation)
                    break
            if equation.primitive is _compat.VALUE_TAG:
                self.has_value_tags = True
            context = equation.ctx
            if context.xla_metadata:
                mark = self._marks.get(id(context)) or self._mark_of(context)
                new = mark.put_on(equation, params)
            elif params is not equation.params:
                new = equation.replace(params=params)
            else:
                continue
            if changed is None:
                changed = list(jaxpr.eqns)
            changed[number] = new
        return changed

    def _mark_params(self, equation: Any) -> dict[str, Any]:
        """The parameters with the jaxprs in them marked; the same object if that changes none."""
        params = equation.params
        if equation.primitive.name in _OPAQUE:
            return params
        for name, value in equation.params.items():
            if type(value) in _JAXPRS:
                new = self.mark(value)
                same = new is value
            elif type(value) in (tuple, list) and not _JAXPRS.isdisjoint(map(type, value)):
                new = type(value)(self.mark(x) if type(x) in _JAXPRS else x for x in value)
                same = all(a is b for a, b in zip(new, value, strict=True))
            else:
                continue
            if not same:
                params = {**params, name: new}
        return params

    def _mark_of(self, context: Any) -> _compat.EquationMark:
        phases = split_phases(context.xla_metadata)
        key = tuple(tuple(sorted(entries.items())) for entries in phases)
        index = self._index.setdefault(key, len(self.table))
        if index == len(self.table) and not self._blank:
            self.table.append(phases)
        mark = _compat.EquationMark("" if self._blank else f"\x01hlotag#{index}\x01", _compat.with_metadata(context, {}))
        self._marks[id(context)] = mark
        return mark


def attach_table(module: Any, table: list[tuple[Entries, Entries]]) -> None:
    """Puts the table of tags on a module, for `hlotag-resolve`.

    Args:
      module: an `ir.Module` lowered from a marked jaxpr.
      table: `Marker.table`.
    """
    from jaxlib.mlir import ir

    def entries(d: Entries) -> ir.DictAttr:
        return ir.DictAttr.get({key: unset if value is None else ir.StringAttr.get(value) for key, value in sorted(d.items())})

    with module.context:
        unset = ir.ArrayAttr.get([ir.StringAttr.get("hlotag.unset")])
        module.operation.attributes["hlotag.tags"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({"forward": entries(f), "derived": entries(d)}) for f, d in table]
        )
