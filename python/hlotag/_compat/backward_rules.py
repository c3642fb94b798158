# SPDX-License-Identifier: Apache-2.0
"""The places where JAX calls the user's backward rules, and the elements of name stacks that tell what was traced there.

JAX has no public hook for either. A name stack within a jaxpr begins at the jaxpr, so it does not say that the jaxpr is
transposed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jax._src import ad_checkpoint, custom_derivatives, hijax, source_info_util
from jax._src.interpreters import ad
from jax._src.interpreters import partial_eval as pe

from hlotag._compat.hooks import STAGES, Patch, Purpose, around_in_stage
from hlotag._compat.jaxprs import Marker

# JAX's transposes that call functions of the user's.
_FANCY = (ad.custom_lin_p, hijax.call_hi_primitive_linearized_p, hijax.call_hi_primitive_p)
_PLAIN = (ad.custom_lin_p, custom_derivatives.linear_call_p)
# What JAX says of the functions by which the transpose of a linear solve is traced, in advance.
_OF_SOLVE = "custom_linear_solve transpose_solve"

Block = Callable[[], AbstractContextManager[Any]]


@contextmanager
def within(element: Marker) -> Iterator[None]:
    """A block in which the name stack of this thread has the element."""
    stack: Any = (*source_info_util.current_name_stack().stack, element)
    with source_info_util.set_name_stack(source_info_util.NameStack(stack)):
        yield


def backward_rule_patches(block: Block) -> tuple[Any, ...]:
    """Calls the user's backward rules within `block()`.

    They are rules of `custom_vjp`, `linear_call`, `custom_linear_solve`, hijax primitives, and other libraries' primitives.
    """

    def call(rule: Callable, *args: Any, **params: Any) -> Any:
        if type(params.get("_prim")).__module__ == ad_checkpoint.__name__:  # It calls no function of the user's.
            return rule(*args, **params)
        with block():
            return rule(*args, **params)

    def rule_of(original: Callable, primitive: Any) -> Any:
        rule = original(primitive)
        return functools.partial(call, rule) if primitive in _PLAIN or _is_users(rule) else rule

    purpose = Purpose("tags in the backward rules of `custom_vjp` and of hijax primitives", "they are tags of derived operations")
    of_others = purpose._replace(use="tags in the backward rules of `linear_call` and of other libraries' primitives")
    of_solve = purpose._replace(use="tags in the `transpose_solve` of `custom_linear_solve`")
    fancy = (primitive for primitive in _FANCY if primitive in ad.fancy_transposes)
    return (
        *(Patch(ad.fancy_transposes, each, "cts", around_in_stage(call), purpose, rules="ad.fancy_transposes") for each in fancy),
        Patch(ad, "get_primitive_transpose", "p", around_in_stage(rule_of), of_others),
        Patch(pe, "trace_to_jaxpr", "fun, in_avals, debug_info", functools.partial(_Tracing, block), of_solve),
    )


def _is_users(rule: Any) -> bool:
    """Whether a transpose is, or calls, a function from outside of JAX."""
    if isinstance(rule, functools.partial):
        return any(_is_users(part) for part in (rule.func, *rule.args) if callable(part))
    return (getattr(rule, "__module__", None) or "jax").partition(".")[0] not in ("jax", "jaxlib")


class _Tracing:
    """JAX's function that traces a function to a jaxpr. It is a cache, with methods."""

    def __init__(self, block: Block, original: Any):
        functools.update_wrapper(self, original)
        self._block, self._original = block, original

    def __call__(self, fun: Callable, in_avals: Any, debug_info: Any, *args: Any, **kwargs: Any) -> Any:
        if not STAGES.uses or debug_info.traced_for != _OF_SOLVE:
            return self._original(fun, in_avals, debug_info, *args, **kwargs)

        def backward_rule(*operands: Any, **named: Any) -> Any:
            with self._block():
                return fun(*operands, **named)

        return self._original(backward_rule, in_avals, debug_info, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)
