# SPDX-License-Identifier: Apache-2.0
"""Jaxprs: other equations, and names for them.

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to replace the equations of either version's jaxpr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax._src import core, source_info_util

# 0.10.2 has open and closed jaxprs. Since 0.11 a jaxpr carries its own constants: the closed class is another name, then gone.
JAXPR_TYPES = frozenset({core.Jaxpr, getattr(core, "ClosedJaxpr", core.Jaxpr)})
CLOSED_JAXPR: type | None = next(iter(JAXPR_TYPES - {core.Jaxpr}), None)


def with_equations(jaxpr: Any, rewrite: Callable[[Any], list[Any] | None]) -> Any:
    """`jaxpr` with the equations `rewrite(open jaxpr)` gives, or `jaxpr` itself where that is None."""
    if CLOSED_JAXPR is not None and isinstance(jaxpr, CLOSED_JAXPR):
        inner = with_equations(jaxpr.jaxpr, rewrite)  # pyright: ignore[reportAttributeAccessIssue]
        return jaxpr if inner is jaxpr.jaxpr else jaxpr.replace(jaxpr=inner)  # pyright: ignore[reportAttributeAccessIssue]
    equations = rewrite(jaxpr)
    return jaxpr if equations is None else jaxpr.replace(eqns=equations)


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
    """What makes marked equations: a mark, and the context that they get.

    Args:
      text: the innermost element of their name stacks; none if it is empty.
      context: theirs.
    """

    def __init__(self, text: str, context: Any) -> None:
        # An empty element would still add a separator.
        self._element = (_MarkElement(text),) if text else ()
        self._context = context
        self._stacks: dict[int, Any] = {}

    def put_on(self, equation: Any, params: dict[str, Any]) -> Any:
        """A marked copy of `equation` with these parameters, made in one go: there may be thousands.

        Args:
          equation: one of a jaxpr that lives for as long as this object, as equations share name stacks, and so do their copies.
          params: of the copy.

        Returns:
          The copy. By the constructors, which both versions have alike: `replace` takes twice the time.
        """
        source = equation.source_info
        stack = source.name_stack
        marked = self._stacks.get(id(stack))
        if marked is None:
            marked = self._stacks[id(stack)] = source_info_util.NameStack(stack.stack + self._element)
        return core.JaxprEqn(
            equation.invars,
            equation.outvars,
            equation.primitive,
            params,
            equation.effects,
            source_info_util.SourceInfo(source.traceback, marked),
            self._context,
        )
