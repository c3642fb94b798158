# SPDX-License-Identifier: Apache-2.0
"""Clients: the devices of a platform, and XLA's compiler for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.errors import JaxRuntimeError
from jax.extend import backend

from hlotag import _compat
from hlotag._util.arguments import elements_of
from hlotag.errors import ArgumentError
from hlotag.xla import inputs
from hlotag.xla.executable import LoadedExecutable
from hlotag.xla.options import CompileOptions

_NO_COMPILER = "No compiler factory"


class Client:
    """The devices of one platform, and XLA's compiler for them.

    Other attributes are jaxlib's own: `devices()`, `local_devices()`, `device_count()`, `platform`, `live_arrays()`, ...

    Args:
        client: jaxlib's client, the name of a platform (`"cpu"`, `"gpu"`, `"tpu"`), or None for JAX's default. A name selects
            JAX's own client, whose arrays are JAX arrays; `make_cpu_client` makes a separate client.
    """

    def __init__(self, client: Any = None):
        if isinstance(client, Client):
            client = client.jaxlib_object
        if client is None or isinstance(client, str):
            client = backend.get_backend(client)
        if not isinstance(client, _compat.runtime.JaxlibClient):
            raise ArgumentError(f"client must be a jaxlib client or the name of a platform, not {type(client).__name__}")
        self.jaxlib_object = client
        if client.platform == "cpu":
            _compat.runtime.load_cpu_functions()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.jaxlib_object, name)

    def compile(
        self,
        computation: Any,
        executable_devices: Any = None,
        compile_options: Any = None,
        *,
        options: Any = None,
        pipeline: str | Sequence[str] | None = None,
    ) -> Any:
        """Compiles a program without loading it; arguments and errors are those of `compile_and_load`.

        Returns:
            jaxlib's `Executable`. jaxlib 0.10.2 cannot make one on CPU: the result there is its loaded executable.
        """
        program, devices, used = self._prepare(computation, executable_devices, compile_options or options, pipeline, ())
        try:
            return self.jaxlib_object.compile(program.module, devices, used)
        except JaxRuntimeError as error:
            if _NO_COMPILER not in str(error):
                raise
        return self.jaxlib_object.compile_and_load(program.module, devices, used, [*program.host_callbacks])

    def compile_and_load(
        self,
        computation: Any,
        executable_devices: Any = None,
        compile_options: Any = None,
        host_callbacks: Sequence[Any] = (),
        *,
        options: Any = None,
        pipeline: str | Sequence[str] | None = None,
    ) -> LoadedExecutable:
        """Compiles a program and loads it onto devices.

        Args:
            computation: HLO text; a serialized HloModuleProto; StableHLO text; MLIR bytecode; a portable artifact; an
                `ir.Module`, a `jax.stages.Lowered` or a `jax.export.Exported`; or the result of `hlotag.xla.xla_computation`.
            executable_devices: A device, a list or tuple of devices, or a DeviceList: one device for each partition of each
                replica. None for the devices of the options' device assignment, or else the client's first devices.
            compile_options: `CompileOptions`. None for the replicas and partitions of the program, or a replica on each device if
                the program has neither.
            host_callbacks: jaxlib's objects for callbacks into Python, which some platforms need; a `Lowered` has its own.
            options: Another name of `compile_options`.
            pipeline: Passes to run first on a copy, as in `hlotag.run_passes`.

        Returns:
            The loaded program.

        Raises:
            ParseError: The program cannot be parsed.
            PassError: A pass failed.
            ArgumentError: The devices or options do not match the client, or each other.
            JaxRuntimeError: XLA cannot compile the program.
        """
        given = compile_options or options
        program, devices, used = self._prepare(computation, executable_devices, given, pipeline, host_callbacks)
        callbacks = [*program.host_callbacks, *host_callbacks]
        loaded = LoadedExecutable(self.jaxlib_object.compile_and_load(program.module, devices, used, callbacks))
        loaded.keep_alive(program.keepalive)
        return loaded

    def serialize_executable(self, executable: Any) -> bytes:
        """Serializes an executable, also jaxlib's own, for `deserialize_executable` of the same jaxlib and platform."""
        return executable.serialize()

    def deserialize_executable(
        self,
        serialized: bytes,
        executable_devices: Any = None,
        compile_options: Any = None,
        host_callbacks: Sequence[Any] = (),
        *,
        options: Any = None,
    ) -> LoadedExecutable:
        """Loads a serialized executable. Executables are code: never load bytes that you do not trust.

        Args:
            serialized: The result of `serialize_executable`, in any process, or of jaxlib itself.
            executable_devices: As in `compile_and_load`; None for the devices of the compilation.
            compile_options: `CompileOptions`. None for the options of the compilation, except devices.
            host_callbacks: As in `compile_and_load`.
            options: Another name of `compile_options`.

        Returns:
            The loaded program.

        Raises:
            ArgumentError: The devices do not match the executable, or it calls Python functions and has no `host_callbacks`.
            JaxRuntimeError: The bytes are damaged, or from another jaxlib or for another platform.
        """
        if not host_callbacks and re.search(inputs.PYTHON_CALLBACK.encode(), serialized):
            raise ArgumentError("the executable calls Python functions, which are not in its bytes; pass them as host_callbacks")

        def load(devices: Any, used: Any) -> Any:
            return self.jaxlib_object.deserialize_executable(bytes(serialized), devices, used, [*host_callbacks])

        used: Any = compile_options or options
        if used is None:
            first = _compat.runtime.DeviceList(tuple(self.local_devices()[:1]))
            loaded = load(first, None)
            if executable_devices is None:
                return LoadedExecutable(loaded)
            used = CompileOptions()
            used.num_replicas, used.num_partitions = inputs.counts_in(loaded.hlo_modules()[0].to_string())
        used = CompileOptions.of(used)
        return LoadedExecutable(load(self._place(executable_devices, used), used.jaxlib_object))

    def buffer_from_pyval(
        self, argument: Any, device: Any = None, force_copy: bool = False, host_buffer_semantics: Any = None
    ) -> jax.Array:
        """Puts data on a device without changing its dtype: 64 bits stay 64 bits.

        Args:
            argument: A NumPy array or an object convertible to one; Python numbers get JAX's default dtypes.
            device: A device of the client; None for the first one.
            force_copy: Whether to copy even if memory could be shared with a NumPy array (CPU).
            host_buffer_semantics: How long the data must stay unchanged, as jaxlib's `HostBufferSemantics`; by default, the
                array shares memory if possible.

        Returns:
            An array for executables of this client.
        """
        place = device or self.local_devices()[0]
        if isinstance(argument, bool | int | float | complex):
            argument = np.asarray(argument, jax.dtypes.canonicalize_dtype(type(argument)))
        data = np.asarray(argument)
        data = data.astype(data.dtype.newbyteorder("="), copy=False)  # jaxlib takes the bytes as they are.
        further = {} if host_buffer_semantics is None else {"host_buffer_semantics": host_buffer_semantics}
        return _compat.runtime.put_on_device(
            ShapedArray(data.shape, data.dtype),
            jax.sharding.SingleDeviceSharding(place),
            [data],
            [place],
            force_copy=force_copy,
            enable_x64=True,
            **further,
        )

    # --- Checks: jaxlib ends the process for some devices and counts, and ignores others. ---

    def _prepare(
        self, computation: Any, devices: Any, options: Any, pipeline: str | Sequence[str] | None, host_callbacks: Sequence[Any]
    ) -> tuple[inputs.Program, Any, Any]:
        """The program, the DeviceList and jaxlib's options to compile it for."""
        program = inputs.read(computation, pipeline)
        used = CompileOptions.of(options)
        if options is None:
            used.num_replicas, used.num_partitions = program.num_replicas, program.num_partitions
            if program.num_replicas * program.num_partitions == 1 and devices is not None:
                devices = _list(devices)
                used.num_replicas = max(len(devices), 1)
            build = used.executable_build_options
            build.use_spmd_partitioning = program.num_partitions > 1
            build.use_shardy_partitioner = program.num_partitions > 1 and inputs.uses_shardy(program.module)
        for name in ("num_replicas", "num_partitions"):
            wanted, has = getattr(program, name), getattr(used, name)
            if wanted not in (1, has):
                raise ArgumentError(f"the program is for {name}={wanted}, but options have {has}; set options.{name} = {wanted}")
        placed = self._place(devices, used)
        inputs.check_operations(program, used.num_replicas * used.num_partitions, bool(host_callbacks))
        return program, placed, used.jaxlib_object

    def _place(self, devices: Any, options: CompileOptions) -> Any:
        """The DeviceList to compile for. Sets the device assignment of `options`, unless they ask for a portable executable."""
        counts = replicas, partitions = options.num_replicas, options.num_partitions
        if min(counts) < 1:
            raise ArgumentError(f"num_replicas and num_partitions must be at least 1, not {replicas} and {partitions}")
        if min(counts) > 1:
            raise ArgumentError(
                f"jaxlib runs programs with several replicas or several partitions, not {replicas} replicas of {partitions} "
                "partitions; use one mesh for both, with jax.shard_map"
            )
        assignment = options.device_assignment
        known = {device.id: device for device in self.devices()}
        if devices is None and assignment is not None:
            devices = [known.get(number, number) for number in _compat.runtime.read_assigned_ids(assignment)]
        given = self.local_devices()[: replicas * partitions] if devices is None else _list(devices)
        if len(given) != replicas * partitions or not set(given) <= set(known.values()) or len({*given}) < len(given):
            raise ArgumentError(
                f"{replicas} replicas of {partitions} partitions need {replicas * partitions} different devices of this client, "
                f"not {given}; it has {[*known.values()]}"
            )
        if not options.compile_portable_executable:  # jaxlib refuses an assignment for a portable one.
            ids = np.array([device.id for device in given], np.int32)
            options.device_assignment = _compat.runtime.DeviceAssignment.create(ids.reshape(counts))
        return _compat.runtime.DeviceList(tuple(given))


def make_cpu_client(asynchronous: bool = True, *args: Any, **further: Any) -> Client:
    """Makes a CPU client separate from JAX's, with devices and arrays of its own.

    Args:
        asynchronous: Whether calls may return before executions finish.
        *args: Further arguments of jaxlib's `make_cpu_client`, in its order.
        **further: Other arguments of jaxlib's `make_cpu_client`: `num_devices`, `distributed_client`, `node_id`, `num_nodes`,
            `collectives`.

    Returns:
        The client.
    """
    return Client(_compat.runtime.make_cpu_client(asynchronous, *args, **further))


def _list(devices: Any) -> list[Any]:
    return [devices] if isinstance(devices, jax.Device) else elements_of("devices", devices)
