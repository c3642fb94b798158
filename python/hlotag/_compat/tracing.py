# SPDX-License-Identifier: Apache-2.0
"""The contexts, tracers and equations of traced operations.

JAX carries `JaxprEqnContext.xla_metadata` through every transformation (autodiff, batching, partial evaluation). There is no
public way to read or replace the metadata of an equation.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from jax._src import (
    ad_checkpoint,
    ad_util,
    config,
    core,
    dispatch,
    pjit,
    source_info_util,
    xla_metadata,
    xla_metadata_lib,
)
from jax._src.interpreters import ad, batching
from jax._src.interpreters import partial_eval as pe
from jax._src.lax import lax, parallel

from hlotag._core import equations_of_bind, is_made_later

Metadata = Mapping[str, Any]

# The primitive of JAX's own value tag, which has no public name.
VALUE_TAG = xla_metadata.xla_metadata_value_p


def ambient_metadata() -> dict[str, Any]:
    """Returns the XLA metadata of the enclosing blocks of `set_xla_metadata`."""
    return dict(xla_metadata_lib.current_xla_metadata() or {})


def swap_ambient_metadata(metadata: Metadata) -> object:
    """Sets this thread's block metadata. Returns the argument of `restore_ambient_metadata`."""
    previous = config.xla_metadata_context_manager.get_local()
    config.xla_metadata_context_manager.set_local(xla_metadata_lib.XlaMetadata(dict(metadata)) if metadata else None)
    return previous


restore_ambient_metadata = config.xla_metadata_context_manager.set_local
"""Undoes `swap_ambient_metadata`. Not in Python: at the start of a Python function, Ctrl-C would be raised before it."""


@contextmanager
def ambient_metadata_is(metadata: Metadata) -> Iterator[None]:
    """A block in which the block metadata of this thread is exactly `metadata`."""
    previous = config.xla_metadata_context_manager.get_local()
    try:
        swap_ambient_metadata(metadata)
        yield
    finally:
        restore_ambient_metadata(previous)


def metadata_of(context: Any) -> Metadata:
    """The XLA metadata of an equation context."""
    return context.xla_metadata or {}


def with_metadata(context: Any, metadata: Metadata) -> Any:
    """Returns `context` with `metadata` as its XLA metadata."""
    # The manager merges the context's own metadata into the ambient one, so it is set after entering; every other part of the
    # context (mesh, compute type, ...) comes from the manager, whatever this JAX version keeps there.
    with context.manager, ambient_metadata_is(metadata):
        return core.JaxprEqnContext()


def is_array(leaf: Any) -> bool:
    """Whether an operation of JAX can have made `leaf`. Some libraries' tracers are not `jax.Array`s."""
    return isinstance(leaf, jax.Array | core.Tracer)


def equations_of(value: Any) -> list[Any]:
    """All equations of current traces that derive from the operation that made `value`.

    User code makes a value by one `bind` of a primitive: an operation, or a jitted function. Under `grad` or `vmap` the bind
    runs the rules of the transformations, which add several equations to several traces: the primal one, residuals, and the
    linear ones that become the backward pass. These are exactly the equations made from the bind's start to its return. A bind
    that runs user code (the function of a `custom_jvp`) contains the binds of that code.

    Each is a mutable equation of a jaxpr trace, or a tracer of the older partial evaluation, whose equation is an immutable
    recipe. Arguments, constants and concrete arrays have none.
    """
    tracer = _jaxpr_tracer(value)
    return [] if tracer is None else equations_of_bind(_equation_of(tracer))


def is_leaked(value: Any) -> bool:
    """Whether an equation of a trace that has ended made `value`. Such a trace has no equations; JAX has no other mark of it."""
    tracer = _jaxpr_tracer(value)
    return isinstance(tracer, pe.DynamicJaxprTracer) and not tracer._trace.frame.tracing_eqns


def _equation_of(tracer: Any) -> Any:
    return tracer if _is_recipe(tracer) else tracer.parent


