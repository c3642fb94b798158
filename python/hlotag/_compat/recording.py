# SPDX-License-Identifier: Apache-2.0
"""Patches of what JAX does while it traces: it extends name stacks, jits functions and records equations.

JAX has no public hook for any of these, and no public way to read or set the metadata of a thread.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from jax._src import config, pjit, source_info_util, xla_metadata_lib
from jax._src.core import Primitive, Tracer, typeof
from jax._src.interpreters import partial_eval as pe
from jax._src.interpreters.partial_eval import DynamicJaxprTrace

from hlotag._compat.hooks import Patch, Purpose, SwitchingPatch
from hlotag._compat.tracing import is_user_filename, without_wrapper

# Primitives that lower to a jaxpr or call the user's functions. The equations within theirs are operations of the program.
# By name, because each JAX version has its own. hlotag would not see what derives from a primitive listed by mistake.
_OPEN = frozenset(
    [
        "call",
        "call_exported",
        "checkpoint",
        "closed_call",
        "compute_on",
        "cond",
        "core_call",
        "custom_fusion",
        "custom_jvp_call",
        "custom_lin",
        "custom_linear_solve",
        "custom_partitioning",
        "custom_vjp_call",
        "custom_vmap_call",
        "jit",
        "linear_call",
        "pallas_call",
        "pjit",
        "remat",
        "remat2",
        "remat_opt",
        "run_state",
        "scan",
        "shard_map",
        "while",
        "xla_metadata_call",
        "xla_metadata_value",
    ]
)
# A code object and the offset of an instruction in it.
Place = tuple[CodeType, int]


def is_open(primitive: Primitive) -> bool:
    """Whether equations within an equation of this primitive are operations of the program."""
    return without_wrapper(primitive).name in _OPEN


def avals_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of operands; None for functions and other operands that have none."""
    return tuple(arg.aval if isinstance(arg, Tracer) else _aval_of(arg) for arg in args)


def _aval_of(arg: Any) -> Any:
    try:
        return typeof(arg)
    except TypeError:
        return None


def ambient() -> Any:
    """The block metadata of this thread, as JAX holds it. It is a key of JAX's caches and can be a key of others."""
    return config.xla_metadata_context_manager.get_local()


def metadata_in(ambient: Any) -> Mapping[str, Any]:
    """The entries of `ambient()`."""
    return ambient.val if isinstance(ambient, xla_metadata_lib.XlaMetadata) else {}


def as_ambient(metadata: dict[str, Any]) -> Any:
    """The inverse of `metadata_in`."""
    return xla_metadata_lib.XlaMetadata(metadata) if metadata else None


def scope_path() -> str:
    """The scopes of this thread's name stack."""
    stack = source_info_util.current_name_stack().stack
    return "/".join(element.name for element in stack if isinstance(element, source_info_util.Scope))


def place_of(traceback: Any) -> Place | None:
    """The innermost place of user code in a traceback of JAX. It begins where the enclosing function began to be traced."""
    codes, instructions = traceback.raw_frames() if traceback is not None else ((), ())  # innermost first
    for place in zip(codes, instructions, strict=True):
        if _is_users(place[0].co_filename):
            return place
    return None


_is_users = functools.lru_cache(maxsize=4096)(is_user_filename)


def find_calling_place() -> Place | None:
    """The innermost place of user code on this thread's stack."""
    frame = sys._getframe(1)
    while frame is not None and not _is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def line_of(place: Place) -> tuple[str, int, int]:
    """The file, line and column of a place, as JAX writes them into locations."""
    frame = source_info_util.raw_frame_to_frame(*place)
    return frame.file_name, frame.start_line, frame.start_column


def name_stack_patches(enter: Callable[[Callable, Any], Any], leave: Callable[..., Any]) -> tuple[Patch, ...]:
    """Wraps entering and leaving a scope, `jax.named_scope`: `enter(original, scope)`, `leave(original, scope, *exc_info)`."""
    owner = source_info_util.ExtendNameStackContextManager
    of_exit = "self, exc_type, exc_value, traceback"
    purpose = Purpose("rules by scope", "such rules match nothing")
    return Patch(owner, "__enter__", "self", enter, purpose), Patch(owner, "__exit__", of_exit, leave, purpose)


def jit_patch(call: Callable[..., Any]) -> Patch:
    """Wraps the look-up of a jitted function's jaxpr, which traces the function: `call(original, fun, *args)`."""
    purpose = Purpose("rules by function or source", "rules by function match nothing, those by source miss jitted functions")
    return Patch(pjit, "_infer_params", "fun, ji, args, kwargs", call, purpose)


def primal_patch(ambient_for: Callable[[Any, Primitive, tuple[Any, ...], dict[str, Any]], Any]) -> Patch:
    """Binds each primitive under `ambient_for(ambient, primitive, args, params)`."""

    def wrap(original: Callable, switch: Any) -> Callable:
        @functools.wraps(original)
        def bind(self: Primitive, *args: Any, **params: Any) -> Any:
            if not switch.is_on:
                return original(self, *args, **params)
            outer = ambient()
            within = ambient_for(outer, self, args, params)
            if within is outer:
                return original(self, *args, **params)
            try:
                config.xla_metadata_context_manager.set_local(within)
                return original(self, *args, **params)
            finally:
                config.xla_metadata_context_manager.set_local(outer)

        return bind

    purpose = Purpose("rules by operation", "such rules miss derived operations")
    return SwitchingPatch(Primitive, "bind", "self, *args", wrap, purpose)


def recording_patches(ambient_for: Callable[[Any, Any], Any]) -> tuple[Patch, ...]:
    """Records each equation under `ambient_for(ambient, traceback)`, so that its context has this metadata."""

    def record(original: Callable, *args: Any, **named: Any) -> Any:
        # Both functions have six other parameters before these.
        args, named = args[:6], named | dict(zip(("source_info", "ctx"), args[6:], strict=False))
        source_info, ctx = named.get("source_info") or source_info_util.new_source_info(), named.get("ctx")
        if ctx is not None:  # of an equation that was recorded before
            return original(*args, source_info, ctx)
        outer = ambient()
        within = ambient_for(outer, source_info.traceback)
        if within is outer:
            return original(*args, source_info)
        try:
            config.xla_metadata_context_manager.set_local(within)
            return original(*args, source_info)
        finally:
            config.xla_metadata_context_manager.set_local(outer)

    of_trace = "self, in_tracers, out_avals, primitive, params, effects, source_info, ctx"
    of_recipe = "trace, in_tracers, out_tracers, primitive, params, effects, source_info, ctx"
    purpose = Purpose("rules by source", "such rules match nothing")
    of_recipes = Purpose("rules by source, in the older partial evaluation", "such rules may miss equations that it makes")
    return (
        Patch(DynamicJaxprTrace, "make_eqn", of_trace, record, purpose),
        Patch(pe, "new_eqn_recipe", of_recipe, record, of_recipes),
    )
