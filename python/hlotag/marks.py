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

Entries = dict[str, str]


def as_text(value: Any) -> str:
    """The text JAX writes for a metadata value; booleans are lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def split_phases(metadata: _compat.Metadata) -> tuple[Entries, Entries]:
    """The entries for forward ops, and those for ops that autodiff derives, from the metadata of a context."""
    forward = {key: as_text(value) for key, value in metadata.items() if not key.startswith(GRAD)}
    derived = dict(forward)
    for key, value in metadata.items():
        if not key.startswith(GRAD):
            continue
        key = key.removeprefix(GRAD)
        if value.startswith(DROP):
            derived.pop(key, None)
        else:
            derived[key] = value.removeprefix(KEEP)
    return forward, derived


class Marker:
    """Marks the tagged equations of one program.

    Attributes:
      table: (forward entries, derived entries) by mark index, in the order in which the program first uses them, so that the same program gives
        the same table in every process.
    """

    def __init__(self) -> None:
        self.table: list[tuple[Entries, Entries]] = []
        self._index: dict[tuple, int] = {}
        # By id, with the object kept alive; a jaxpr shared by several callers must stay shared, for JAX lowers it once.
        self._jaxprs: dict[int, tuple[Any, Any]] = {}
        self._contexts: dict[int, tuple[Any, str, Any]] = {}

    def mark(self, jaxpr: Any) -> Any:
        """`jaxpr`, open or closed, with all tagged equations marked; the same object if there are none."""
        if (done := self._jaxprs.get(id(jaxpr))) is not None:
            return done[1]
        result = _compat.with_equations(jaxpr, self._mark_equations)
        self._jaxprs[id(jaxpr)] = (jaxpr, result)
        return result

    def _mark_equations(self, jaxpr: Any) -> list[Any] | None:
        equations = [self._mark_equation(equation) for equation in jaxpr.eqns]
        if all(new is old for new, old in zip(equations, jaxpr.eqns, strict=True)):
            return None
        return equations

    def _mark_equation(self, equation: Any) -> Any:
        params = equation.params
        for name, value in params.items() if equation.primitive.name not in _OPAQUE else ():
            new = self._mark_param(value)
            if new is not value:
                params = {**params, name: new}
        context = equation.ctx
        if context.xla_metadata:
            text, context = self._mark_of(context)
            return _compat.marked(equation, text, context, params)
        return equation if params is equation.params else equation.replace(params=params)

    def _mark_param(self, value: Any) -> Any:
        if _compat.is_jaxpr(value):
            return self.mark(value)
        if type(value) not in (tuple, list) or not any(_compat.is_jaxpr(x) for x in value):
            return value
        new = type(value)(self._mark_param(x) for x in value)
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new

    def _mark_of(self, context: Any) -> tuple[str, Any]:
        """The mark's text for `context`, and the context without metadata."""
        known = self._contexts.get(id(context))
        if known is None:
            phases = split_phases(context.xla_metadata)
            key = tuple(tuple(sorted(entries.items())) for entries in phases)
            index = self._index.setdefault(key, len(self.table))
            if index == len(self.table):
                self.table.append(phases)
            known = self._contexts[id(context)] = (
                context,
                f"\x01hlotag#{index}\x01",
                _compat.with_metadata(context, {}),
            )
        return known[1:]


def attach_table(module: Any, table: list[tuple[Entries, Entries]]) -> None:
    """Puts the table of tags on a module, for `hlotag-resolve`.

    Args:
      module: an `ir.Module` lowered from a marked jaxpr.
      table: `Marker.table`.
    """
    from jaxlib.mlir import ir

    def entries(d: Entries) -> ir.DictAttr:
        return ir.DictAttr.get({key: ir.StringAttr.get(value) for key, value in sorted(d.items())})

    with module.context:
        module.operation.attributes["hlotag.tags"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({"forward": entries(f), "derived": entries(d)}) for f, d in table]
        )
