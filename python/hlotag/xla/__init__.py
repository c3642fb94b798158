# SPDX-License-Identifier: Apache-2.0
"""XLA's compiler and runtime in jaxlib, with the names and forms that `jaxlib.xla_client` documented.

Other names (`PrimitiveType`, `OpSharding`, ...) are jaxlib's own, wherever its version keeps them.
"""

from __future__ import annotations

from typing import Any

from jax.errors import JaxRuntimeError as XlaRuntimeError

from hlotag import _compat
from hlotag.errors import ArgumentError, ParseError, UnsupportedError, XlaError
from hlotag.xla.client import Client, LoadedExecutable, make_cpu_client
from hlotag.xla.computation import xla_computation
from hlotag.xla.executable import Executable
from hlotag.xla.options import CompileOptions, DebugOptions, ExecutableBuildOptions
from hlotag.xla.results import CompiledMemoryStats, ExecuteResults, ShardedToken, Token

DeviceAssignment = _compat.DeviceAssignment
DeviceList = _compat.DeviceList
HloModule = _compat.HloModule
HostBufferSemantics = _compat.HostBufferSemantics
Shape = _compat.Shape
XlaComputation = _compat.XlaComputation

__all__ = [
    "ArgumentError",
    "Client",
    "CompileOptions",
    "CompiledMemoryStats",
    "DebugOptions",
    "DeviceAssignment",
    "DeviceList",
    "Executable",
    "ExecutableBuildOptions",
    "ExecuteResults",
    "HloModule",
    "HostBufferSemantics",
    "LoadedExecutable",
    "ParseError",
    "Shape",
    "ShardedToken",
    "Token",
    "UnsupportedError",
    "XlaComputation",
    "XlaError",
    "XlaRuntimeError",
    "compile",
    "compile_and_load",
    "deserialize_executable",
    "make_cpu_client",
    "serialize_executable",
    "xla_computation",
]


def compile(computation: Any, *args: Any, client: Any = None, **kwargs: Any) -> Executable:
    """`Client.compile`, for devices of JAX's own.

    Args:
        computation: The program.
        *args: As `Client.compile` takes them.
        client: A `Client`, or the name of a platform; None for JAX's default one.
        **kwargs: As `Client.compile` takes them.

    Returns:
        The compiled program.
    """
    return Client(client).compile(computation, *args, **kwargs)


def compile_and_load(computation: Any, *args: Any, client: Any = None, **kwargs: Any) -> LoadedExecutable:
    """`Client.compile_and_load`, for devices of JAX's own.

    Args:
        computation: The program.
        *args: As `Client.compile_and_load` takes them.
        client: A `Client`, or the name of a platform; None for JAX's default one.
        **kwargs: As `Client.compile_and_load` takes them.

    Returns:
        The loaded program, which takes arrays of JAX's.
    """
    return Client(client).compile_and_load(computation, *args, **kwargs)


def serialize_executable(executable: Executable) -> bytes:
    """Writes an executable.

    Args:
        executable: The executable.

    Returns:
        What `deserialize_executable` reads.
    """
    return executable.serialize()


def deserialize_executable(serialized: bytes, *args: Any, client: Any = None, **kwargs: Any) -> LoadedExecutable:
    """`Client.deserialize_executable`, for devices of JAX's own.

    Args:
        serialized: What `serialize_executable` gave.
        *args: As `Client.deserialize_executable` takes them.
        client: A `Client`, or the name of a platform; None for JAX's default one.
        **kwargs: As `Client.deserialize_executable` takes them.

    Returns:
        The loaded program.
    """
    return Client(client).deserialize_executable(serialized, *args, **kwargs)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return _compat.jaxlib_name(name)
