# SPDX-License-Identifier: Apache-2.0
"""Clients: the devices of a platform, and XLA's compiler for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend import backend

from hlotag import _compat
from hlotag._util.arguments import check_flag, elements_of, show
from hlotag.xla import inputs
from hlotag.xla.errors import ArgumentError, UnsupportedError, XlaError, explain_refusals
from hlotag.xla.executable import Executable, Loaded, origin_of
from hlotag.xla.options import CompileOptions
from hlotag.xla.serialized import remove_stamp

_NO_COMPILER = "No compiler factory"
_LOOK = "Look at the program: hlotag.xla_computation(...).as_hlo_text(), or as_text()"


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
        self._raw = client
        if client.platform == "cpu":
            _compat.runtime.load_cpu_functions()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._raw, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Client) and other._raw is self._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    def __repr__(self) -> str:
        return f"<Client of {self._raw.platform}, {self._raw.device_count()} devices>"

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own client."""
        return self._raw

    def compile(
        self,
        computation: Any,
        executable_devices: Any = None,
        compile_options: Any = None,
        *,
        options: Any = None,
        pipeline: str | Sequence[str] | None = None,
    ) -> Executable:
        """Compiles a program without loading it; arguments and errors are those of `compile_and_load`.

        jaxlib 0.10.2 cannot do so on CPU: the result there is a loaded program without `execute`.
        """
        program, devices, used = self._prepare(computation, executable_devices, compile_options, options, pipeline)
        try:
            with explain_refusals("compile the program", _LOOK):
                raw = self._raw.compile(program.module, devices, used.jaxlib_object)
        except XlaError as error:
            if _NO_COMPILER not in str(error):
                raise
            raw = self._load(program, devices, used, ())
        executable = Executable(raw, self._raw)
        executable.check_result_layout(used.executable_build_options.result_layout)
        return executable

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
                `ir.Module`, a `jax.stages.Lowered` or a `jax.export.Exported`; or the result of `hlotag.xla_computation`.
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
            UnsupportedError: The options have several replicas and several partitions.
            XlaError: XLA cannot compile the program.
        """
        callbacks = elements_of("host_callbacks", host_callbacks)
        program, devices, used = self._prepare(computation, executable_devices, compile_options, options, pipeline)
        loaded = LoadedExecutable(self._load(program, devices, used, callbacks))
        loaded.check_result_layout(used.executable_build_options.result_layout)
        loaded.keep_alive(program.keepalive)
        return loaded

    def serialize_executable(self, executable: Any) -> bytes:
        """Serializes an executable, also jaxlib's own loaded one, for `deserialize_executable`.

        Raises:
            UnsupportedError: This jaxlib cannot serialize this program.
        """
        return (executable if isinstance(executable, Executable) else LoadedExecutable(executable)).serialize()

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
            executable_devices: As in `compile_and_load`; as many devices as in the compilation.
            compile_options: `CompileOptions`. None for the options of the compilation, except devices.
            host_callbacks: As in `compile_and_load`.
            options: Another name of `compile_options`.

        Returns:
            The loaded program.

        Raises:
            XlaError: The bytes are damaged, or from another jaxlib or for another platform.
            ArgumentError: The devices do not match the executable.
        """
        if not isinstance(serialized, bytes | bytearray | memoryview):
            raise ArgumentError(f"serialized must be bytes, not {type(serialized).__name__}")
        executable, origin = remove_stamp(bytes(serialized))
        callbacks = elements_of("host_callbacks", host_callbacks)
        if not callbacks and re.search(inputs.PYTHON_CALLBACK.encode(), executable):
            raise XlaError("the executable calls Python functions, which are not in its bytes; pass them as host_callbacks")
        used = CompileOptions.of(_one_of(compile_options, options))
        if origin is not None:
            used.num_replicas, used.num_partitions = origin.pop("counts")
            if origin != (here := origin_of(self._raw)):
                raise XlaError(
                    f"the executable was compiled by jaxlib {origin['jaxlib']} for {origin['platform']}, but this is jaxlib "
                    f"{here['jaxlib']} on {here['platform']}; compile the program here, or save it in a portable format: "
                    "jax.export.export(...).serialize()"
                )
        used.compile_portable_executable = False
        advice = "Pass all bytes that serialize_executable of this jaxlib returned"

        def load(places: Any) -> Any:
            devices = self._place(places, used)
            with explain_refusals(f"load these {len(serialized)} bytes as an executable", advice):
                return self._raw.deserialize_executable(executable, devices, used.jaxlib_object, callbacks)

        try:
            loaded = load(executable_devices)
        except ArgumentError:
            if origin is None:  # Bytes that are no executable are the error, not the devices.
                load(None)
            raise
        return LoadedExecutable(loaded, serialized=bytes(serialized))

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

        Raises:
            ArgumentError: The device belongs to another client, or the data cannot be an array.
        """
        (place,) = self._own([device] if device is not None else self.local_devices()[:1])
        if isinstance(argument, np.ma.MaskedArray):
            raise ArgumentError("a masked array would lose its mask; pass argument.filled(value), or argument.data")
        if isinstance(argument, bool | int | float | complex):
            argument = np.asarray(argument, jax.dtypes.canonicalize_dtype(type(argument)))
        data = np.asarray(argument)
        if data.dtype.hasobject:
            raise ArgumentError(f"a {type(argument).__name__} of dtype {data.dtype} cannot be put on a device; pass numbers")
        if not data.dtype.isnative:
            data = data.astype(data.dtype.newbyteorder("="))
        sharding = jax.sharding.SingleDeviceSharding(place)
        further = {} if host_buffer_semantics is None else {"host_buffer_semantics": host_buffer_semantics}
        with explain_refusals(f"put an array of dtype {data.dtype} on a device", "Pass numbers"):
            return _compat.runtime.put_on_device(
                ShapedArray(data.shape, data.dtype), sharding, [data], [place], force_copy=force_copy, enable_x64=True, **further
            )

    # --- Checks: jaxlib aborts on some invalid arguments, and ignores others. ---

    def _prepare(
        self, computation: Any, devices: Any, compile_options: Any, options: Any, pipeline: str | Sequence[str] | None
    ) -> tuple[inputs.Program, Any, CompileOptions]:
        program = inputs.read(computation, pipeline)
        given = _one_of(compile_options, options)
        used = CompileOptions.of(given)
        if given is None:
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
        # A portable executable has the same code, but no devices, and jaxlib does not run it.
        used.compile_portable_executable = False
        placed = self._place(devices, used)
        inputs.check_replica_groups(program.module, used.num_replicas * used.num_partitions)
        return program, placed, used

    def _load(self, program: inputs.Program, devices: Any, used: CompileOptions, host_callbacks: Sequence[Any]) -> Any:
        callbacks = [*program.host_callbacks, *host_callbacks]
        if program.calls_python and not callbacks:
            raise ArgumentError(
                "the program calls Python functions, which are not in its text; pass the jax.stages.Lowered or the result of "
                "xla_computation, or pass the functions as host_callbacks"
            )
        with explain_refusals("compile the program", _LOOK):
            return self._raw.compile_and_load(program.module, devices, used.jaxlib_object, callbacks)

    def _place(self, devices: Any, options: CompileOptions) -> Any:
        """The DeviceList to compile for. Sets the device assignment of `options`."""
        counts = replicas, partitions = options.num_replicas, options.num_partitions
        if min(counts) < 1:
            raise ArgumentError(f"num_replicas and num_partitions must be at least 1, not {replicas} and {partitions}")
        if min(counts) > 1:
            raise UnsupportedError(
                f"jaxlib runs programs with several replicas or several partitions, not {replicas} replicas of {partitions} "
                "partitions; use one mesh for both, with jax.shard_map"
            )
        needed, assignment = replicas * partitions, options.device_assignment
        assigned = _compat.runtime.read_assigned_ids(assignment) if assignment is not None else []
        if devices is None:
            by_id = {device.id: device for device in self._raw.devices()}
            devices = [by_id.get(number, number) for number in assigned] or self.local_devices()[:needed]
        given = self._own(_list(devices))
        if not len(given) == len(set(given)) == needed:
            raise ArgumentError(
                f"{replicas} replicas of {partitions} partitions need {needed} different devices, not {given}; pass {needed}, or "
                "set num_replicas and num_partitions"
            )
        ids = [device.id for device in given]
        if assignment is not None and (assigned != ids or (assignment.replica_count(), assignment.computation_count()) != counts):
            raise ArgumentError(f"options.device_assignment is {assignment}, but the devices are {given}; pass only one of them")
        options.device_assignment = _compat.runtime.DeviceAssignment.create(np.array(ids, np.int32).reshape(counts))
        return _compat.runtime.DeviceList(tuple(given))

    def _own(self, devices: list[Any]) -> list[Any]:
        known = self._raw.devices()
        for device in devices:
            if device not in known:
                kind = "belongs to another client" if isinstance(device, jax.Device) else "is not a device"
                raise ArgumentError(f"{device!r} {kind}; this client has {known}")
        return devices


class LoadedExecutable(Loaded):
    """A compiled program on its devices, also of jaxlib's own: `LoadedExecutable(compiled.runtime_executable())`."""

    @property
    def client(self) -> Client:
        """The `Client` of its devices."""
        return Client(self._client)