# Primitives that lower to their operands, which JAX does not list; the last four are shard_map's casts.
_NOTHING = frozenset(
    {
        VALUE_TAG,
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
# Primitives that lower to the equations of their jaxpr.
_CALLS = frozenset({ad_checkpoint.remat_p, pjit.jit_p})


def without_wrapper(primitive: Any) -> Any:
    """The primitive of which JAX 0.12 makes a variant for `jax.vjp`, or `primitive` itself."""
    return getattr(primitive, "prim", primitive) if type(primitive).__name__ == "VJPNode" else primitive


def original_of(value: Any) -> Any:
    """Follows `value` back through operations that lower to nothing (`stop_gradient`)."""
    while (tracer := _jaxpr_tracer(value)) is not None:
        equation = _maker_of(tracer)
        if _is_recipe(tracer):
            result = next(n for n, made in enumerate(equation.out_tracer_refs) if made() is tracer)
        else:
            result = next(n for n, made in enumerate(equation.outvars) if made is tracer.val)
        if (operand := _find_returned_operand(equation.primitive, equation.params, result)) is None:
            break
        value = equation.in_tracers[operand]
    return value


def _maker_of(tracer: Any) -> Any:
    return tracer.recipe if _is_recipe(tracer) else tracer.parent


def _find_returned_operand(primitive: Any, params: dict[str, Any], result: int) -> int | None:
    """The number of the operand that an operation returns as a result; None if the operation computes the result."""
    primitive = without_wrapper(primitive)
    if primitive in _CALLS:
        return _find_returned_argument(open_jaxpr(params["jaxpr"]), result)
    if primitive is lax.integer_pow_p:
        return 0 if params["y"] == 1 else None
    if primitive not in _NOTHING:
        return None
    # A transfer to another memory is an operation.
    return None if primitive is dispatch.device_put_p and _has_memory(params["devices"][result]) else result


def _find_returned_argument(jaxpr: Any, result: int) -> int | None:
    """The number of the argument that a jaxpr returns as a result, perhaps through operations that lower to nothing."""
    at = jaxpr.outvars[result]
    for equation in reversed(jaxpr.eqns):
        if at not in equation.outvars:
            continue
        operand = _find_returned_operand(equation.primitive, equation.params, equation.outvars.index(at))
        if operand is None:
            return None
        at = equation.invars[operand]
    return jaxpr.invars.index(at) if at in jaxpr.invars else None


def _has_memory(device: Any) -> bool:
    return isinstance(device, core.MemorySpace) or getattr(device, "memory_kind", None) is not None


def _jaxpr_tracer(value: Any) -> Any | None:
    """Finds the tracer that stands for `value` in a jaxpr, below all other transformations; None if no equation made it."""
    if isinstance(value, pe.DynamicJaxprTracer):
        return value if value.parent is not None else None
    if isinstance(value, pe.JaxprTracer):
        return value if isinstance(value.recipe, pe.JaxprEqnRecipe) else None
    if isinstance(value, (ad.LinearizeTracer, ad.JVPTracer)):
        # An operation may hand on its operand's tangent (x + constant), or its operand's primal (a `custom_vjp` that changes only
        # the gradient). Outside of jit only the tangent side is traced. An argument's tangent was computed by the caller.
        primal, tangent = _jaxpr_tracer(value.primal), _jaxpr_tracer(value.tangent)
        if tangent is None or not _is_made_here(tangent):
            return primal
        return tangent if primal is None or is_made_later(_equation_of(tangent), _equation_of(primal)) else primal
    if isinstance(value, core.Tracer):
        return _jaxpr_tracer(next(_values_in(value), None))
    return None


def _values_in(tracer: Any) -> Iterator[Any]:
    """The values that a tracer of a transformation (batching, jet, a library's own) holds, its primal value first."""
    for kind in type(tracer).__mro__:
        if kind is core.Tracer:
            break
        for name in kind.__dict__.get("__slots__", ()):
            yield from jax.tree.leaves(getattr(tracer, name, None))
    yield from jax.tree.leaves(list(getattr(tracer, "__dict__", {}).values()))


def _is_made_here(tracer: Any) -> bool:
    """Whether the equation of a jaxpr's tracer was made under all transformations of the calling code."""
    stacks = source_info_util.current_name_stack(), _maker_of(tracer).source_info.name_stack
    here, there = ([x for x in names.stack if isinstance(x, source_info_util.Transform)] for names in stacks)
    return there[: len(here)] == here


def _is_recipe(equation: Any) -> bool:
    """Whether an element of `equations_of` is a tracer of the older partial evaluation."""
    return isinstance(equation, pe.JaxprTracer)


# By file name: user code is outside JAX, the standard library and the libraries that registered themselves.
is_user_filename: Callable[[str], bool] = source_info_util.is_user_filename


def retag(equation: Any, update: Callable[[Any], Any]) -> None:
    """Replaces the context of an equation of `equations_of` by `update(context)`."""
    if not _is_recipe(equation):
        equation.ctx = update(equation.ctx)
        return
    recipe = equation.recipe
    new = recipe._replace(ctx=update(recipe.ctx), params=_retag_if_inlined(recipe.params, update))
    for ref in recipe.out_tracer_refs:
        if (out := ref()) is not None:
            out.recipe = new


def _retag_if_inlined(params: dict[str, Any], update: Callable[[Any], Any]) -> dict[str, Any]:
    """Returns a recipe's parameters. Retags the equations of an inlined `jit`, which replace it and lose its context."""
    inline = params.get("inline")  # True in 0.10.2, later a member of an enumeration.
    if getattr(inline, "name", inline) not in (True, "JAX_EARLY"):
        return params
    jaxpr = params["jaxpr"]
    retagged = [equation.replace(ctx=update(equation.ctx)) for equation in open_jaxpr(jaxpr).eqns]
    return params | {"jaxpr": with_equations(jaxpr, retagged)}


def with_equations(jaxpr: Any, equations: Sequence[Any]) -> Any:
    """A copy of a jaxpr with other equations."""
    inner = open_jaxpr(jaxpr)
    new = inner.replace(eqns=list(equations))
    return new if inner is jaxpr else jaxpr.replace(jaxpr=new)


def open_jaxpr(jaxpr: Any) -> Any:
    """The jaxpr in a closed one. In 0.12, jaxprs have their own constants, and are their own `jaxpr`."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def is_recording() -> bool:
    """Whether operations of this thread are recorded in a jaxpr. Under `vmap` or `jvp` alone, JAX executes them one by one."""
    return _find_recording_trace() is not None


def _find_recording_trace() -> Any | None:
    trace: Any = core.trace_ctx.trace
    while trace is not None and not isinstance(trace, pe.DynamicJaxprTrace):
        trace = getattr(trace, "parent_trace", None)
    return trace


def is_recorded_as_equation() -> bool:
    """Whether a value tag of this thread becomes an equation. Transformations of others (jet) may not know its primitive."""
    trace: Any = core.trace_ctx.trace
    while isinstance(trace, (ad.JVPTrace, ad.LinearizeTrace, batching.BatchTrace, pe.JaxprTrace)):
        trace = trace.parent_trace
    return isinstance(trace, pe.DynamicJaxprTrace)


def name_trace() -> str:
    """Returns the name and place of the function that is being traced, the object that its jaxpr will have; empty if none is."""
    trace = _find_recording_trace()
    return "" if trace is None else trace.frame.debug_info.func_src_info


def traces_in(jaxpr: Any) -> Iterator[str]:
    """The `name_trace` of a jaxpr and of its nested ones."""
    seen, left = set(), [jaxpr]
    while left:
        at = open_jaxpr(left.pop())
        if id(at) not in seen:
            seen.add(id(at))
            yield at.debug_info.func_src_info
            left += core.subjaxprs(at)


def user_frame() -> Any | None:
    """Returns the innermost frame of user code on this thread's stack, with `file_name` and `start_line`, or None."""
    frames = source_info_util.user_frames(source_info_util.current().traceback)
    # Generated constructors of dataclasses are in no file.
    return next((f for f in frames if f.file_name != "<string>" or not f.function_name.endswith("__init__")), None)


def runs_jax() -> bool:
    """Whether any thread has JAX's code on its stack, and so may be tracing. JAX has no count of open traces."""
    stacks = (traceback.walk_stack(frame) for frame in sys._current_frames().values())
    return any(frame.f_globals.get("__name__", "").startswith("jax._src.") for stack in stacks for frame, _ in stack)


class _Entries(tuple):
    """The parameter of a value tag: plain entries, which are all that JAX alone reads, and those with hlotag's own values."""

    metadata: Mapping[str, Any]


def params_of_value_tag(metadata: Metadata) -> dict[str, Any]:
    """The parameters of a value tag with these entries."""
    entries = _Entries(sorted((key, value) for key, value in metadata.items() if isinstance(value, (str, bool, int, float))))
    entries.metadata = dict(metadata)
    return {"xla_metadata_kvs": entries}


def entries_of_value_tag(params: Metadata) -> dict[str, Any]:
    """The inverse of `params_of_value_tag`, for JAX's own value tags too."""
    entries = params["xla_metadata_kvs"]
    return dict(getattr(entries, "metadata", entries))


def jax_value_tag(value: Any, metadata: Metadata) -> Any:
    """Applies JAX's own value tag to all arrays in `value`. Any string can be a key.

    With the stage on, `value_tag_patch` takes part.

    `jax.experimental.xla_metadata.set_xla_metadata` takes keys as keyword arguments, so `x` cannot be a key.
    """
    params = params_of_value_tag(metadata)
    return jax.tree.map(lambda leaf: VALUE_TAG.bind(leaf, **params) if is_array(leaf) else leaf, value)
