# SPDX-License-Identifier: Apache-2.0
"""Which operation of the program was an equation made for? Identities, elements of name stacks, tell.

JAX carries name stacks through every transformation, and no cache key contains them. An identity adds no text, so it does not
change names. There is no public way to read an equation's name stack, or to add an element other than text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jax._src import ad_checkpoint, api, core, custom_derivatives, pjit, shard_map, source_info_util
from jax._src.lax.control_flow import conditionals, loops, solves
from jax._src.shard_map import ShardMapPrimitive
from jax._src.source_info_util import NameStack

from hlotag._compat.hooks import Patch
from hlotag._core import is_identified, keep_identity, set_lowering, take_source_info, without_identities

# By default the equations that a bind makes belong to it (closed). OPEN: the equations of its jaxpr are operations of their own.
# CALL: the same, in a function that other operations may call too. RULED: the same, but not the equations of its custom rules.
OPEN, CALL, RULED = "o", "j", "r"


# Values of `inline=` for which `jit` inlines a function while tracing: True in 0.10.2, later a member of an enumeration.
_INLINED = api.Inline.JAX_EARLY if hasattr(api, "Inline") else True
_OPEN = (
    ad_checkpoint.remat_p,
    conditionals.cond_p,
    core.call_p,
    core.closed_call_p,
    loops.scan_p,
    loops.while_p,
    shard_map.shard_map_p,
    solves.linear_solve_p,
)
_RULED = (custom_derivatives.custom_jvp_call_p, custom_derivatives.custom_vjp_call_p)
take_source_info(
    source_info_util._source_info_context,
    NameStack,
    source_info_util.SourceInfo,
    {pjit.jit_p: (CALL, "inline", {_INLINED: OPEN}), **dict.fromkeys(_OPEN, OPEN), **dict.fromkeys(_RULED, RULED)},
)


@contextmanager
def identities_of_lowering() -> Iterator[None]:
    """A block in which this thread traces for lowering. New identities there do not belong to the program."""
    outer = set_lowering(True)
    try:
        yield
    finally:
        set_lowering(outer)


def identity_patches() -> tuple[Patch, ...]:
    """Patches for identities: traces in a bind's rules keep its identity, and the function of a `shard_map` gets new ones."""

    def set_name_stack(original: Callable, name_stack: NameStack) -> Any:
        return original(keep_identity(name_stack))

    def bind(original: Callable, self: Any, *args: Any, subfuns: tuple[Callable, ...], **params: Any) -> Any:
        if not is_identified():
            subfuns = tuple(_freed(function) for function in subfuns)
        return original(self, *args, subfuns=subfuns, **params)

    return (
        Patch(source_info_util, "set_name_stack", "name_stack", set_name_stack),
        Patch(ShardMapPrimitive, "bind", "self, *args", bind),
    )


def _freed(function: Callable) -> Callable:
    @functools.wraps(function)
    def freed(*args: Any) -> Any:
        names = without_identities(source_info_util.current_name_stack().stack)
        with source_info_util.SetNameStackContextManager(NameStack(names)):
            return function(*args)

    return freed
