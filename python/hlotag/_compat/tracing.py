# SPDX-License-Identifier: Apache-2.0
"""Contexts, tracers and equations: what JAX knows of an operation while it traces.

JAX carries `JaxprEqnContext.xla_metadata` through every transformation (autodiff, batching, partial evaluation); there is no
public way to read it, or to give one equation another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import CodeType
from typing import Any

import jax
from jax._src import (
    ad_checkpoint,
    ad_util,
    api,
    api_util,
    config,
    core,
    dispatch,
    linear_util,
    source_info_util,
    traceback_util,
    tree,
    tree_util,
    util,
    xla_metadata,
    xla_metadata_lib,
)
from jax._src.interpreters import ad, batching
from jax._src.interpreters import partial_eval as pe
from jax._src.lax import lax, parallel
from jax.experimental import xla_metadata as _public

Metadata = Mapping[str, Any]

# The primitive of JAX's own value tag, which has no public name.
VALUE_TAG = xla_metadata.xla_metadata_value_p


def ambient_metadata() -> dict[str, Any]:
    """The XLA metadata of the enclosing blocks, as set by `set_xla_metadata` used as a context manager."""
    return dict(xla_metadata_lib.current_xla_metadata() or {})


def swap_ambient_metadata(metadata: Metadata) -> object:
    """Sets this thread's block metadata; returns what `restore_ambient_metadata` needs to undo it."""
    previous = config.xla_metadata_context_manager.get_local()
    config.xla_metadata_context_manager.set_local(xla_metadata_lib.XlaMetadata(dict(metadata)) if metadata else None)
    return previous


def restore_ambient_metadata(previous: object) -> None:
    """Undoes `swap_ambient_metadata`."""
    config.xla_metadata_context_manager.set_local(previous)


@contextmanager
def ambient_metadata_is(metadata: Metadata) -> Iterator[None]:
    """Within the block, the block metadata is exactly `metadata`."""
    previous = swap_ambient_metadata(metadata)
    try:
        yield
    finally:
        restore_ambient_metadata(previous)


def metadata_of(context: Any) -> Metadata:
    """The XLA metadata of an equation context."""
    return context.xla_metadata or {}


def with_metadata(context: Any, metadata: Metadata) -> Any:
    """The equation context that equals `context` but for its XLA metadata, which is `metadata`."""
    # The manager merges the context's own metadata into the ambient one, so it is set after entering; every other part of the
    # context (mesh, compute type, ...) comes from the manager, whatever this JAX version keeps there.
    with context.manager, ambient_metadata_is(metadata):
        return core.JaxprEqnContext()


def is_transposing() -> bool:
    """Whether a backward pass is being traced, so that user code running now is a backward rule (of a `custom_vjp`)."""
    return any(getattr(x, "name", None) == "transpose" and isinstance(x, source_info_util.Transform) for x in _name_stack())


def _name_stack() -> tuple:
    return source_info_util.current_name_stack().stack


def is_array(leaf: Any) -> bool:
    """Whether an operation of JAX's can have made `leaf`. Libraries have tracers that are no `jax.Array`."""
    return isinstance(leaf, jax.Array | core.Tracer)


def equation_behind(value: Any) -> Any | None:
    """The equation that is being traced and has `value` as an output.

    Args:
      value: a tracer of any transformation, or a concrete array.

    Returns:
      A mutable equation of a jaxpr trace; a tracer of the older partial evaluation, whose equation is an immutable recipe
      (`is_recipe`); or None, for arguments, constants and concrete arrays.
    """
    tracer = _jaxpr_tracer(value)
    return tracer.parent if isinstance(tracer, pe.DynamicJaxprTracer) else tracer


# Operations whose results are their operands to lowering, which makes nothing of them; the last four are shard_map's casts.
_NOTHING = frozenset(
    {
        ad_checkpoint.name_p,
        ad_util.stop_gradient_p,
        dispatch.device_put_p,
        lax.copy_p,
        core.pvary_p,
        core.reduced_vary_cast_p,
        parallel.preduced_p,
        parallel.vary_unreduced_cast_p,
    }
)


