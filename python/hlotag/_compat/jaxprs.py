# SPDX-License-Identifier: Apache-2.0
"""Views of jaxprs with marked equations, which JAX lowers in place of the jaxprs, and leaves the jaxprs as they are.

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to name an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax._src import core, source_info_util
from jax._src.core import Var
from jax._src.source_info_util import NameStack, SourceInfo

from hlotag._compat.tracing import VALUE_TAG


class JaxprView:
    """A jaxpr with replaced equations, which are made lazily.

    `mlir.jaxpr_subcomp` reads equations one by one and keeps none, so only one copy is alive at a time.

    Args:
        jaxpr: The jaxpr.
        equations: Returns an iterator over the equations.
    """

    __slots__ = ("_equations", "_jaxpr")

    def __init__(self, jaxpr: Any, equations: Callable[[], Iterator[Any]]) -> None:
        self._jaxpr = jaxpr
        self._equations = equations

    @property
    def eqns(self) -> Iterator[Any]:
        return self._equations()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jaxpr, name)


@dataclass(slots=True, unsafe_hash=True)
class _MarkElement:
    """An element of a name stack that prefixes the next one, so that removing the mark leaves JAX's own name."""

    text: str

    def wrap(self, names: list[str]) -> None:
        if names:
            names[-1] = self.text + names[-1]
        else:
            names.append(self.text)


def mark_equations(
    equations: Iterable[Any],
    mark_of: Callable[[Any], tuple[str, Any] | None],
    value_tag_of: Callable[[dict[str, Any]], dict[str, Any]],
) -> Iterator[Any]:
    """Yields each equation, or a copy of it whose name stack has a mark.

    `mark_of` returns the text of an equation's mark and the new context, or None for no mark; `value_tag_of` what JAX attaches to
    the op of a value tag with this metadata.
    """
    for original in equations:
        equation = original
        if equation.primitive is VALUE_TAG:
            kept = value_tag_of(dict(equation.params["xla_metadata_kvs"]))
            equation = equation.replace(params={"xla_metadata_kvs": tuple(sorted(kept.items()))})
        mark = mark_of(equation)
        if mark is None:
            yield equation
            continue
        text, context = mark
        source = equation.source_info
        # An empty element would still add a separator.
        element: Any = _MarkElement(text)
        names = NameStack((*source.name_stack.stack, element)) if text else source.name_stack
        yield equation.replace(ctx=context, source_info=SourceInfo(source.traceback, names))


def has_metadata(jaxpr: Any, is_wanted: Callable[[Any], bool]) -> bool:
    """Whether an equation of `jaxpr` itself, or a value tag in it, has an entry with a wanted value."""
    for equation in jaxpr.eqns:
        metadata = equation.ctx.xla_metadata
        if metadata and any(map(is_wanted, metadata.values())):
            return True
        if equation.primitive is VALUE_TAG and any(is_wanted(value) for _, value in equation.params["xla_metadata_kvs"]):
            return True
    return False


def lower_equations(primals: Sequence[Any], lower: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Lowers equations to a module, equation number `n` in the scope `hlotag<n>`.

    A primal has the `primitive`, `params` and `avals` of an equation. `options` are those of `lower`, JAX's
    `mlir.lower_jaxpr_to_module`, for another program on the same platforms.
    """
    equations, arguments = [], []
    for number, primal in enumerate(primals):
        operands = [Var(_without_mesh(aval)) for aval in primal.avals]
        outs, effects = primal.primitive.abstract_eval(*(operand.aval for operand in operands), **primal.params)
        results = [Var(aval) for aval in (outs if primal.primitive.multiple_results else [outs])]
        source = SourceInfo(None, source_info_util.new_name_stack(f"hlotag{number}"))
        equations.append(core.new_jaxpr_eqn(operands, results, primal.primitive, dict(primal.params), effects, source))
        arguments += operands
    debug_info = core.DebugInfo("hlotag", "equations", ("",) * len(arguments), ())
    jaxpr: Any = core.Jaxpr((), arguments, [], equations, debug_info=debug_info)
    if not hasattr(jaxpr, "consts"):  # 0.10.2
        jaxpr = core.ClosedJaxpr(jaxpr, ())  # pyright: ignore[reportAttributeAccessIssue]
    avals = [variable.aval for variable in arguments]
    own = {name: options[name] for name in ("platforms", "backend", "axis_context", "lowering_parameters")}
    own |= {"num_const_args": 0, "in_avals": avals, "ordered_effects": [], "donated_args": [False] * len(avals)}
    return lower("equations", jaxpr, **own, **({"out_avals": []} if "out_avals" in options else {})).module


def _without_mesh(aval: Any) -> Any:
    """The type of an operand outside of a `shard_map`."""
    return core.ShapedArray(aval.shape, aval.dtype, aval.weak_type) if type(aval) is core.ShapedArray else aval
