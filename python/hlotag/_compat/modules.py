# SPDX-License-Identifier: Apache-2.0
"""The modules in JAX's `Lowered` and `Exported`: reading, replacing and writing them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jax._src import config
from jax._src.interpreters import mlir
from jax.interpreters.mlir import make_ir_context
from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]  (they have no stubs)
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

if TYPE_CHECKING:
    import jax


def read_bytecode(bytecode: bytes) -> Any:
    """Reads a module in a new context, with the dialects that JAX and its users register for programs.

    Only one thread may use a context, so the cached module and a changed copy must not share one.
    """
    with make_ir_context():
        return ir.Module.parse(bytecode)


def with_module(lowered: jax.stages.Lowered, module: ir.Module) -> Any:
    """Returns a copy of a `Lowered` that compiles and prints `module`. JAX has no public function for this."""
    lowering: Any = copy.copy(lowered._lowering)
    if not hasattr(lowering, "_hlo"):
        raise TypeError(f"hlotag cannot replace the module of a {type(lowering).__name__}")
    lowering._hlo, lowering._executable = module, None  # The executable belongs to the former module.
    result = copy.copy(lowered)
    result._lowering = lowering
    return result


@contextmanager
def without_disk_cache() -> Iterator[None]:
    """A block in which this thread neither reads nor writes JAX's persistent compilation cache.

    JAX decides once per process whether to use the cache. Within the block, cache keys include locations, so JAX finds no entry,
    and the minimum compile time is infinite, so JAX writes no entry. The options are public; setting them per thread is private.
    """
    with config.compilation_cache_include_metadata_in_key(True), config.persistent_cache_min_compile_time_secs(float("inf")):
        yield


def platform_of(lowered: jax.stages.Lowered) -> str:
    """The platform that a `Lowered` is compiled for; empty if unknown.

    JAX compiles what was lowered for another platform (`lowering_platforms`) for its default backend.
    """
    backend = getattr(lowered._lowering, "compile_args", {}).get("backend")
    if getattr(backend, "platform", None) == "cpu":
        return "cpu"
    platforms = getattr(lowered._lowering, "_platforms", None) or ()
    return str(platforms[0]) if len(platforms) == 1 else ", ".join(map(str, platforms))


def read_artifact(serialized: bytes) -> Any:
    """Reads the module of an export. `Exported.mlir_module()` returns text without locations."""
    with make_ir_context():
        return _jax.mlir.deserialize_portable_artifact(serialized)


def write_artifact(module: ir.Module, version: str | None) -> bytes:
    """Serializes a module as `jax.export` does, for a version of StableHLO; None for the default of `jax.export`.

    Keeps Shardy's operations if the module has any (the last argument). JAX would ask the backend, which may not be initialized.
    """
    target = version or hlo.get_version_from_compatibility_requirement(hlo.StablehloCompatibilityRequirement.WEEK_4)
    with module.context:
        return _jax.mlir.serialize_portable_artifact(module, target, True)


def symbols_of(exported: jax.export.Exported) -> tuple[str, ...]:
    """The names of the symbolic dimensions of an export's arguments, in order. No public function lists them."""
    from jax.export import is_symbolic_dim

    dimensions: list[Any] = [size for aval in exported.in_avals for size in aval.shape if is_symbolic_dim(size)]
    return tuple(dict.fromkeys(name for size in dimensions for name in sorted(size._get_vars())))


def with_sizes(exported: jax.export.Exported, sizes: Mapping[str, int]) -> bytes:
    """Writes the module of an export with symbolic dimensions of these sizes, as bytecode.

    JAX refines the shapes of such a module when it compiles a call of the export. Raises ValueError if the sizes do not meet the
    constraints of the export, or it is for other platforms.
    """
    import jax
    from jax.export import is_symbolic_dim

    def struct(aval: Any) -> jax.ShapeDtypeStruct:
        shape = [size._evaluate(env) if is_symbolic_dim(size) else size for size in aval.shape]
        return jax.ShapeDtypeStruct(shape, aval.dtype)

    env: Any = dict(sizes)
    args, kwargs = jax.tree.unflatten(exported.in_tree, map(struct, exported.in_avals))
    lowered: Any = jax.jit(exported.call).lower(*args, **kwargs).compiler_ir()
    refined = mlir.refine_polymorphic_shapes(lowered)
    with refined.context:
        refined.operation.attributes["sym_name"] = ir.StringAttr.get(f"jit_{exported.fun_name}")
        refined.operation.walk(_leave_call)
    return mlir.module_to_bytecode(refined)


def _leave_call(operation: Any) -> Any:
    """Gives an operation that was inlined its location in the export, without that of the call."""
    while isinstance(operation.location, ir.CallSiteLoc):
        operation.location = operation.location.callee
    return ir.WalkResult.ADVANCE


def change_exported_gradient(exported: jax.export.Exported, change: Callable[[Any], Any]) -> Any:
    """Returns the export with `change` applied to its gradient, which an `Exported` makes by a private field."""
    make = exported._get_vjp
    return exported if make is None else dataclasses.replace(exported, _get_vjp=lambda primal: change(make(primal)))
