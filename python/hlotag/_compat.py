# SPDX-License-Identifier: Apache-2.0
"""Every use of JAX's private API, each with the reason for it.

Nothing else in the package imports `jax._src`. Two JAX lines are supported: 0.10.2 and 0.12.x. Where they differ, the function
here says how; the rest of the package sees one interface. What jaxlib alone must give, without JAX, is in `_host.py`.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hlotag._supported import explained

with explained():
    from jax._src import (
        cache_key,
        compiler,
        config,
        core,
        distributed,
        effects,
        sharding_impls,
        source_info_util,
        stages,
        traceback_util,
        xla_bridge,
        xla_metadata,
        xla_metadata_lib,
    )
    from jax._src.export import _export
    from jax._src.interpreters import ad, batching, mlir
    from jax._src.interpreters import partial_eval as pe
    from jax._src.lax import parallel
    from jax.experimental import xla_metadata as _public
    from jax.sharding import AbstractMesh

# Not by `jax.extend.mlir`: `jax.extend` imports Pallas, which takes longer than all of hlotag.
from jaxlib import _hlo, _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue]  (they have no stubs)
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

# hlotag's frames are not the user's: locations and warnings name the user's line and are the same with the stage on and off, and
# the traceback of an error in the user's program has none of ours.
_PACKAGE = str(Path(__file__).parent)
source_info_util.register_exclusion(_PACKAGE)
traceback_util.register_exclusion(_PACKAGE)

Metadata = Mapping[str, Any]

# 0.10.2 has open and closed jaxprs; in 0.12 a jaxpr carries its own constants and the closed class is gone.
_ClosedJaxpr: type | None = getattr(core, "ClosedJaxpr", None)
JAXPR_TYPES = frozenset({core.Jaxpr, _ClosedJaxpr or core.Jaxpr})


# The primitive of JAX's own value tag, which has no public name.
VALUE_TAG = xla_metadata.xla_metadata_value_p


# --- Equation contexts -------------------------------------------------------------------------------------------------------
# JAX carries `JaxprEqnContext.xla_metadata` through every transformation (autodiff, batching, partial evaluation); there is no
# public way to read it, or to give one equation another.


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


# --- Tracers and the equations behind them -----------------------------------------------------------------------------------
# A value tag is applied after its value was made. What has to be tagged are the equations that the tracer came from, which only
# the tracer knows.


def equation_behind(value: Any) -> Any | None:
    """What is being traced and has `value` as an output.

    Args:
      value: a tracer of any transformation, or a concrete array.

    Returns:
      A mutable equation of a jaxpr trace; a tracer of the older partial evaluation, whose equation is an immutable recipe
      (`is_recipe`, `retag_recipe`); or None, for arguments, constants and concrete arrays.
    """
    if isinstance(value, pe.DynamicJaxprTracer):
        return value.parent
    if isinstance(value, (ad.LinearizeTracer, ad.JVPTracer)):
        # The primal side decides: an operation may hand an operand's tangent through (x + constant). Outside of jit only the
        # tangent side is traced.
        found = equation_behind(value.primal)
        if found is None and (found := equation_behind(value.tangent)) is not None and not _is_made_here(found):
            return None  # An argument, whose tangent the caller computed.
        return found
    if isinstance(value, batching.BatchTracer):
        return equation_behind(value.val)
    if isinstance(value, pe.JaxprTracer) and isinstance(value.recipe, pe.JaxprEqnRecipe):
        return value
    return None


def _is_made_here(equation: Any) -> bool:
    """Whether an equation was made under all the transformations that the calling code is under."""
    stack = equation.recipe.source_info.name_stack if is_recipe(equation) else equation.source_info.name_stack
    here, there = ([x for x in names if isinstance(x, source_info_util.Transform)] for names in (_name_stack(), stack.stack))
    return there[: len(here)] == here


def is_recipe(equation: Any) -> bool:
    """Whether `equation_behind` gave a tracer of the older partial evaluation."""
    return isinstance(equation, pe.JaxprTracer)


def library_call(equation: Any) -> tuple[tuple, tuple] | None:
    """Where in the program, and where in the library that it called, an equation was bound.

    Returns:
      Two tuples of (code, instruction), outermost first: the frames down to the innermost one of user code, and those from there
      to the bind. None if the equation has no such frames.
    """
    traceback = equation.source_info.traceback
    if traceback is None:
        return None
    frames = list(zip(*traceback.raw_frames(), strict=True))[::-1]
    binds = [i for i, (code, _) in enumerate(frames) if code in _BIND_CODES]
    users = [i for i, (code, _) in enumerate(frames) if source_info_util.is_user_filename(code.co_filename)]
    if not binds or not users:
        return None
    # A bind may run user code, which binds in turn: the innermost user frame and the first bind below it.
    innermost = users[-1]
    below = [i for i in binds if i > innermost]
    return (tuple(frames[: innermost + 1]), tuple(frames[innermost + 1 : below[0]])) if below else None


def equations_around(value: Any) -> tuple[Iterator[Any], Iterator[Any]]:
    """What the trace that made the equation behind `value` had made before it, nearest first, and what it has made since.

    Equations that JAX dropped as dead code are left out.
    """
    while not isinstance(value, pe.DynamicJaxprTracer):
        if isinstance(value, (ad.LinearizeTracer, ad.JVPTracer)):
            value = value.primal if equation_behind(value.primal) is not None else value.tangent
        else:
            value = value.val
    equations = value._trace.frame.tracing_eqns

    def live(numbers: range) -> Iterator[Any]:
        for number in numbers:
            if (equation := _dereferenced(equations[number])) is not None:
                yield equation

    # From the end, which is where a tag usually finds it: a search from the start would make tracing quadratic.
    last = len(equations) - 1
    at = next((n for n in range(last, -1, -1) if _dereferenced(equations[n]) is value.parent), None)
    if at is None:
        return iter(()), iter(())
    return live(range(at - 1, -1, -1)), live(range(at + 1, last + 1))


def _dereferenced(equation: Any) -> Any:
    return equation() if isinstance(equation, weakref.ref) else equation


def retag_recipe(tracer: Any, update: Callable[[Any], Any]) -> None:
    """Gives the equation behind a partial-evaluation tracer the context `update(old context)`."""
    recipe = tracer.recipe
    new = recipe._replace(ctx=update(recipe.ctx))
    for ref in recipe.out_tracer_refs:
        if (out := ref()) is not None:
            out.recipe = new


def is_tracing() -> bool:
    """Whether JAX is tracing (or transforming) in this thread, as opposed to running op by op."""
    return not core.trace_state_clean()


# --- Hooks -------------------------------------------------------------------------------------------------------------------


class Patch:
    """Replaces an attribute by a wrapper around what it was, and puts it back.

    Args:
      owner: the object that has the attribute.
      name: the attribute.
      wrap: from the original to its replacement.
    """

    def __init__(self, owner: Any, name: str, wrap: Callable[[Any], Any]):
        self._owner, self._name, self._wrap = owner, name, wrap
        self._inherited = name not in vars(owner)
        self._original: Any = None

    def install(self) -> None:
        self._original = getattr(self._owner, self._name)
        setattr(self._owner, self._name, self._wrap(self._original))

    def remove(self) -> None:
        if self._inherited:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._original)


_BIND_CODES = {core.Primitive.bind.__code__}


def bind_patches(wrap_bind: Callable[[Callable], Callable], wrap_held: Callable[[Callable], Callable]) -> tuple[Patch, ...]:
    """Wraps `Primitive.bind` of every primitive but the value tag, which belongs to the operation before it.

    One bind by user code is one primal equation; whatever rules of autodiff and batching emit for it, they emit before the bind
    returns. There is no other place where the two can be told apart from an equal operation on the same line.

    Args:
      wrap_bind: for `bind`.
      wrap_held: for `bind_with_trace`, which every bind calls: a program may hold a `primitive.bind` from before.
    """

    def wrap(original: Callable) -> Callable:
        bind: Any = functools.wraps(original)(wrap_bind(original))
        _BIND_CODES.add(bind.__code__)
        return bind

    return (
        Patch(VALUE_TAG, "bind", lambda original: original),
        Patch(core.Primitive, "bind", wrap),
        Patch(core.Primitive, "bind_with_trace", wrap_held),
    )


def block_patch(metadata_of: Callable[[dict[str, Any]], dict[str, Any]]) -> Patch:
    """Replaces the metadata of JAX's own blocks by `metadata_of(metadata)`.

    JAX drops keys that are None, and with them the knowledge that an enclosing loop's or call's tag is not meant for the block;
    and it compares values with `==`, so that True, 1 and 1.0 are one.
    """

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def filter_nones(metadata: dict[str, Any]) -> dict[str, Any]:
            return original(metadata_of(metadata))

        return filter_nones

    return Patch(xla_metadata_lib, "filter_nones", wrap)


def equation_patch(on_equation: Callable[[Any], None]) -> Patch:
    """Calls `on_equation(equation)` for every equation that a jaxpr trace makes."""

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def make_eqn(self, *args, **kwargs):
            equation, tracers = original(self, *args, **kwargs)
            on_equation(equation)
            return equation, tracers

        return make_eqn

    return Patch(pe.DynamicJaxprTrace, "make_eqn", wrap)


def value_tag_patch(on_value: Callable[[Any, dict[str, Any]], bool]) -> Patch:
    """Intercepts JAX's own value tag, `set_xla_metadata(x, ...)`, however user code imported it.

    `on_value(value, metadata)` returns whether it took the tag over; if not, JAX's primitive runs as ever.
    """

    def wrap(original: Callable) -> Callable:
        def bind_with_trace(trace, args, avals, params, /):
            with core.set_current_trace(trace):
                taken = on_value(args[0], dict(params["xla_metadata_kvs"]))
            return args[0] if taken else original(trace, args, avals, params)

        return bind_with_trace

    return Patch(VALUE_TAG, "bind_with_trace", wrap)


def lowering_patch(lower: Callable[..., Any]) -> Patch:
    """Routes JAX's lowering of a whole jaxpr to a module through `lower(original, module_name, jaxpr, *args, **kwargs)`.

    What `lower_jaxpr_to_module` returns is what JAX caches, prints, exports and compiles; JAX has no public hook there.
    0.12 passes `out_avals` besides; both versions' further arguments are handed through unread.
    """

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def lower_jaxpr_to_module(module_name, jaxpr, *args, **kwargs):
            return lower(original, module_name, jaxpr, *args, **kwargs)

        return lower_jaxpr_to_module

    return Patch(mlir, "lower_jaxpr_to_module", wrap)


def export_patch(keep: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]) -> Patch:
    """Routes the making of an export's gradient through `keep(make)`, which gives the function to be called instead.

    `Exported.serialize(vjp_order=...)` traces and lowers the gradient when it is called, not when the export is made.
    """

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def export_lowered(*args, **kwargs):
            exported = original(*args, **kwargs)
            make = exported._get_vjp
            return exported if make is None else dataclasses.replace(exported, _get_vjp=keep(make))

        return export_lowered

    return Patch(_export, "_export_lowered", wrap)


def traced_patch(keep: Callable[[Callable], Callable]) -> Patch:
    """Routes the lowering of what is traced while the patch is in through `keep(lower)`, which gives the method to be called.

    `jit(f).trace(...)` may be lowered much later; there is no public hook that knows when it was traced.
    """

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def init(self, *args, **kwargs):
            original(self, *args, **kwargs)
            self.lower = keep(self.lower)

        return init

    return Patch(stages.Traced, "__init__", wrap)


def compile_patch(compile_module: Callable[..., Any]) -> Patch:
    """Routes what XLA compiles through `compile_module(original, backend, module, *args, **kwargs)`.

    `backend_compile_and_load` is what JAX calls when neither of its caches has the executable; what is changed here is not in
    their keys. There is no public hook between the two.
    """

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def backend_compile_and_load(backend, module, *args, **kwargs):
            return compile_module(original, backend, module, *args, **kwargs)

        return backend_compile_and_load

    return Patch(compiler, "backend_compile_and_load", wrap)


def cache_key_patch(suffix_of: Callable[[Any], str]) -> Patch:
    """Appends `suffix_of(module)` to the key of a module in the persistent cache.

    JAX's own hook, `cache_key.custom_hook`, is not told the module.
    """

    def wrap(original: Callable) -> Callable:
        @functools.wraps(original)
        def get(module, *args, **kwargs):
            return original(module, *args, **kwargs) + suffix_of(module)

        return get

    return Patch(cache_key, "get", wrap)


def transformation_platform(backend: Any) -> str:
    """The platform that `jax.extend.xla.register_hlo_module_transformation` takes for `backend`.

    0.10.2 compares with what clients call themselves ("gpu"), 0.12 with the names of plugins ("cuda").
    """
    if jax.__version_info__ < (0, 12):
        return backend.platform
    return next((name for name, client in xla_bridge.backends().items() if client.platform == backend.platform), backend.platform)


# --- Jaxprs ------------------------------------------------------------------------------------------------------------------
# `jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to replace the equations of either version's jaxpr.


def with_equations(jaxpr: Any, rewrite: Callable[[Any], list[Any] | None]) -> Any:
    """`jaxpr` with the equations `rewrite(open jaxpr)` gives, or `jaxpr` itself where that is None."""
    if _ClosedJaxpr is not None and isinstance(jaxpr, _ClosedJaxpr):
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


def marked_stack(stack: Any, text: str) -> Any:
    """The name stack with `text` as its innermost element."""
    elements: Any = (*stack.stack, _MarkElement(text))
    return source_info_util.NameStack(elements)


def marked(equation: Any, stack: Any, context: Any, params: dict[str, Any]) -> Any:
    """A copy of `equation` with this name stack, context and parameters.

    By the constructors, which both versions have alike: `replace` takes twice the time, and there may be thousands.
    """
    source = source_info_util.SourceInfo(equation.source_info.traceback, stack)
    return core.JaxprEqn(equation.invars, equation.outvars, equation.primitive, params, equation.effects, source, context)


# --- MLIR --------------------------------------------------------------------------------------------------------------------


def next_dump_number() -> int:
    """The number of the next dump of a module; `JAX_DUMP_IR_TO` counts with the same counter, to which JAX has no interface."""
    return next(mlir._ir_dump_counter)


def process_of_job() -> int | None:
    """This process's index in a job of several, else None; `jax.process_index()` would start a backend to find out."""
    state = distributed.global_state
    return state.process_id if (state.num_processes or 1) > 1 else None


