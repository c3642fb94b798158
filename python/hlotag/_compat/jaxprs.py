# SPDX-License-Identifier: Apache-2.0
"""Jaxprs as JAX's lowering reads them: with other equations, names and contexts.

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to name an equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jax._src.core import JaxprEqn
from jax._src.source_info_util import NameStack, SourceInfo

from hlotag._compat.tracing import with_metadata


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
    """What makes marked equations of those in one context: the mark, and the context without metadata.

    Args:
      text: the innermost element of their name stacks; none if it is empty.
      context: what the equations have.
    """

    def __init__(self, text: str, context: Any) -> None:
        # An empty element would still add a separator.
        self._element = (_MarkElement(text),) if text else ()
        self._original = context
        self._context = with_metadata(context, {})
        self._stack: tuple | None = None
        self._marked: Any = None

    def put_on(self, equation: Any) -> Any:
        """A marked copy of `equation`. By the constructors, which both versions have alike: `replace` takes twice the time."""
        source = equation.source_info
        # Neighbours often share theirs. Stacks that are equal need not be the same: a scope called `jvp` equals the transform.
        stack = source.name_stack.stack
        if stack is not self._stack:
            self._stack = stack
            self._marked = NameStack(stack + self._element)
        return JaxprEqn(
            equation.invars,
            equation.outvars,
            equation.primitive,
            equation.params,
            equation.effects,
            SourceInfo(source.traceback, self._marked),
            self._context,
        )
