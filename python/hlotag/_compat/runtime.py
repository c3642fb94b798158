# SPDX-License-Identifier: Apache-2.0
"""XLA's compiler and runtime in jaxlib.

`hlotag.xla` is an interface to jaxlib's own objects, which have no public names. `xla_client` has some of them in some versions;
`_jax` and `_hlo` have all of them in every supported version.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from jax._src import compiler, core, distributed, effects, sharding_impls, xla_bridge
from jax._src.interpreters import mlir
from jax.interpreters.mlir import LoweringParameters, ir_constant, make_ir_context
from jax.lax import axis_index_p
from jax.sharding import AbstractMesh
from jaxlib import _hlo, _jax, lapack, xla_client  # pyright: ignore[reportAttributeAccessIssue]  (they have no stubs)
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

if TYPE_CHECKING:
    import jax

JaxlibClient, JaxlibCompileOptions = _jax.Client, _jax.CompileOptions
JaxlibLoadedExecutable = _jax.LoadedExecutable
DeviceAssignment, DeviceList = _jax.DeviceAssignment, _jax.DeviceList
HloModule, XlaComputation = _hlo.HloModule, _hlo.XlaComputation
hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
make_cpu_client = xla_client.make_cpu_client
ir_context = make_ir_context
# Takes any client, not only JAX's own. `jax.device_put` would change the dtype of 64-bit data.
put_on_device = xla_client.batched_device_put


def jaxlib_name(name: str) -> Any:
    """Returns the object `name` from the jaxlib module that has it in this version. Raises AttributeError if none has."""
    for module in (xla_client, _jax, _hlo):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"jaxlib has no {name!r} for XLA's compiler and runtime")


@functools.cache
def load_cpu_functions() -> None:
    """Loads the C functions of jaxlib that programs for CPU call: LAPACK's, and those of sparse matrices.

    JAX loads them when it lowers such a program. A program that was lowered elsewhere would call null.
    """
    import jax.experimental.sparse  # noqa: F401  (registers its functions)

    lapack._lapack.initialize()  # pyright: ignore[reportPrivateImportUsage]


def read_assigned_ids(assignment: Any) -> list[int]:
    """Returns the ids of a DeviceAssignment's devices, by replica. Only the text of the assignment has them."""
    by_computation = re.findall(r"Computation\d+\{([^}]*)\}", str(assignment))
    columns = [[int(number) for number in re.findall(r"\d+", ids)] for ids in by_computation]
    return [number for replica in zip(*columns, strict=True) for number in replica]


def compile_arguments(lowered: jax.stages.Lowered) -> dict[str, Any]:
    """Returns the arguments of the compilation of a `Lowered` beside its module: `host_callbacks`, `keepalive`, ..."""
    return dict(lowered._lowering.compile_args)


@dataclasses.dataclass(frozen=True)
class _Replicas:
    """An axis context whose axes are replicas. JAX does not know the class, so collectives get replica groups and no channel."""

    mesh: Any


def _replica_index(context: Any, *, axis_name: Any) -> list[Any]:
    """`axis_index` over replicas. JAX's own rule supports partitions only."""
    mesh = context.module_context.axis_context.mesh
    (name,) = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    place = mesh.axis_names.index(name)
    stride, size = (ir_constant(np.uint32(n)) for n in (math.prod(mesh.axis_sizes[place + 1 :]), mesh.axis_sizes[place]))
    index = hlo.remainder(hlo.divide(hlo.replica_id(), stride), size)
    return [hlo.convert(ir.RankedTensorType.get([], ir.IntegerType.get_signless(32)), index)]


def lower_for_replicas(name: str, jaxpr: Any, axes: Mapping[Any, int], platform: str, donated: list[bool]) -> tuple[Any, Any]:
    """Lowers a jaxpr as `jax.jit` does, but with `axes` bound to replicas, whose mesh has no devices.

    Returns the module, and the callbacks, which must live as long as its executables.
    """
    axis_context: Any = (
        _Replicas(AbstractMesh(tuple(axes.values()), tuple(axes))) if axes else sharding_impls.ShardingContext(num_devices=1)
    )
    # Versions without a class for closed jaxprs also take the results' types.
    further = {"out_avals": jaxpr.out_avals} if getattr(core, "ClosedJaxpr", core.Jaxpr) is core.Jaxpr else {}
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
        lowering_parameters=LoweringParameters(override_lowering_rules=((axis_index_p, _replica_index),) if axes else None),
        **further,
    )
    return result.module, (result.keepalive, result.host_callbacks)