def read_bytecode(bytecode: bytes) -> Any:
    """A module of its own in a context of its own, with all that JAX and its users put into the contexts of programs.

    JAX's contexts are for one thread, so the module that it caches and a changed copy must not share one.
    """
    with mlir.make_ir_context():
        return ir.Module.parse(bytecode)


def lowered_with(lowered: Any, module: Any) -> Any:
    """A copy of a `Lowered` that compiles and prints `module`; there is no public way to make one."""
    lowering = copy.copy(lowered._lowering)
    if not hasattr(lowering, "_hlo"):
        raise TypeError(f"hlotag cannot replace the module of a {type(lowering).__name__}")
    lowering._hlo, lowering._executable = module, None  # The executable is of the module that it was.
    result = copy.copy(lowered)
    result._lowering = lowering
    return result


@contextmanager
def metadata_in_cache_key() -> Iterator[None]:
    """Within the block, JAX's persistent compilation cache tells programs apart that differ in locations only.

    The option is public (`jax_compilation_cache_include_metadata_in_key`), setting it for one thread and a block is not.
    """
    with config.compilation_cache_include_metadata_in_key(True):
        yield


def compile_module(module: Any, options: Mapping[str, Any]) -> str:
    """Compiles a module that comes without a `Lowered`, by JAX's own function but past its caches; nothing is run.

    Args:
      module: an `ir.Module` with a symbol name.
      options: XLA's, by name.

    Returns:
      The platform it was compiled for.

    Raises:
      RuntimeError: XLA refuses it, or there are not enough devices.
    """

    def count(name: str) -> int:
        attributes = module.operation.attributes
        return ir.IntegerAttr(attributes[name]).value if name in attributes else 1

    backend = xla_bridge.get_backend()
    shape = count("mhlo.num_replicas"), count("mhlo.num_partitions")
    devices = np.array(backend.local_devices()[: math.prod(shape)], dtype=object)
    if len(devices) < math.prod(shape):
        raise RuntimeError(f"it is for {math.prod(shape)} devices, and there are {len(devices)}")
    built = compiler.get_compile_options(*shape, devices.reshape(shape), dict(options), backend=backend)
    compiler.backend_compile_and_load(backend, module, _jax.DeviceList(tuple(devices)), built, [])
    return backend.platform


