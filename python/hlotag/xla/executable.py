# SPDX-License-Identifier: Apache-2.0
"""Compiled programs: `Executable` can be examined and serialized, `Loaded` also executed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
import jaxlib.version
from jax.core import Tracer
from jax.errors import JaxRuntimeError

from hlotag import _compat
from hlotag.xla.errors import ArgumentError, UnsupportedError, reason_of
from hlotag.xla.inputs import leaves
from hlotag.xla.results import ExecuteResults
from hlotag.xla.serialized import stamp


class Executable:
    """A compiled program that is not loaded onto devices.

    Other attributes are jaxlib's own:

    - `hlo_modules()`: the optimized programs, one per partition; `to_string()` gives HLO text with all frontend attributes.
    - `get_parameter_layouts()`, `get_output_layouts()`: the layout of each parameter or result.
    - `get_parameter_shardings()`, `get_output_shardings()`: the sharding of each parameter or result; None for one partition.
    - `get_output_memory_kinds()`: the memory kind of each result, one list per program.
    - `get_compiled_memory_stats()`: the memory that the program needs, as `CompiledMemoryStats`.

    Args:
        jaxlib_object: jaxlib's own executable.
        client: jaxlib's client that compiled it.
    """

    _JAXLIB_CLASS: type = _compat.runtime.JaxlibExecutable

    def __init__(self, jaxlib_object: Any, client: Any):
        self._raw, self._client = jaxlib_object, client

    def __getattr__(self, name: str) -> Any:
        # `_raw` may be jaxlib's loaded executable. Its `execute` checks nothing, so only known names are exposed.
        if name.startswith("_") or not hasattr(self._JAXLIB_CLASS, name):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return getattr(self._raw, name)

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own executable."""
        return self._raw

    def cost_analysis(self) -> dict[str, Any]:
        """XLA's estimates by name: `flops`, `bytes accessed` and more."""
        try:
            return self._raw.cost_analysis()
        except JaxRuntimeError as error:
            if "not implemented" not in str(error):
                raise
        # Some versions of jaxlib have the analysis only on the client.
        return _compat.runtime.hlo_cost_analysis(self._client, self.hlo_modules()[0])

    def serialize(self) -> bytes:
        """Serializes the executable, for `deserialize_executable` of the same jaxlib on the same kind of device.

        Returns:
            jaxlib's own bytes, followed by a stamp with jaxlib's version and the platform. jaxlib ignores the stamp.

        Raises:
            UnsupportedError: This jaxlib cannot serialize this program.
        """
        try:
            return stamp(self._raw.serialize(), {**origin_of(self._client), "counts": self._counts})
        except JaxRuntimeError as error:
            raise UnsupportedError(
                f"jaxlib {jaxlib.version.__version__} cannot serialize this executable: {reason_of(error)}\n"
                "Save the program instead, and compile it again: its text, or for a JAX function "
                "jax.export.export(jax.jit(f))(*args).serialize()."
            ) from error

    def check_result_layout(self, wanted: Any) -> None:
        """Raises if the result has another shape or layout than the options' `result_layout`, which jaxlib may ignore."""
        # `wanted` is the layout before partitioning, so it cannot be compared if there are partitions.
        if wanted is None or self._program_shape is None or self._counts[1] > 1:
            return
        given, has = (re.sub(r":.*?\}", "}", str(shape)) for shape in (wanted, self._program_shape.result_shape()))  # no tiles
        if given != has:
            raise UnsupportedError(
                f"jaxlib {jaxlib.version.__version__} ignores result_layout={given} and uses {has}; leave the option out"
            )

    @cached_property
    def _program_shape(self) -> Any:
        """The program's shape on one device; None if the platform does not report it."""
        try:
            module = self.hlo_modules()[0]
        except JaxRuntimeError:
            return None
        return _compat.runtime.XlaComputation(module.as_serialized_hlo_module_proto()).program_shape()

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """The numbers of replicas and partitions, from the module's text, which alone has them."""
        header = self.hlo_modules()[0].to_string().split("\n", 1)[0]
        found = dict(re.findall(r"\b(replica_count|num_partitions)=(\d+)", header))
        return int(found.get("replica_count", 1)), int(found.get("num_partitions", 1))


