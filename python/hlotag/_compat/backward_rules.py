# SPDX-License-Identifier: Apache-2.0
"""The places where JAX calls the user's backward rules, and the elements of name stacks that tell what was traced there.

JAX has no public hook for either. A name stack within a jaxpr begins at the jaxpr, so it does not say that the jaxpr is
transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jax._src import ad_checkpoint, custom_derivatives, hijax, source_info_util
from jax._src.interpreters import ad

from hlotag._compat.hooks import Patch, Purpose, around
from hlotag._compat.jaxprs import Marker

# The primitives whose transposes call functions of the user's, and where JAX has these.
_CALLING = (
    ad.custom_lin_p,
    hijax.call_hi_primitive_linearized_p,
    hijax.call_hi_primitive_p,
    custom_derivatives.linear_call_p,
)
_TRANSPOSES = {"ad.fancy_transposes": ad.fancy_transposes, "ad.primitive_transposes": ad.primitive_transposes}

Block = Callable[[], AbstractContextManager[Any]]


@contextmanager
def within(element: Marker) -> Iterator[None]:
    """A block in which the name stack of this thread has the element."""
    stack: Any = (*source_info_util.current_name_stack().stack, element)
    with source_info_util.set_name_stack(source_info_util.NameStack(stack)):
        yield


def backward_rule_patches(block: Block) -> tuple[Any, ...]:
    """Calls the user's backward rules within `block()`.

    They are rules of `custom_vjp`, `linear_call` and hijax primitives.
    """

    def call(rule: Callable, *args: Any, **params: Any) -> Any:
        if type(params.get("_prim")).__module__ == ad_checkpoint.__name__:  # It calls no function of the user's.
            return rule(*args, **params)
        with block():
            return rule(*args, **params)

    purpose = Purpose(
        "tags in the backward rules of `custom_vjp`, `linear_call` and of hijax primitives", "they are tags of derived operations"
    )
    return tuple(
        Patch(rules, each, "cts", around(call, in_stage=True), purpose, rules=name)
        for name, rules in _TRANSPOSES.items()
        for each in _CALLING
        if each in rules
    )