def hlo_from_text(text: str) -> bytes:
    """A serialized `HloModuleProto` of HLO text; jaxlib has XLA's parser, and JAX no public name for it."""
    return import_module("jaxlib._hlo").hlo_module_from_text(text).as_serialized_hlo_module_proto()


def platform_of(lowered: Any) -> str:
    """What a `Lowered` is for, as JAX calls it; empty where it does not say."""
    platforms = getattr(lowered._lowering, "_platforms", None) or ()
    return str(platforms[0]) if len(platforms) == 1 else ", ".join(map(str, platforms))


def read_artifact(serialized: bytes) -> Any:
    """The module of an export; `Exported.mlir_module()` gives text without locations."""
    with mlir.make_ir_context():
        return _jax.mlir.deserialize_portable_artifact(serialized)


def write_artifact(module: Any, version: str | None) -> bytes:
    """Serializes a module as `jax.export` does, for StableHLO of that version; None: the one that `jax.export` chooses now.

    Shardy's operations are kept if the export had any (the last argument); JAX asks the backend, which need not be here yet.
    """
    target = version or hlo.get_version_from_compatibility_requirement(hlo.StablehloCompatibilityRequirement.WEEK_4)
    with module.context:
        return _jax.mlir.serialize_portable_artifact(module, target, True)


