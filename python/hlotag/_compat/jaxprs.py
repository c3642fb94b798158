# SPDX-License-Identifier: Apache-2.0
"""Jaxprs as JAX's lowering reads them: with other equations, names and contexts.

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to name an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jax._src.source_info_util import NameStack, SourceInfo

from hlotag._compat.identities import identities_of
from hlotag._compat.tracing import VALUE_TAG
from hlotag._core import Identity


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
    """What marked equations have instead of their context and of the identities in their name stacks.

    Args:
      text: the innermost element of their name stacks; none if it is empty.
      context: their context.
    """

    __slots__ = ("_context", "_element")

    def __init__(self, text: str, context: Any) -> None:
        # An empty element would still add a separator.
        self._element: Any = (_MarkElement(text),) if text else ()
        self._context = context

    def applied_to(self, equation: Any) -> Any:
        """A marked copy of an equation."""
        source = equation.source_info
        stack = tuple([element for element in source.name_stack.stack if type(element) is not Identity])
        names = NameStack(stack + self._element)
        return equation.replace(ctx=self._context, source_info=SourceInfo(source.traceback, names))


def marked_equations(
    equations: Iterable[Any], mark_of: Callable[[Any, Sequence[Identity]], EquationMark | None], on_value_tag: Callable[[], None]
) -> Iterator[Any]:
    """Marks equations.

    Args:
      equations: those of a jaxpr, which stay as they are.
      mark_of: the mark of an equation, and of the identities in its name stack; None if it is not to be marked.
      on_value_tag: called for each value tag of JAX's own.

    Yields:
      Each equation, or a marked copy of it.
    """
    for equation in equations:
        if equation.primitive is VALUE_TAG:
            on_value_tag()
        identities = identities_of(equation.source_info.name_stack)
        mark = mark_of(equation, identities) if identities or equation.ctx.xla_metadata else None
        yield equation if mark is None else mark.applied_to(equation)
