# SPDX-License-Identifier: Apache-2.0
"""Registration of callbacks with XLA's compilers, in each version of JAX.

XLA's CPU compiler is in jaxlib; the compilers for GPU and TPU are in plugins. JAX's `register_hlo_module_transformation`
registers with both. In 0.10.2 it reaches a plugin only through a running client, and a compile-only topology has no client. Then
hlotag calls the plugin's own function, `register_xla_transform` of the PJRT C API's extension "xla transform", version 1. XLA
declares it in `xla/pjrt/c/pjrt_c_api_xla_transform_extension.h`, whose structures are repeated below.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable
from typing import Any

from jax._src import cloud_tpu_init, xla_bridge, xla_transform
from jaxlib import _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue]  (they have no stubs)

# The contents of `jax.extend.xla`. `jax.extend` imports Pallas, whose options become part of JAX's cache keys, so JAX would trace
# everything again.
PipelineStage = xla_transform.PipelineStage

Callback = Callable[[bytes], bytes | None]


def register_transformation(backend: Any, callback: Callback, *, name: str, stage: PipelineStage) -> Callable[[], Any]:
    """Makes the compiler for a platform call `callback` with each serialized `HloModuleProto`, at a stage of compilation.

    The callback returns a replacement, or None. `backend` is a client or a compile-only topology; `name` is unique in its stage.
    Returns a function that removes the callback. Raises RuntimeError if the compiler does not support transformations.
    """
    platforms = ["cpu"] if backend.platform == "cpu" else _plugins(backend.platform)
    if not platforms:
        raise RuntimeError(f"no plugin of JAX compiles for {backend.platform!r}")
    if backend.platform != "cpu" and not hasattr(_jax, "get_pjrt_plugin"):  # Only 0.10.2 needs a client.
        registered = [_PluginTransformation(_api_of(plugin), callback, name, stage) for plugin in platforms]
        return lambda: [transformation.clear() for transformation in registered]
    # XLA drops its reference to the callback without the interpreter's lock, on the thread of the last compilation that uses
    # it. So that reference must not be the last, and no other code may change the count meanwhile: each registration has an
    # object of its own, which stays. All versions; no upstream issue.
    own = functools.partial(callback)
    _registered.append(own)
    xla_transform.register_hlo_module_transformation(own, name=name, stage=stage, platforms=platforms)
    return lambda: xla_transform.clear_hlo_module_transformation(name, stage=stage, platforms=platforms)


def _plugins(platform: str) -> list[str]:
    """The loaded plugins for a platform. The platform of a compile-only topology is "gpu", which stands for "cuda"."""
    return [plugin for plugin in xla_bridge.expand_platform_alias(platform) if xla_client.pjrt_plugin_loaded(plugin)]


def _api_of(plugin: str) -> int:
    """The address of a plugin's `PJRT_Api`.

    JAX stores the address of plugins that register themselves. It loads the TPU's plugin by path; a library has one `PJRT_Api`.
    """
    capsule = plugin in xla_bridge._backend_factories and xla_bridge._backend_factories[plugin].c_api
    if capsule:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return pointer(capsule, b"pjrt_c_api")
    path = cloud_tpu_init.get_tpu_library_path() if plugin == "tpu" else None
    if path is None:
        raise RuntimeError(f"JAX has no path for the plugin {plugin!r}")
    function = ctypes.CDLL(path).GetPjrtApi
    function.restype = ctypes.c_void_p
    return function()


class _Extension(ctypes.Structure):
    """`PJRT_Extension_Base`."""


_Extension._fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.POINTER(_Extension))]


class _Api(ctypes.Structure):
    """The start of `PJRT_Api`."""

    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.POINTER(_Extension))]


class _Text(ctypes.Structure):
    """`PJRT_XlaTransform_string`."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    def point_to(self, text: bytes) -> None:
        """Refers to `text`, which must outlive this object."""
        self.data, self.size = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text)