def operand_handed_on(value: Any) -> Any | None:
    """The operand that `value` is when it is lowered; None where the operation behind it lowers to something, or there is none.

    JAX has no list of them: their lowering rules return what they are given.
    """
    tracer = _jaxpr_tracer(value)
    if tracer is None:
        return None
    equation = tracer.recipe if is_recipe(tracer) else tracer.parent
    primitive, params = equation.primitive, equation.params
    is_empty_checkpoint = primitive is ad_checkpoint.remat_p and not params["jaxpr"].eqns
    is_first_power = primitive is lax.integer_pow_p and params["y"] == 1
    if primitive not in _NOTHING and not is_empty_checkpoint and not is_first_power:
        return None
    if is_recipe(tracer):
        place = next(n for n, made in enumerate(equation.out_tracer_refs) if made() is tracer)
    else:
        place = next(n for n, made in enumerate(equation.outvars) if made is tracer.val)
    if is_empty_checkpoint:
        operands = dict(zip(params["jaxpr"].invars, equation.in_tracers, strict=True))
        return operands.get(params["jaxpr"].outvars[place])
    # To another memory it is an operation, where the backend has several.
    if primitive is dispatch.device_put_p and _has_memory(params["devices"][place]):
        return None
    return equation.in_tracers[place]


def _has_memory(device: Any) -> bool:
    return isinstance(device, core.MemorySpace) or getattr(device, "memory_kind", None) is not None


def _jaxpr_tracer(value: Any) -> Any | None:
    """The tracer that stands for `value` in a jaxpr, below all other transformations; None if no equation made it."""
    if isinstance(value, pe.DynamicJaxprTracer):
        return value if value.parent is not None else None
    if isinstance(value, pe.JaxprTracer):
        return value if isinstance(value.recipe, pe.JaxprEqnRecipe) else None
    if isinstance(value, (ad.LinearizeTracer, ad.JVPTracer)):
        # The primal side decides: an operation may hand an operand's tangent through (x + constant). Outside of jit only the
        # tangent side is traced.
        found = _jaxpr_tracer(value.primal)
        if found is None and (found := _jaxpr_tracer(value.tangent)) is not None and not _is_made_here(found):
            return None  # An argument, whose tangent the caller computed.
        return found
    if isinstance(value, core.Tracer):
        return _jaxpr_tracer(next(_held_by(value), None))
    return None


def _held_by(tracer: Any) -> Iterator[Any]:
    """What a tracer of some transformation (batching, jet, a library's own) holds: first the value that it stands for."""
    for kind in type(tracer).__mro__:
        if kind is core.Tracer:
            break
        for name in kind.__dict__.get("__slots__", ()):
            yield from jax.tree.leaves(getattr(tracer, name, None))
    yield from jax.tree.leaves(list(getattr(tracer, "__dict__", {}).values()))


def _is_made_here(tracer: Any) -> bool:
    """Whether the equation of a jaxpr's tracer was made under all the transformations that the calling code is under."""
    stack = _source_of(tracer if is_recipe(tracer) else tracer.parent).name_stack.stack
    here, there = ([x for x in names if isinstance(x, source_info_util.Transform)] for names in (_name_stack(), stack))
    return there[: len(here)] == here


def is_recipe(equation: Any) -> bool:
    """Whether `equation_behind` gave a tracer of the older partial evaluation."""
    return isinstance(equation, pe.JaxprTracer)


def _source_of(equation: Any) -> Any:
    return (equation.recipe if is_recipe(equation) else equation).source_info


# Whose code is the user's, by the name of its file: neither JAX's nor the standard library's, nor what registered itself.
is_user_filename: Callable[[str], bool] = source_info_util.is_user_filename


# The files of JAX that run functions and equations that they are given, and whether a call of theirs is one call. `tree_map` is
# not, which calls what it is given for each leaf. There is no public way to tell these from JAX's libraries.
RUNNERS: dict[str, bool] = {
    **dict.fromkeys((str(x.__file__) for x in (ad, api, api_util, batching, core, linear_util, pe, traceback_util, util)), True),
    **dict.fromkeys((str(x.__file__) for x in (tree, tree_util)), False),
}


def place_of(equation: Any) -> tuple[CodeType, int] | None:
    """The user's (code, instruction) that an equation of `equation_behind` is for, if JAX knows it.

    What JAX evaluates for another equation, a backward pass above all, has that equation's.
    """
    traceback = _source_of(equation).traceback
    codes, instructions = traceback.raw_frames() if traceback is not None else ((), ())  # innermost first
    return next((x for x in zip(codes, instructions, strict=True) if is_user_filename(x[0].co_filename)), None)


def traces_of(value: Any) -> list[Any]:
    """The traces that have a part of `value`: the primal one, and those of tangents."""
    return [tracer._trace for tracer in _jaxpr_tracers(value)]


