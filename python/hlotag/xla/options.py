# SPDX-License-Identifier: Apache-2.0
"""The options of a compilation: jaxlib's, with nested options that can be assigned as its documentation had it."""

from __future__ import annotations

from typing import Any

from hlotag import _compat
from hlotag.xla.errors import ArgumentError, XlaError, explain_refusals
from hlotag.xla.serialized import field_of, fields_of, with_field

# Fields of xla.CompileOptionsProto and xla.ExecutableBuildOptionsProto (xla/pjrt/proto/compile_options.proto).
_EXECUTABLE_BUILD_OPTIONS = 3
_DEBUG_OPTIONS = 3


class _Options:
    """The attributes are jaxlib's. Nested options are read-only there; here, assigning copies them."""

    __slots__ = ()

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own object, with the options as they are now."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look up attributes before `__init__` ran.
            raise AttributeError(name)
        return getattr(self.jaxlib_object, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            return object.__setattr__(self, name, value)
        try:
            return setattr(self.jaxlib_object, name, value)
        except TypeError:
            expected = f"a value like {getattr(self, name)!r}"
            raise ArgumentError(f"{type(self).__name__}.{name} must be {expected}, not {value!r}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.jaxlib_object)})

    def _message(self) -> bytes:
        raise NotImplementedError


class DebugOptions(_Options):
    """Flags of XLA, as in `XLA_FLAGS`, for one compilation.

    Flags that jaxlib exposes are attributes: `xla_dump_to`, `xla_cpu_enable_fast_math`, ... Set other flags by
    `CompileOptions.env_option_overrides`.
    """

    __slots__ = ("_parent",)

    def __init__(self, parent: ExecutableBuildOptions | None = None):
        self._parent = parent or ExecutableBuildOptions()

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own object, with the options as they are now."""
        return self._parent.jaxlib_object.debug_options

    def _message(self) -> bytes:
        return field_of(self._parent._message(), _DEBUG_OPTIONS)


class ExecutableBuildOptions(_Options):
    """How XLA builds an executable: replicas, partitions, partitioner, flags."""

    __slots__ = ("_parent",)

    def __init__(self, parent: CompileOptions | None = None):
        self._parent = parent or CompileOptions()

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own object, with the options as they are now."""
        return self._parent.jaxlib_object.executable_build_options

    @property
    def debug_options(self) -> DebugOptions:
        """XLA's flags; can be assigned."""
        return DebugOptions(self)

    @debug_options.setter
    def debug_options(self, value: DebugOptions) -> None:
        _check_kind("debug_options", value, DebugOptions)
        self._parent.executable_build_options = with_field(self._message(), _DEBUG_OPTIONS, value._message())

    def compilation_environments_from_serialized_proto(self, serialized_proto: bytes) -> None:
        """Sets the compilation environments, from a serialized `xla.CompilationEnvironmentsProto`.

        Raises:
            XlaError: The bytes are not such a message.
        """
        _check_message("an xla.CompilationEnvironmentsProto", serialized_proto)
        self.jaxlib_object.compilation_environments_from_serialized_proto(serialized_proto)

    def _message(self) -> bytes:
        return field_of(self._parent.SerializeAsString(), _EXECUTABLE_BUILD_OPTIONS)


class CompileOptions(_Options):
    """All options of one compilation.

    Attributes are jaxlib's own: `argument_layouts`, `parameter_is_tupled_arguments`, `num_replicas`, `num_partitions`,
    `profile_version`, `device_assignment`, `compile_portable_executable`, `env_option_overrides`; and:

    Attributes:
        executable_build_options: Can be assigned as a whole.
        tuple_arguments: The older name of `parameter_is_tupled_arguments`.
    """

    __slots__ = ("_raw",)

    def __init__(self) -> None:
        self._raw = _compat.runtime.JaxlibCompileOptions()

    @classmethod
    def of(cls, options: Any) -> CompileOptions:
        """Copies `CompileOptions` or jaxlib's own; None gives the defaults."""
        if options is None:
            return cls()
        if not isinstance(options, cls | _compat.runtime.JaxlibCompileOptions):
            raise ArgumentError(f"options must be hlotag.xla.CompileOptions, not {type(options).__name__}")
        return cls.ParseFromString(options.SerializeAsString())

    @staticmethod
    def ParseFromString(s: bytes) -> CompileOptions:
        """Reads the result of `SerializeAsString`.

        Raises:
            XlaError: `s` is not an `xla.CompileOptionsProto`, or is truncated. jaxlib would accept a truncated one.
        """
        _check_message("an xla.CompileOptionsProto", s)
        result = CompileOptions()
        with explain_refusals("read the options", "Pass the result of CompileOptions.SerializeAsString"):
            result._raw = _compat.runtime.JaxlibCompileOptions.ParseFromString(s)
        return result

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own object, with the options as they are now."""
        return self._raw

    @property
    def tuple_arguments(self) -> bool:
        """The older name of `parameter_is_tupled_arguments`."""
        return self._raw.parameter_is_tupled_arguments

    @tuple_arguments.setter
    def tuple_arguments(self, value: bool) -> None:
        self._raw.parameter_is_tupled_arguments = value

    @property
    def executable_build_options(self) -> ExecutableBuildOptions:
        """How the executable is built; can be assigned."""
        return ExecutableBuildOptions(self)

    @executable_build_options.setter
    def executable_build_options(self, value: ExecutableBuildOptions | bytes) -> None:
        if not isinstance(value, bytes):
            _check_kind("executable_build_options", value, ExecutableBuildOptions)
            value = value._message()
        message = with_field(self.SerializeAsString(), _EXECUTABLE_BUILD_OPTIONS, value)
        self._raw = _compat.runtime.JaxlibCompileOptions.ParseFromString(message)

    def __reduce__(self) -> Any:
        return type(self).ParseFromString, (self.SerializeAsString(),)


def _check_kind(name: str, value: Any, expected: type) -> None:
    if not isinstance(value, expected):
        given = f"{type(value).__module__}.{type(value).__name__}"
        raise ArgumentError(f"{name} must be an hlotag.xla.{expected.__name__}, not {given}")


def _check_message(what: str, serialized: Any) -> None:
    if not isinstance(serialized, bytes) or fields_of(serialized) is None:
        found = f"these {len(serialized)} bytes are" if isinstance(serialized, bytes) else f"a {type(serialized).__name__} is"
        raise XlaError(f"{found} not {what}, or truncated; serialize it again")
