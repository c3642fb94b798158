# SPDX-License-Identifier: Apache-2.0
"""The options of a compilation: jaxlib's, whose nested options can be assigned here, as documented."""

from __future__ import annotations

from typing import Any

from hlotag import _compat
from hlotag.errors import ArgumentError


class _Options:
    """Attributes are jaxlib's. Assigning options to an attribute copies them."""

    __slots__ = ("_owner", "jaxlib_object")
    jaxlib_object: Any

    def __init__(self, jaxlib_object: Any, owner: Any = None):
        # Nested options are a part of their owner's memory.
        object.__setattr__(self, "jaxlib_object", jaxlib_object)
        object.__setattr__(self, "_owner", owner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look up attributes before `__init__` ran.
            raise AttributeError(name)
        return getattr(self.jaxlib_object, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, _Options):
            _copy(value.jaxlib_object, getattr(self.jaxlib_object, name))
        else:
            setattr(self.jaxlib_object, name, value)

    def __dir__(self) -> list[str]:
        return dir(self.jaxlib_object)


class DebugOptions(_Options):
    """Flags of XLA, as in `XLA_FLAGS`, for one compilation.

    Flags that jaxlib exposes are attributes: `xla_dump_to`, `xla_cpu_enable_fast_math`, ... Set other flags by
    `CompileOptions.env_option_overrides`.
    """

    __slots__ = ()

    def __init__(self, build: ExecutableBuildOptions | None = None):
        build = build or ExecutableBuildOptions()
        super().__init__(build.jaxlib_object.debug_options, build)


class ExecutableBuildOptions(_Options):
    """How XLA builds an executable: replicas, partitions, partitioner, and `debug_options`."""

    __slots__ = ()

    def __init__(self, options: CompileOptions | None = None):
        options = options or CompileOptions()
        super().__init__(options.jaxlib_object.executable_build_options, options)

    def __getattr__(self, name: str) -> Any:
        return DebugOptions(self) if name == "debug_options" else super().__getattr__(name)


class CompileOptions(_Options):
    """All options of one compilation: jaxlib's, `executable_build_options`, and `tuple_arguments`.

    `tuple_arguments` is the documented name of `parameter_is_tupled_arguments`.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_compat.runtime.JaxlibCompileOptions())

    def __getattr__(self, name: str) -> Any:
        if name == "executable_build_options":
            return ExecutableBuildOptions(self)
        return super().__getattr__("parameter_is_tupled_arguments" if name == "tuple_arguments" else name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__("parameter_is_tupled_arguments" if name == "tuple_arguments" else name, value)

    def __reduce__(self) -> Any:
        return CompileOptions.ParseFromString, (self.SerializeAsString(),)

    @staticmethod
    def ParseFromString(s: bytes) -> CompileOptions:
        """Reads the result of `SerializeAsString`."""
        options = CompileOptions()
        object.__setattr__(options, "jaxlib_object", _compat.runtime.JaxlibCompileOptions.ParseFromString(s))
        return options

    @staticmethod
    def of(options: Any) -> CompileOptions:
        """Copies `CompileOptions` or jaxlib's own; None gives the defaults."""
        if options is None:
            return CompileOptions()
        if not isinstance(options, CompileOptions | _compat.runtime.JaxlibCompileOptions):
            raise ArgumentError(f"options must be hlotag.xla.CompileOptions, not {type(options).__name__}")
        return CompileOptions.ParseFromString(options.SerializeAsString())


def _copy(source: Any, target: Any) -> None:
    """Copies the attributes that differ, and those of nested options."""
    for name in dir(source):
        value, present = (None, None) if name.startswith("_") else (getattr(source, name), getattr(target, name))
        if name == "debug_options":
            _copy(value, present)
        elif not callable(value) and value != present:  # Setting an empty list of passes would add a pass without a name.
            setattr(target, name, value)