class _Call(ctypes.Structure):
    """`PJRT_XlaTransform_Args`, with `PJRT_XlaTransform_version_and_error` in it."""

    class Header(ctypes.Structure):
        _fields_ = [
            ("version", ctypes.c_int64),
            ("data", ctypes.c_void_p),
            ("cleanup", ctypes.c_void_p),
            ("has_error", ctypes.c_bool),
            ("code", ctypes.c_int),
            ("message", _Text),
        ]

    _fields_ = [("size", ctypes.c_size_t), ("header", Header), ("module", _Text), ("result", _Text), ("changed", ctypes.c_bool)]


class _Callbacks(ctypes.Structure):
    """`PJRT_XlaTransform_Callbacks`; the plugin keeps its address."""

    _fields_ = [("version", ctypes.c_int64), ("dtor", ctypes.c_void_p), ("transform", ctypes.c_void_p)]


class _Registration(ctypes.Structure):
    """`PJRT_Register_Xla_Transform_Args`."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("stage", ctypes.c_int),
        ("callbacks", ctypes.POINTER(_Callbacks)),
    ]


class _Removal(ctypes.Structure):
    """`PJRT_Clear_Xla_Transform_Args`."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("stage", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("callbacks", ctypes.c_void_p),
        ("cleared", ctypes.c_bool),
    ]


class _TransformExtension(ctypes.Structure):
    """`PJRT_Xla_Transform_Extension`."""

    TYPE = 24  # PJRT_Extension_Type_XlaTransform in `pjrt_c_api.h`
    VERSION = 1  # PJRT_API_XLA_TRANSFORM_EXTENSION_VERSION

    _fields_ = [
        ("base", _Extension),
        ("register", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Registration))),
        ("clear", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Removal))),
    ]


_INTERNAL = 13  # PJRT_Error_Code_INTERNAL


class _PluginTransformation:
    """A callback in the compiler of a plugin.

    Args:
        api: The address of the plugin's `PJRT_Api`.
        callback, name, stage: As for `register_transformation`.

    Raises:
        RuntimeError: The plugin does not support transformations.
    """

    def __init__(self, api: int, callback: Callback, name: str, stage: PipelineStage):
        self._callback = callback
        self._name = name.encode()
        self._stage: int = stage.value
        self._extension = _transform_extension(api)
        # By call, the text that XLA reads after the call.
        self._results: dict[int, bytes] = {}
        self._calls = itertools.count(1)
        self._transform = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Call))(self._on_call)
        self._cleanup = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._on_cleanup)
        self._callbacks = _Callbacks(_TransformExtension.VERSION, None, ctypes.cast(self._transform, ctypes.c_void_p))
        arguments = _Registration(
            ctypes.sizeof(_Registration), self._name, len(self._name), self._stage, ctypes.pointer(self._callbacks)
        )
        if self._extension.register(ctypes.byref(arguments)):
            raise RuntimeError("the plugin refuses the transformation")
        _registered.append(self)

    def clear(self) -> None:
        """Removes the callback from the plugin."""
        arguments = _Removal(ctypes.sizeof(_Removal), self._stage, self._name, len(self._name), None, False)
        self._extension.clear(ctypes.byref(arguments))

    def _on_call(self, _: int, pointer: Any) -> None:
        call = pointer.contents
        try:
            result = self._callback(ctypes.string_at(call.module.data, call.module.size))
            text = call.result
            call.changed = result is not None
        except BaseException as error:  # An exception must not cross C frames; XLA reports it as an error of the compilation.
            result = f"{type(error).__name__}: {error}".encode()
            text = call.header.message
            call.header.has_error, call.header.code = True, _INTERNAL
        if result is not None:
            text.point_to(result)
            call.header.data = number = next(self._calls)
            self._results[number] = result
            call.header.cleanup = ctypes.cast(self._cleanup, ctypes.c_void_p)

    def _on_cleanup(self, number: int) -> None:
        del self._results[number]


# The callbacks given to XLA. Never freed: a compilation on another thread may still call one that was removed.
_registered: list[Any] = []


def _transform_extension(api: int) -> _TransformExtension:
    extension = _Api.from_address(api).extensions
    while extension:
        if extension.contents.type == _TransformExtension.TYPE:
            if extension.contents.size >= ctypes.sizeof(_TransformExtension):
                return ctypes.cast(extension, ctypes.POINTER(_TransformExtension)).contents
            break
        extension = extension.contents.next
    raise RuntimeError("the plugin does not support transformations of HLO modules")
