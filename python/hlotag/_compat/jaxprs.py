# SPDX-License-Identifier: Apache-2.0
"""Jaxprs as JAX's lowering reads them: with other equations, names and contexts.

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to name an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from jax._src.source_info_util import NameStack

from hlotag._compat.tracing import VALUE_TAG, with_metadata


class JaxprView:
    """A jaxpr with other equations, each made when it is asked for.

    `mlir.jaxpr_subcomp` reads equations one by one and keeps none, so a program of any size needs room for one copy.

    Args:
      jaxpr: what it is but for its equations.
      equations: gives them.
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


class _MarkElement:
    """An element of a name stack that is a prefix of the element after it, so that removing the text leaves JAX's own name."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def wrap(self, names: list[str]) -> None:
        if names:
            names[-1] = self.text + names[-1]
        else:
            names.append(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _MarkElement) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class EquationMark:
    """What marked equations of one context have instead of it and of their name stacks.

    Args:
      text: the innermost element of their name stacks; none if it is empty.
      context: what they have; kept, as the mark is for this very object.
      metadata: what they have instead of the context's.

    Attributes:
      names: what is added to their name stacks.
      context: the context with that metadata.
    """

    __slots__ = ("_original", "context", "names")

    def __init__(self, text: str, context: Any, metadata: Mapping[str, Any] = MappingProxyType({})) -> None:
        # An empty element would still add a separator.
        elements: Any = (_MarkElement(text),) if text else ()
        self.names = NameStack(elements)
        self.context = with_metadata(context, metadata)
        self._original = context


def marked_equations(
    equations: Iterable[Any], mark_of: Callable[[Any], EquationMark | None], on_value_tag: Callable[[], None]
) -> Iterator[Any]:
    """Marks equations.

    Args:
      equations: those of a jaxpr, which stay as they are.
      mark_of: the mark of a context; None if its equations are not to be marked.
      on_value_tag: called for each value tag of JAX's own.

    Yields:
      Each equation, or a marked copy of it.
    """
    context = mark = None
    for equation in equations:
        if equation.primitive is VALUE_TAG:
            on_value_tag()
        if equation.ctx is not context:  # Neighbours often share one.
            context = equation.ctx
            mark = mark_of(context)
        if mark is None:
            yield equation
        else:
            source = equation.source_info
            yield equation.replace(ctx=mark.context, source_info=source.replace(name_stack=source.name_stack + mark.names))