def _jaxpr_tracers(value: Any) -> Iterator[Any]:
    """All tracers of jaxprs that `value` consists of and that an equation made."""
    if isinstance(value, (pe.DynamicJaxprTracer, pe.JaxprTracer)):
        if _jaxpr_tracer(value) is not None:
            yield value
    elif isinstance(value, core.Tracer):
        for held in _held_by(value):
            yield from _jaxpr_tracers(held)


def retag(equation: Any, update: Callable[[Any], Any]) -> None:
    """Gives an equation of `equation_behind` the context `update(old context)`."""
    if not is_recipe(equation):
        equation.ctx = update(equation.ctx)
        return
    recipe = equation.recipe
    new = recipe._replace(ctx=update(recipe.ctx), params=_retagged_if_inlined(recipe.params, update))
    for ref in recipe.out_tracer_refs:
        if (out := ref()) is not None:
            out.recipe = new


def _retagged_if_inlined(params: dict[str, Any], update: Callable[[Any], Any]) -> dict[str, Any]:
    """A recipe's parameters: when JAX evaluates it, the equations of an inlined `jit` take its place, and its context is lost."""
    inline = params.get("inline")  # True in 0.10.2, and since then one of an enumeration.
    if getattr(inline, "name", inline) not in (True, "JAX_EARLY"):
        return params
    jaxpr = params["jaxpr"]
    inner = getattr(jaxpr, "jaxpr", jaxpr)  # In 0.12 jaxprs have their own constants, and are their own `jaxpr`.
    retagged = inner.replace(eqns=[equation.replace(ctx=update(equation.ctx)) for equation in inner.eqns])
    return params | {"jaxpr": retagged if inner is jaxpr else jaxpr.replace(jaxpr=retagged)}


def is_recording() -> bool:
    """Whether operations of this thread go into a jaxpr now; under `vmap` or `jvp` alone they run one by one."""
    return _recording_trace() is not None


def _recording_trace() -> Any | None:
    trace: Any = core.trace_ctx.trace
    while trace is not None and not isinstance(trace, pe.DynamicJaxprTrace):
        trace = getattr(trace, "parent_trace", None)
    return trace


def traced_function() -> str:
    """The function that is being traced into a jaxpr, with its place, as the jaxpr will record it; empty if there is none."""
    trace = _recording_trace()
    return "" if trace is None else trace.frame.debug_info.func_src_info


def functions_in(jaxpr: Any) -> set[str]:
    """The functions that a jaxpr and those within it were traced from, as `traced_function` says them."""
    functions, seen, left = set(), set(), [jaxpr]
    while left:
        at = left.pop()
        at = getattr(at, "jaxpr", at)  # In 0.12 jaxprs have their own constants, and are their own `jaxpr`.
        if id(at) not in seen:
            seen.add(id(at))
            functions.add(at.debug_info.func_src_info)
            left += core.subjaxprs(at)
    return functions


def user_frame() -> Any | None:
    """The innermost frame of user code on this thread's stack, with `file_name` and `start_line`; None outside of any."""
    frames = source_info_util.user_frames(source_info_util.current().traceback)
    # A constructor that Python writes for a dataclass is in no file.
    return next((f for f in frames if f.file_name != "<string>" or not f.function_name.endswith("__init__")), None)


def jax_value_tag(value: Any, metadata: Metadata) -> Any:
    """JAX's own value tag on every leaf of `value` that is an array, with any string as a key.

    `jax.experimental.xla_metadata.set_xla_metadata` takes keys as keyword arguments, so that `x` cannot be one.
    """
    entries = tuple(sorted(metadata.items()))
    return jax.tree.map(lambda leaf: VALUE_TAG.bind(leaf, xla_metadata_kvs=entries) if is_array(leaf) else leaf, value)


def jax_metadata_call(f: Callable, entries: Mapping[str, str], ad_metadata: str | Mapping[str, str]) -> Callable | None:
    """JAX's own call with metadata around `f`, or None where this JAX has none that does it.

    0.12: `jax.experimental.xla_metadata.xla_metadata_call2`, public. 0.10.2: `jax.experimental.scheduling_groups`, which knows no
    `ad_metadata`, and whose primitive takes the keys as parameters beside its own `jaxpr`.
    """
    newer: Any = getattr(_public, "xla_metadata_call2", None)
    if newer is not None:
        return newer(f, entries, ad_metadata=ad_metadata)
    if ad_metadata != "same" or "jaxpr" in entries:
        return None
    older: Any = import_module("jax.experimental.scheduling_groups")
    return older.xla_metadata_call(f, **entries)