def exported_gradient_through(exported: Any, change: Callable[[Any], Any]) -> Any:
    """The export, with `change` applied to its gradient when that is made; an `Exported` makes it by a private field."""
    make = exported._get_vjp
    return exported if make is None else dataclasses.replace(exported, _get_vjp=lambda primal: change(make(primal)))


def user_frame() -> Any | None:
    """The innermost frame of user code on this thread's stack, with `file_name` and `start_line`; None outside of any."""
    return source_info_util.user_frame(source_info_util.current().traceback)


def jax_value_tag(value: Any, metadata: Metadata) -> Any:
    """JAX's own value tag on every leaf of `value`, with any string as a key.

    `jax.experimental.xla_metadata.set_xla_metadata` takes keys as keyword arguments, so that `x` cannot be one.
    """
    entries = tuple(sorted(metadata.items()))
    return jax.tree.map(lambda leaf: VALUE_TAG.bind(leaf, xla_metadata_kvs=entries), value)


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


# --- XLA's compiler and runtime ----------------------------------------------------------------------------------------------
# `hlotag.xla` is an interface to jaxlib's own objects, and jaxlib has no public names for them. Some are in `xla_client` in one
# version and not in the other; all are in `_jax` and `_hlo` in both.

JaxlibClient, JaxlibCompileOptions, JaxlibLoadedExecutable = _jax.Client, _jax.CompileOptions, _jax.LoadedExecutable
CompiledMemoryStats, Token = _jax.CompiledMemoryStats, _jax.Token
DeviceAssignment, DeviceList = _jax.DeviceAssignment, _jax.DeviceList
HloModule, XlaComputation, Shape = _hlo.HloModule, _hlo.XlaComputation, _hlo.Shape
HostBufferSemantics = _jax.HostBufferSemantics
stablehlo_version = hlo.get_current_version
parse_hlo = _hlo.hlo_module_from_text
hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
make_cpu_client = xla_client.make_cpu_client
# Given the device's client, which need not be JAX's own; `jax.device_put` changes the dtype of 64-bit data.
put_on_device = xla_client.batched_device_put
# An unloaded executable of 0.12 has no cost analysis of its own.
hlo_cost_analysis = _jax.hlo_module_cost_analysis