class Loaded(Executable):
    """A compiled program, loaded onto its devices. `hlotag.xla.LoadedExecutable` adds the client.

    More attributes are jaxlib's own: `traceback` of the compilation; `fingerprint`, equal for equal programs, None on some
    platforms; `size_of_generated_code_in_bytes()`, 0 on platforms that do not report it (CPU).

    Args:
        jaxlib_object: jaxlib's own loaded executable, such as `compiled.runtime_executable()` of a `jax.stages.Compiled`.
        serialized: The bytes that the program was deserialized from, or None.
    """

    _JAXLIB_CLASS = _compat.runtime.JaxlibLoadedExecutable

    def __init__(self, jaxlib_object: Any, serialized: bytes | None = None):
        if not isinstance(jaxlib_object, _compat.runtime.JaxlibLoadedExecutable):
            raise ArgumentError(f"jaxlib_object must be jaxlib's loaded executable, not a {type(jaxlib_object).__name__}")
        super().__init__(jaxlib_object, jaxlib_object.client)
        self._devices = tuple(jaxlib_object.local_devices())
        self._serialized = serialized

    def serialize(self) -> bytes:
        """Serializes the program as `Executable.serialize`. A deserialized program returns its original bytes."""
        # The CPU client serializes a deserialized executable without its code.
        return super().serialize() if self._serialized is None else self._serialized

    def local_devices(self) -> list[Any]:
        """The devices of this process that the program runs on."""
        return list(self._devices)

    def keep_alive(self, obj: Any = None) -> None:
        """Keeps an object alive as long as the executable, such as a callback that the program refers to."""
        if obj is not None:
            self._raw.keep_alive(obj)

    def execute(self, arguments: Sequence[jax.Array], device: Any = None) -> list[jax.Array]:
        """Runs the program on its one device.

        Args:
            arguments: One array per parameter, on that device.
            device: The device, or None.

        Returns:
            The results.

        Raises:
            ArgumentError: The arguments do not match the program, or it runs on several devices.
        """
        return self._raw.execute(self._check_on_one(arguments, device))

    def execute_with_token(self, arguments: Sequence[jax.Array], device: Any = None) -> tuple[list[jax.Array], Any]:
        """Runs the program as `execute` does; returns the results, and a `Token` for the end of the execution."""
        return self._raw.execute_with_token(self._check_on_one(arguments, device))

    def execute_sharded(self, arguments: Sequence[jax.Array | Sequence[jax.Array]], with_tokens: bool = False) -> ExecuteResults:
        """Runs the program on all its devices.

        Args:
            arguments: One per parameter: an array over all devices, or a list of arrays, one on each device. Or one list per
                device, with an array on that device for each parameter. The devices of the arrays tell the two forms apart.
            with_tokens: Whether to make tokens for the end of the execution.

        Returns:
            The results, grouped as the arguments: by result, or by device.

        Raises:
            ArgumentError: The arguments do not match the program.
        """
        by_device = self._are_by_device(arguments)
        whole = self._check_all(list(zip(*arguments, strict=True)) if by_device else arguments)
        raw = self._raw.execute_sharded(whole, with_tokens=with_tokens)
        return ExecuteResults(raw, [device.id for device in self._devices] if with_tokens else [], by_device)

    # --- Checks: jaxlib reinterprets other dtypes and ranks of the same size, and aborts on some arrays of another client. ---

    @cached_property
    def _parameters(self) -> list[Any] | None:
        """The shape of each parameter on one device; None if the platform does not report it."""
        return None if self._program_shape is None else leaves(self._program_shape.parameter_shapes())

    def _check_on_one(self, arguments: Any, device: Any) -> list[Any]:
        if len(self._devices) != 1:
            raise ArgumentError(f"the program runs on {len(self._devices)} devices; use execute_sharded")
        if device not in (None, self._devices[0]):
            raise ArgumentError(f"the program runs on {self._devices[0]}, not on {device}; compile it for that device")
        return self._check_all(arguments)

    def _check_all(self, arguments: Any) -> list[Any]:
        if not isinstance(arguments, Sequence):
            raise ArgumentError(f"arguments must be a list of arrays, one per parameter, not {type(arguments).__name__}")
        parameters = [None] * len(arguments) if self._parameters is None else self._parameters
        if len(arguments) != len(parameters):
            expected = ", ".join(map(str, parameters)) or "none"
            raise ArgumentError(f"the program has {len(parameters)} parameters ({expected}), but got {len(arguments)} arguments")
        whole = [self._assemble(number, argument) for number, argument in enumerate(arguments)]
        for number, (argument, parameter) in enumerate(zip(whole, parameters, strict=True)):
            self._check(f"argument {number}", argument, parameter)
        return whole

    def _check(self, name: str, argument: Any, parameter: Any) -> None:
        if not isinstance(argument, jax.Array) or isinstance(argument, Tracer):
            raise ArgumentError(
                f"{name} is of type {type(argument).__name__}, not an array on {self._devices[0]}; put it there: "
                "client.buffer_from_pyval(x, device), outside of jit, grad and vmap"
            )
        if argument.is_deleted():
            raise ArgumentError(f"{name} has been deleted or donated; pass another array")
        devices = argument.sharding.addressable_devices
        if devices != set(self._devices):
            found, expected = (", ".join(sorted(map(str, those))) for those in (devices, self._devices))
            same = " of another client" if found == expected else ""
            raise ArgumentError(f"{name} is on {found}{same}, but the program runs on {expected}; move it there")
        if parameter is None or not parameter.is_array():
            return
        if argument.dtype != parameter.numpy_dtype():
            how = "pass jax.random.key_data(x)" if jax.numpy.issubdtype(argument.dtype, jax.dtypes.extended) else "convert it"
            raise ArgumentError(f"{name} is of dtype {argument.dtype}, but the parameter is {parameter}; {how}")
        shape = argument.sharding.shard_shape(argument.shape)
        if not parameter.is_dynamic() and shape != tuple(parameter.dimensions()):
            raise ArgumentError(f"{name} has the shape {shape} on each device, but the parameter is {parameter}; reshape it")
        formatted: Any = argument
        has, wanted = formatted.format.layout, tuple(reversed(parameter.layout().minor_to_major()))
        if has is not None and has.major_to_minor != wanted:
            raise ArgumentError(
                f"{name} has the dimensions {has.major_to_minor} from major to minor, but the parameter is {parameter}; change "
                f"the layout: jax.device_put(x, jax.experimental.layout.Format(Layout({wanted}), x.sharding))"
            )

    def _are_by_device(self, arguments: Any) -> bool:
        """Whether each list of arrays is for one device, rather than for one parameter."""
        if not isinstance(arguments, Sequence) or len(arguments) != len(self._devices):
            return False
        if not all(isinstance(part, list | tuple) and len(part) == len(arguments[0]) for part in arguments):
            return False
        by_device = [_are_on(part, [device] * len(part)) for part, device in zip(arguments, self._devices, strict=True)]
        return all(by_device) and not all(_are_on(part, self._devices) for part in arguments)

    def _assemble(self, number: int, argument: Any) -> Any:
        """Makes one array over all devices from a list of arrays, one on each device."""
        if not isinstance(argument, list | tuple):
            return argument
        if not _are_on(argument, self._devices):
            devices = ", ".join(map(str, self._devices))
            raise ArgumentError(f"argument {number} must have one array on each of {devices}, in this order")
        if any(shard.is_deleted() for shard in argument):
            raise ArgumentError(f"an array of argument {number} has been deleted or donated; pass another one")
        if len({(shard.shape, shard.dtype) for shard in argument}) > 1:
            raise ArgumentError(f"argument {number} has arrays of different shapes or dtypes; all devices need the same")
        # jaxlib reads only the shards, so the global shape and sharding are arbitrary, even if the data differ.
        mesh = jax.sharding.Mesh(list(self._devices), ("device",))
        replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        return jax.make_array_from_single_device_arrays(argument[0].shape, replicated, list(argument))


def _are_on(arrays: Sequence[Any], devices: Sequence[Any]) -> bool:
    """Whether `arrays` are one array on each of `devices`."""
    if len(arrays) != len(devices) or not all(isinstance(array, jax.Array) for array in arrays):
        return False
    return all(array.sharding.device_set == {device} for array, device in zip(arrays, devices, strict=True))


def origin_of(client: Any) -> dict[str, str]:
    """The jaxlib and the platform, with its version, that a serialized executable needs."""
    platform = f"{client.platform} {client.platform_version}".replace("\n", " ")
    return {"jaxlib": jaxlib.version.__version__, "platform": platform}
