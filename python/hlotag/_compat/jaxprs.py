# SPDX-License-Identifier: Apache-2.0
"""Jaxprs as JAX's lowering reads them: with other equations, names and contexts.

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to name an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jax._src.core import JaxprEqn
from jax._src.source_info_util import NameStack, SourceInfo

from hlotag._compat.tracing import VALUE_TAG, with_metadata
from hlotag._core import MarkedEquations


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
      element: what is added to their name stacks.
      context: the context with that metadata.
    """

    __slots__ = ("_original", "context", "element")

    def __init__(self, text: str, context: Any, metadata: Mapping[str, Any] = MappingProxyType({})) -> None:
        # An empty element would still add a separator.
        self.element = (_MarkElement(text),) if text else ()
        self.context = with_metadata(context, metadata)
        self._original = context


def marked_equations(
    equations: Sequence[Any], mark_of: Callable[[Any], EquationMark | None], on_value_tag: Callable[[], None]
) -> Iterator[Any]:
    """Marks equations.

    Args:
      equations: those of a jaxpr, which stay as they are.
      mark_of: the mark of a context, if those that have it are to be marked.
      on_value_tag: called for each value tag of JAX's own.

    Returns:
      Gives each equation, or a marked copy, which is good until the next one is asked for.
    """
    # `jaxpr_subcomp` keeps none, so one is changed for each instead of making as many: that takes half the time, and brings no
    # work for the garbage collector.
    marked = JaxprEqn([], [], VALUE_TAG, {}, frozenset(), SourceInfo(None, NameStack()), None)
    return MarkedEquations(iter(equations), marked, VALUE_TAG, mark_of, on_value_tag)