def jaxlib_name(name: str) -> Any:
    """What jaxlib calls `name`, wherever this version has it; raises AttributeError if it is nowhere."""
    for module in (xla_client, _jax, _hlo):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"jaxlib has no {name!r} for XLA's compiler and runtime")


def ir_context() -> Any:
    """A new MLIR context as JAX makes them for programs, to be entered."""
    return mlir.make_ir_context()


def compile_arguments(lowered: Any) -> dict[str, Any]:
    """What JAX hands to XLA beside the module of a `Lowered`, such as `host_callbacks` and `keepalive`."""
    return dict(lowered._lowering.compile_args)


@dataclasses.dataclass(frozen=True)
class _Replicas:
    """An axis context whose axes are replicas; it is none of JAX's own, so that collectives get replica groups and no channel."""

    mesh: Any


def _replica_index(context: Any, *, axis_name: Any) -> list[Any]:
    """`axis_index` over replicas; JAX's own rule knows partitions only."""
    mesh = context.module_context.axis_context.mesh
    (name,) = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    place = mesh.axis_names.index(name)
    stride, size = (mlir.ir_constant(np.uint32(n)) for n in (math.prod(mesh.axis_sizes[place + 1 :]), mesh.axis_sizes[place]))
    index = hlo.remainder(hlo.divide(hlo.replica_id(), stride), size)
    return [hlo.convert(ir.RankedTensorType.get([], ir.IntegerType.get_signless(32)), index)]