def make_cpu_client(asynchronous: bool = True, *args: Any, num_devices: int | None = None, **further: Any) -> Client:
    """Makes a CPU client separate from JAX's, with devices and arrays of its own.

    Args:
        asynchronous: Whether calls may return before executions finish.
        *args: Further arguments of jaxlib's `make_cpu_client`, in its order.
        num_devices: The number of CPU devices; None for the number in `XLA_FLAGS`, or one.
        **further: Other arguments of jaxlib's `make_cpu_client`: `distributed_client`, `node_id`, `num_nodes`, `collectives`.

    Returns:
        The client.

    Raises:
        ArgumentError: `asynchronous` is not a bool, or `num_devices` is not a positive int.
    """
    check_flag("asynchronous", asynchronous)
    if num_devices is not None and (not isinstance(num_devices, int) or num_devices < 1):
        raise ArgumentError(f"num_devices must be 1 or more, not {show(num_devices)}")
    if num_devices is not None:
        further["num_devices"] = num_devices
    return Client(_compat.runtime.make_cpu_client(asynchronous, *args, **further))


def _list(devices: Any) -> list[Any]:
    if isinstance(devices, CompileOptions):
        raise ArgumentError("expected devices before the options; write options=...")
    return [devices] if isinstance(devices, jax.Device) else elements_of("devices", devices)


def _one_of(compile_options: Any, options: Any) -> Any:
    if compile_options is not None and options is not None:
        raise ArgumentError("compile_options and options are two names of one parameter; pass one of them")
    return options if compile_options is None else compile_options
