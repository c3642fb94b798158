# SPDX-License-Identifier: Apache-2.0
"""Programs on their devices. jaxlib takes bytes of one dtype, shape or layout for another's; the arguments are checked here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import jax
from jax.core import Tracer
from jax.errors import JaxRuntimeError

from hlotag import _compat
from hlotag.errors import ArgumentError


class LoadedExecutable:
    """A compiled program on its devices. Attributes other than the methods below are jaxlib's own.

    Args:
        jaxlib_object: jaxlib's own loaded executable, such as `compiled.runtime_executable()` of a `jax.stages.Compiled`.
    """

    def __init__(self, jaxlib_object: Any):
        if not isinstance(jaxlib_object, _compat.runtime.JaxlibLoadedExecutable):
            raise ArgumentError(f"jaxlib_object must be jaxlib's loaded executable, not a {type(jaxlib_object).__name__}")
        self.jaxlib_object = jaxlib_object

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.jaxlib_object, name)

    def keep_alive(self, obj: Any = None) -> None:
        """Keeps an object alive as long as the executable, such as a callback that the program refers to."""
        if obj is not None:
            self.jaxlib_object.keep_alive(obj)

    def execute(self, arguments: Sequence[jax.Array], device: Any = None) -> list[jax.Array]:
        """Runs the program on its one device.

        Args:
            arguments: One array per parameter, on that device.
            device: The device, or None.

        Returns:
            The results.

        Raises:
            ArgumentError: The arguments do not match the program.
        """
        return self.jaxlib_object.execute(self._checked(arguments), device)

    def execute_with_token(self, arguments: Sequence[jax.Array], device: Any = None) -> tuple[list[jax.Array], Any]:
        """Runs the program as `execute` does; returns the results, and a `Token` for the end of the execution."""
        return self.jaxlib_object.execute_with_token(self._checked(arguments), device)

    def execute_sharded(self, arguments: Sequence[jax.Array | Sequence[jax.Array]], with_tokens: bool = False) -> Any:
        """Runs the program on all its devices.

        Args:
            arguments: One per parameter: an array over all devices, or a list of arrays, one on each device. Or one list per
                device, with an array on that device for each parameter. The devices of the arrays tell the two forms apart.
            with_tokens: Whether to make tokens for the end of the execution.

        Returns:
            jaxlib's `ExecuteResults`; grouped by device if the arguments are.

        Raises:
            ArgumentError: The arguments do not match the program.
        """
        devices = self.local_devices()
        by_device = (
            len(arguments) == len(devices)
            and all(_are_on(part, [device] * len(part)) for part, device in zip(arguments, devices, strict=True))
            and not all(_are_on(part, devices) for part in arguments)
        )
        by_parameter = zip(*arguments, strict=True) if by_device else arguments
        whole = [_assemble(part, devices) if isinstance(part, list | tuple) else part for part in by_parameter]
        results = self.jaxlib_object.execute_sharded(self._checked(whole), with_tokens=with_tokens)
        return _ByDevice(results) if by_device else results

    @cached_property
    def _parameters(self) -> list[Any] | None:
        """The shape of each parameter on one device; None if the platform does not report it."""
        try:
            module = self.hlo_modules()[0]
        except JaxRuntimeError:
            return None
        shape = _compat.runtime.XlaComputation(module.as_serialized_hlo_module_proto()).program_shape()
        return _leaves(shape.parameter_shapes())

    def _checked(self, arguments: Any) -> Any:
        if not self.local_devices():
            raise ArgumentError(
                "jaxlib cannot run a portable executable, which has no devices; compile without compile_portable_executable: any "
                "serialized executable loads onto other devices of its kind"
            )
        parameters = self._parameters
        if parameters is None:
            return arguments
        if len(arguments) != len(parameters):
            expected = ", ".join(map(str, parameters)) or "none"
            raise ArgumentError(f"the program has {len(parameters)} parameters ({expected}), but got {len(arguments)} arguments")
        devices = set(self.local_devices())
        for number, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True)):
            if isinstance(argument, jax.Array) and not isinstance(argument, Tracer) and parameter.is_array():
                _check(f"argument {number}", argument, parameter, devices)
        return arguments


class _ByDevice:
    """jaxlib's `ExecuteResults`, whose arrays are grouped by device."""

    def __init__(self, jaxlib_object: Any):
        self.jaxlib_object = jaxlib_object

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jaxlib_object, name)

    def __len__(self) -> int:
        return len(self.jaxlib_object)

    def disassemble_into_single_device_arrays(self) -> list[list[jax.Array]]:
        return [list(arrays) for arrays in zip(*self.jaxlib_object.disassemble_into_single_device_arrays(), strict=True)]


def _check(name: str, argument: Any, parameter: Any, devices: set[Any]) -> None:
    """Raises for what jaxlib would read as something else, or end the process for."""
    if not argument.is_deleted() and argument.sharding.addressable_devices != devices:
        found, expected = (", ".join(sorted(map(str, those))) for those in (argument.sharding.addressable_devices, devices))
        same = " of another client" if found == expected else ""
        raise ArgumentError(f"{name} is on {found}{same}, but the program runs on {expected}; move it there")
    if argument.dtype != parameter.numpy_dtype():
        how = "pass jax.random.key_data(x)" if jax.numpy.issubdtype(argument.dtype, jax.dtypes.extended) else "convert it"
        raise ArgumentError(f"{name} is of dtype {argument.dtype}, but the parameter is {parameter}; {how}")
    shape = argument.sharding.shard_shape(argument.shape)
    if not parameter.is_dynamic() and shape != tuple(parameter.dimensions()):
        raise ArgumentError(f"{name} has the shape {shape} on each device, but the parameter is {parameter}; reshape it")
    has, wanted = argument.format.layout, tuple(reversed(parameter.layout().minor_to_major()))
    if has is not None and has.major_to_minor != wanted:
        raise ArgumentError(
            f"{name} has the dimensions {has.major_to_minor} from major to minor, but the parameter is {parameter}; change the "
            f"layout: jax.device_put(x, jax.experimental.layout.Format(Layout({wanted}), x.sharding))"
        )


def _assemble(shards: Sequence[Any], devices: Sequence[Any]) -> jax.Array:
    """Makes one array over all devices from a list of arrays, one on each device."""
    if not _are_on(shards, devices) or len({(shard.shape, shard.dtype) for shard in shards}) > 1:
        raise ArgumentError(f"an argument must have one array on each of {[*map(str, devices)]}, in this order, of one shape")
    # jaxlib reads only the shards, so the global shape and sharding are arbitrary, even if the data differ.
    mesh = jax.sharding.Mesh(list(devices), ("device",))
    replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return jax.make_array_from_single_device_arrays(shards[0].shape, replicated, list(shards))


def _are_on(arrays: Any, devices: Sequence[Any]) -> bool:
    """Whether `arrays` are one array on each of `devices`."""
    if not isinstance(arrays, list | tuple) or len(arrays) != len(devices):
        return False
    return all(isinstance(a, jax.Array) and a.sharding.device_set == {d} for a, d in zip(arrays, devices, strict=True))


def _leaves(shapes: Sequence[Any]) -> list[Any]:
    """The array shapes in `shapes`, with tuples flattened."""
    return [leaf for shape in shapes for leaf in (_leaves(shape.tuple_shapes()) if shape.is_tuple() else [shape])]