def options_digest(*args: Any, **kwargs: Any) -> bytes:
    """A digest of the compiler options among the arguments of JAX's `backend_compile_and_load`."""
    found = [given.SerializeAsString() for given in _options_in(args, kwargs)]
    return hashlib.blake2b(b"".join(found), digest_size=16).digest()


def _options_in(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    return [given for given in (*args, *kwargs.values()) if isinstance(given, JaxlibCompileOptions)]


@contextmanager
def _attributes_set(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """A block in which attributes of objects have other values."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for change in changes:
        setattr(*change)
    try:
        yield
    finally:
        for former in before:
            setattr(*former)


def options_added(added: Mapping[str, Any], *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
    """A block in which the compiler options among the arguments of JAX's `backend_compile_and_load` have more flags of XLA."""
    name = "env_option_overrides"
    return _attributes_set([(given, name, [*getattr(given, name), *added.items()]) for given in _options_in(args, kwargs)])


def options_for_one_value(*args: Any, **kwargs: Any) -> AbstractContextManager[None]:
    """A block in which the compiler options among these arguments are for a program with one argument and one result.

    JAX's options say of each argument and result whether XLA may choose its sharding. With those of another program, TPU's
    compiler ends the process. All versions.
    """
    names = "allow_spmd_sharding_propagation_to_parameters", "allow_spmd_sharding_propagation_to_output"
    found = [given.executable_build_options for given in _options_in(args, kwargs)]
    return _attributes_set([(options, name, [False]) for options in found for name in names])


def module_to_computation(bytecode: bytes, tuple_args: bool) -> Any:
    """Converts a module to HLO. The results become one tuple."""
    return _jax.mlir.mlir_module_to_xla_computation(bytecode, use_tuple_args=tuple_args, return_tuple=True)


def hlo_module_name(name: str) -> str:
    """Returns the name that XLA gives the HLO of a module called `name`: it replaces some characters."""
    with make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func public @main() { return }")
        module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
    return module_to_computation(buffer.getvalue(), tuple_args=False).name()


def process_of_job() -> int | None:
    """Returns this process's index in a multi-process job, else None. `jax.process_index()` would start a backend."""
    state = distributed.global_state
    return state.process_id if (state.num_processes or 1) > 1 else None


def _shape(module: ir.Module) -> tuple[int, int]:
    """The numbers of replicas and partitions."""
    attributes = module.operation.attributes

    def count(name: str) -> int:
        return ir.IntegerAttr(attributes[name]).value if name in attributes else 1

    return count("mhlo.num_replicas"), count("mhlo.num_partitions")


def compile_module(module: ir.Module, options: Mapping[str, Any]) -> Any:
    """Compiles a module with a symbol name without a `Lowered`, by JAX's own function but without its caches. Runs nothing.

    Returns XLA's executable for JAX's default backend. Raises RuntimeError if XLA cannot compile the module, or there are too few
    devices.
    """
    backend = xla_bridge.get_backend()
    shape = _shape(module)
    devices = np.array(backend.local_devices()[: math.prod(shape)], dtype=object)
    if len(devices) < math.prod(shape):
        raise RuntimeError(
            f"the module needs {math.prod(shape)} devices, but there are {len(devices)}; on CPU, set "
            f"XLA_FLAGS=--xla_force_host_platform_device_count={math.prod(shape)}"
        )
    built = compiler.get_compile_options(*shape, devices.reshape(shape), dict(options), backend=backend)
    return compiler.backend_compile_and_load(backend, module, _jax.DeviceList(tuple(devices)), built, [])


def hlo_from_text(text: str) -> bytes:
    """Parses HLO text into a serialized `HloModuleProto`. JAX has no public name for XLA's parser."""
    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
