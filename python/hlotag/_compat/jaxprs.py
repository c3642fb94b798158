# SPDX-License-Identifier: Apache-2.0
"""How does JAX lower a jaxpr with marked equations, without a change of the jaxpr?

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to name an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jax._src.source_info_util import NameStack, SourceInfo

from hlotag._compat.tracing import VALUE_TAG
from hlotag._core import without_identities


class JaxprView:
    """A jaxpr with replaced equations, which are made lazily.

    `mlir.jaxpr_subcomp` reads equations one by one and keeps none, so only one copy is alive at a time.

    Args:
      jaxpr: the jaxpr.
      equations: returns an iterator over the equations.
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


def marked_equations(
    equations: Iterable[Any],
    mark_of: Callable[[Any, Any, tuple[Any, ...]], tuple[str, Any] | None],
    on_value_tag: Callable[[], None],
) -> Iterator[Any]:
    """Marks equations.

    Args:
      equations: the equations of a jaxpr; they stay unchanged.
      mark_of: a function of an equation's primitive, context and name stack. It returns the text of the mark and the new context,
        or None for no mark.
      on_value_tag: called for each of JAX's own value tags.

    Yields:
      Each equation, or a copy of it whose name stack has the mark and no identities.
    """
    for equation in equations:
        if equation.primitive is VALUE_TAG:
            on_value_tag()
        source = equation.source_info
        stack = without_identities(source.name_stack.stack)
        mark = mark_of(equation.primitive, equation.ctx, source.name_stack.stack)
        if mark is None and stack is source.name_stack.stack:
            yield equation
            continue
        text, context = mark or ("", equation.ctx)
        # An empty element would still add a separator.
        element: Any = _MarkElement(text)
        names = NameStack((*stack, element) if text else stack)
        yield equation.replace(ctx=context, source_info=SourceInfo(source.traceback, names))
