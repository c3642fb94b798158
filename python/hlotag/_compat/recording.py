# SPDX-License-Identifier: Apache-2.0
"""Patches of what JAX does while it traces: it extends name stacks, jits functions, binds primitives and records equations.

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

from hlotag._compat.hooks import STAGES, Patch, Purpose, around, around_in_stage
from hlotag._compat.tracing import is_user_filename, without_wrapper
from hlotag._core import Switch, in_bind, in_some_bind, recorded, recorded_recipe

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
    """Wraps entering and leaving a scope, `jax.named_scope`: `enter(original, scope)`, `leave(original, scope, *exc_info)`.

    A scope that was entered in a stage may be left after it.
    """
    owner = source_info_util.ExtendNameStackContextManager
    of_exit = "self, exc_type, exc_value, traceback"
    purpose = Purpose("rules by scope", "such rules match nothing")
    return (
        Patch(owner, "__enter__", "self", around_in_stage(enter), purpose),
        Patch(owner, "__exit__", of_exit, around(leave), purpose),
    )


def jit_patch(call: Callable[..., Any]) -> Patch:
    """Wraps the look-up of a jitted function's jaxpr, which traces the function: `call(original, fun, *args)`."""
    purpose = Purpose("rules by function or source", "rules by function match nothing, those by source miss jitted functions")
    return Patch(pjit, "_infer_params", "fun, ji, args, kwargs", around_in_stage(call), purpose)


OPS = Switch()
"""Counts the stages with rules by operation."""
SOURCES = Switch()
"""Counts the stages with rules by source."""


def operation_patches(
    ambient_of_bind: Callable[[Any, Primitive, tuple[Any, ...], dict[str, Any]], Any],
    ambient_of_equation: Callable[[Any, Any], Any],
) -> tuple[Patch, ...]:
    """Records which equations each bind of a primitive makes, and gives both the metadata of rules.

    One bind by user code is one primal equation. The rules of autodiff and batching emit their equations before the bind returns,
    and only the bind tells these from the equations of an equal operation on the same line. A program may hold an unwrapped
    `primitive.bind`, which calls `bind_with_trace`. `make_eqn` makes each equation of a jaxpr trace, and `new_eqn_recipe` each
    one of the older partial evaluation: of rules of `custom_jvp` and `linear_transpose`, which run user code.

    While a stage has rules by operation, a primitive is bound under `ambient_of_bind(ambient, primitive, args, params)`. While a
    stage has rules by source, an equation is recorded under `ambient_of_equation(ambient, traceback)`. The wrappers run for every
    operation, so they are in C++.
    """

    def bind(original: Any) -> Any:
        return in_bind(original, STAGES, _binding(original, ambient_of_bind), OPS, Primitive)

    def bind_held(original: Any) -> Any:
        return in_some_bind(original, STAGES, Primitive)

    def make(original: Any) -> Any:
        return recorded(original, STAGES, _recording(original, ambient_of_equation), SOURCES, DynamicJaxprTrace)

    def make_recipe(original: Any) -> Any:
        return recorded_recipe(original, STAGES, _recording(original, ambient_of_equation), SOURCES)

    of_trace = "self, in_tracers, out_avals, primitive, params, effects, source_info, ctx"
    of_recipe = "trace, in_tracers, out_tracers, primitive, params, effects, source_info, ctx"
    of_binds = Purpose(
        "value tags: which equations one operation makes; rules by operation",
        "value tags cover one equation only; rules by operation miss derived operations",
    )
    of_held = Purpose("the same, for a `bind` taken before the first stage", of_binds.without)
    of_equations = Purpose(
        "value tags: the equations of an operation; rules by source",
        "value tags cover one equation only; rules by source match nothing",
    )
    of_recipes = Purpose("the same, for rules of `custom_jvp`", of_equations.without)
    return (
        Patch(Primitive, "bind", "self, *args", bind, of_binds),
        Patch(Primitive, "bind_with_trace", "self, trace, args, avals, params", bind_held, of_held),
        Patch(DynamicJaxprTrace, "make_eqn", of_trace, make, of_equations),
        Patch(pe, "new_eqn_recipe", of_recipe, make_recipe, of_recipes),
    )


def _binding(original: Callable, ambient_for: Callable[..., Any]) -> Callable:
    def bind(self: Primitive, *args: Any, **params: Any) -> Any:
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


def _recording(original: Callable, ambient_for: Callable[[Any, Any], Any]) -> Callable:
    def record(*args: Any, **named: Any) -> Any:
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

    return record
