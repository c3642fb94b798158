# SPDX-License-Identifier: Apache-2.0
"""Identities: for which operation of the program an equation was made, as an element of its name stack.

JAX carries name stacks through every transformation, and has them in no cache's key. An element that adds no text is in no name
either. There is no public way to read an equation's name stack, or to add to it anything but text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from jax._src import ad_checkpoint, core, custom_derivatives, pjit, shard_map, source_info_util
from jax._src.lax.control_flow import conditionals, loops, solves
from jax._src.source_info_util import NameStack

from hlotag._compat.hooks import Patch
from hlotag._core import Identity, is_identified, keep_identity, set_lowering, take_source_info

# What comes of a bind belongs to it; but the equations of its jaxpr are operations of their own (OPEN), wherever it is called if
# it is shared (CALL).
CLOSED, OPEN, CALL = "", "o", "j"
# The operation itself, not what a rule made for it.
ITSELF = "e"


def _kind_of_jit(params: dict[str, Any]) -> str:
    inline = params.get("inline")  # True in 0.10.2, and since then one of an enumeration.
    return OPEN if getattr(inline, "name", inline) in (True, "JAX_EARLY") else CALL


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
    {pjit.jit_p: _kind_of_jit, **dict.fromkeys(_OPEN, OPEN)},
    CLOSED,
)


def identities_of(names: NameStack) -> list[Identity]:
    """The identities in a name stack, outermost first; none if lowering traced it, for that belongs to what is lowered.

    An identity that a rule kept for what it traced anew is left out behind that of another call: JAX cached the trace.
    """
    found: list[Identity] = []
    for element in names.stack:
        if type(element) is not Identity:
            continue
        if (original := element.kept) is None:
            found.append(element)
        elif not found or found[-1].primitive is not original.primitive:
            found.append(original)
    return [] if found and found[0].is_of_lowering else found


def without_identities(names: NameStack) -> NameStack:
    """`names` as JAX would have written it."""
    return NameStack(tuple(element for element in names.stack if type(element) is not Identity))


def chain_of(identities: Sequence[Identity], primitive: Any, number_of: Callable[[Identity], int]) -> str:
    """The identities of an equation of `primitive`, as marks have them: see `docs/design_notes.md`."""
    texts = [f"{number_of(identity)}{identity.kind}" for identity in identities]
    if identities[-1].primitive is primitive and identities[-1].kind == CLOSED:
        # No rule makes a call of these, and the equations of one are operations of their own.
        texts[-1] += OPEN if primitive in _RULED else ITSELF
    return ".".join(texts)


@contextmanager
def identities_of_lowering() -> Iterator[None]:
    """Within the block this thread traces for lowering: the identities that it gives are not of the program."""
    outer = set_lowering(True)
    try:
        yield
    finally:
        set_lowering(outer)


def identity_patches() -> tuple[Patch, ...]:
    """What the rules of a bind trace anew has the bind's identity; a function that it runs, as `shard_map` does, has its own."""

    def keep(original: Callable) -> Callable:
        def set_name_stack(name_stack: NameStack) -> Any:
            return original(keep_identity(name_stack))

        return set_name_stack

    def free(original: Callable) -> Callable:
        def bind(self: Any, *args: Any, subfuns: tuple[Callable, ...], **params: Any) -> Any:
            if not is_identified():
                subfuns = tuple(_freed(function) for function in subfuns)
            return original(self, *args, subfuns=subfuns, **params)

        return bind

    return Patch(source_info_util, "set_name_stack", keep), Patch(shard_map.ShardMapPrimitive, "bind", free)


def _freed(function: Callable) -> Callable:
    @functools.wraps(function)
    def freed(*args: Any) -> Any:
        names = without_identities(source_info_util.current_name_stack())
        with source_info_util.SetNameStackContextManager(names):
            return function(*args)

    return freed
