# SPDX-License-Identifier: Apache-2.0
"""How is a program compiled? `CompileOptions`, with `ExecutableBuildOptions` and `DebugOptions` inside."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from hlotag import _compat
from hlotag.xla import _wire
from hlotag.xla._errors import ArgumentError, XlaError
from hlotag.xla._refusals import refusals_explained

# Fields of xla.CompileOptionsProto and xla.ExecutableBuildOptionsProto (xla/pjrt/proto/compile_options.proto).
_EXECUTABLE_BUILD_OPTIONS = 3
_DEBUG_OPTIONS = 3


class _Options:
    """A view of jaxlib's options: the attributes are jaxlib's, and jaxlib checks assignments.

    Nested options are read-only in jaxlib. Here they can be assigned by value: the assigned object is copied into jaxlib's
    message, and later changes to it have no effect.
    """

    __slots__ = ()

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own object, with the options as they are now."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look up attributes before `__init__` ran.
            raise AttributeError(name)
        try:
            return getattr(self.jaxlib_object, name)
        except AttributeError:
            raise AttributeError(self._unknown(name)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            object.__setattr__(self, name, value)
            return
        target = self.jaxlib_object
        if not hasattr(target, name):
            raise AttributeError(self._unknown(name))
        try:
            setattr(target, name, value)
        except TypeError:
            expected = f"a value like {getattr(target, name)!r}"
            raise ArgumentError(f"{type(self).__name__}.{name} must be {expected}, not {value!r}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.jaxlib_object)})

    def __repr__(self) -> str:
        names = [name for name in dir(self.jaxlib_object) if not name.startswith("_")]
        values = {name: getattr(self, name) for name in names if not callable(getattr(self, name))}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def _unknown(self, name: str) -> str:
        near = get_close_matches(name, [known for known in dir(self) if not known.startswith("_")], 3)
        suggestion = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"{type(self).__name__} of this jaxlib has no option {name!r}{suggestion}"

    def _message(self) -> bytes:
        raise NotImplementedError


class _Part(_Options):
    """Nested options. An object without a parent gets a parent with default options."""

    __slots__ = ("_parent",)
    _parent: Any
    _NAME: str
    _FIELD: int

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own object, with the options as they are now."""
        return getattr(self._parent.jaxlib_object, self._NAME)

    def _message(self) -> bytes:
        return _wire.part_of(self._parent._message(), self._FIELD)


class DebugOptions(_Part):
    """Flags of XLA, as in `XLA_FLAGS`, for one compilation.

    Flags that jaxlib exposes are attributes: `xla_dump_to`, `xla_cpu_enable_fast_math`, ... Set other flags by
    `CompileOptions.env_option_overrides`.
    """

    __slots__ = ()
    _NAME, _FIELD = "debug_options", _DEBUG_OPTIONS

    def __init__(self, parent: _Options | None = None):
        self._parent = ExecutableBuildOptions() if parent is None else parent


class ExecutableBuildOptions(_Part):
    """How XLA builds an executable: replicas, partitions, partitioner, flags."""

    __slots__ = ()
    _NAME, _FIELD = "executable_build_options", _EXECUTABLE_BUILD_OPTIONS

    def __init__(self, parent: _Options | None = None):
        self._parent = CompileOptions() if parent is None else parent

    @property
    def debug_options(self) -> DebugOptions:
        """XLA's flags; can be assigned."""
        return DebugOptions(self)

    @debug_options.setter
    def debug_options(self, value: DebugOptions) -> None:
        _check_kind("debug_options", value, DebugOptions)
        changed = _wire.with_part(self._message(), _DEBUG_OPTIONS, value._message())
        self._parent._assign(_EXECUTABLE_BUILD_OPTIONS, changed)

    def compilation_environments_from_serialized_proto(self, serialized_proto: bytes) -> None:
        """Sets the compilation environments.

        Args:
            serialized_proto: An `xla.CompilationEnvironmentsProto`.

        Raises:
            XlaError: The bytes are not such a message.
        """
        _check_message("an xla.CompilationEnvironmentsProto", serialized_proto)
        with refusals_explained("read the compilation environments", "pass a serialized xla.CompilationEnvironmentsProto"):
            self.jaxlib_object.compilation_environments_from_serialized_proto(serialized_proto)


class CompileOptions(_Options):
    """All options of one compilation.

    Attributes are jaxlib's own: `argument_layouts`, `parameter_is_tupled_arguments`, `num_replicas`, `num_partitions`,
    `profile_version`, `device_assignment`, `compile_portable_executable`, `env_option_overrides`; and:

    Attributes:
        executable_build_options: Can be assigned as a whole.
        tuple_arguments: The older name of `parameter_is_tupled_arguments`.
    """

    __slots__ = ("_raw",)
    _raw: Any

    def __init__(self) -> None:
        self._raw = _compat.runtime.JaxlibCompileOptions()

    @classmethod
    def of(cls, options: Any) -> CompileOptions:
        """Copies options.

        Args:
            options: `CompileOptions`, jaxlib's own, or None for the defaults.

        Returns:
            A copy.

        Raises:
            ArgumentError: `options` is of another type.
        """
        if options is None:
            return cls()
        if not isinstance(options, cls | _compat.runtime.JaxlibCompileOptions):
            raise ArgumentError(f"options must be hlotag.xla.CompileOptions, not {type(options).__name__}")
        return cls.ParseFromString(options.SerializeAsString())

    @staticmethod
    def ParseFromString(s: bytes) -> CompileOptions:
        """Reads options.

        Args:
            s: The result of `SerializeAsString`.

        Returns:
            The options.

        Raises:
            XlaError: `s` is not an `xla.CompileOptionsProto`, or is truncated. jaxlib would accept a truncated one.
        """
        _check_message("an xla.CompileOptionsProto", s)
        result = CompileOptions()
        with refusals_explained("read the options", "pass the result of CompileOptions.SerializeAsString"):
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
    def executable_build_options(self, value: ExecutableBuildOptions) -> None:
        _check_kind("executable_build_options", value, ExecutableBuildOptions)
        self._assign(_EXECUTABLE_BUILD_OPTIONS, value._message())

    def __reduce__(self) -> Any:
        return type(self).ParseFromString, (self.SerializeAsString(),)

    def _message(self) -> bytes:
        return self._raw.SerializeAsString()

    def _assign(self, number: int, value: bytes) -> None:
        """Replaces the options in field `number` of this message."""
        self._raw = _compat.runtime.JaxlibCompileOptions.ParseFromString(_wire.with_part(self._message(), number, value))


def _check_kind(name: str, value: Any, expected: type) -> None:
    if not isinstance(value, expected):
        given = f"{type(value).__module__}.{type(value).__name__}"
        raise ArgumentError(f"{name} must be an hlotag.xla.{expected.__name__}, not {given}")


def _check_message(what: str, serialized: Any) -> None:
    if not isinstance(serialized, bytes):
        raise ArgumentError(f"{what} must be bytes, not {type(serialized).__name__}")
    try:
        _wire.parts(serialized)
    except ValueError as error:
        raise XlaError(f"these {len(serialized)} bytes are not {what}: {error}; serialize it again") from None
