# SPDX-License-Identifier: Apache-2.0
"""The API to compile and execute programs that `jaxlib.xla_client` documented.

Other names (`Executable`, `ExecuteResults`, `Token`, `Shape`, `OpSharding`, ...) are jaxlib's own, looked up where the installed
version keeps them.
"""

from __future__ import annotations

from typing import Any

from jax.errors import JaxRuntimeError as XlaRuntimeError

from hlotag import _compat
from hlotag.errors import ArgumentError, ParseError
from hlotag.xla.client import Client, make_cpu_client
from hlotag.xla.computation import xla_computation
from hlotag.xla.executable import LoadedExecutable
from hlotag.xla.options import CompileOptions, DebugOptions, ExecutableBuildOptions

__all__ = [
    "ArgumentError",
    "Client",
    "CompileOptions",
    "DebugOptions",
    "ExecutableBuildOptions",
    "LoadedExecutable",
    "ParseError",
    "XlaRuntimeError",
    "compile",
    "compile_and_load",
    "deserialize_executable",
    "make_cpu_client",
    "serialize_executable",
    "xla_computation",
]


def compile(computation: Any, *args: Any, client: Any = None, **kwargs: Any) -> Any:
    """Compiles a program as `Client(client).compile` does: for JAX's default platform, a named one, or a client."""
    return Client(client).compile(computation, *args, **kwargs)


def compile_and_load(computation: Any, *args: Any, client: Any = None, **kwargs: Any) -> LoadedExecutable:
    """Compiles and loads a program as `Client(client).compile_and_load` does; it takes JAX's own arrays."""
    return Client(client).compile_and_load(computation, *args, **kwargs)


def serialize_executable(executable: Any) -> bytes:
    """Serializes an executable for `deserialize_executable`."""
    return executable.serialize()


def deserialize_executable(serialized: bytes, *args: Any, client: Any = None, **kwargs: Any) -> LoadedExecutable:
    """Loads a serialized executable as `Client(client).deserialize_executable` does."""
    return Client(client).deserialize_executable(serialized, *args, **kwargs)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return _compat.runtime.jaxlib_name(name)