def lower_for_replicas(name: str, jaxpr: Any, axes: Mapping[Any, int], platform: str, donated: list[bool]) -> tuple[Any, Any]:
    """Lowers a jaxpr as `jax.jit` does, but with `axes` bound to replicas, whose mesh has no devices.

    Returns the module, and what must live as long as its executables (callbacks).
    """
    axis_context: Any = (
        _Replicas(AbstractMesh(tuple(axes.values()), tuple(axes))) if axes else sharding_impls.ShardingContext(num_devices=1)
    )
    # 0.12 asks for the results' types besides.
    further = {} if _ClosedJaxpr is not None else {"out_avals": jaxpr.out_avals}
    result = mlir.lower_jaxpr_to_module(
        name,
        jaxpr,
        num_const_args=0,
        in_avals=jaxpr.in_avals,
        ordered_effects=list(effects.ordered_effects.filter_in(jaxpr.effects)),
        platforms=[platform],
        backend=None,
        axis_context=axis_context,
        donated_args=donated,
        lowering_parameters=mlir.LoweringParameters(
            override_lowering_rules=((parallel.axis_index_p, _replica_index),) if axes else None
        ),
        **further,
    )
    return result.module, (result.keepalive, result.host_callbacks)


def module_to_computation(bytecode: bytes, tuple_args: bool) -> Any:
    """The HLO of a module, whose results become one tuple."""
    return _jax.mlir.mlir_module_to_xla_computation(bytecode, use_tuple_args=tuple_args, return_tuple=True)
