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
        removals = [_register_with_plugin(_api_of(plugin), callback, name.encode(), stage.value) for plugin in platforms]
        return lambda: [remove() for remove in removals]
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


def _structure(**fields: Any) -> Any:
    """A structure of C with these fields."""
    return type("Structure", (ctypes.Structure,), {"_fields_": [*fields.items()]})


_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p
_Function = ctypes.CFUNCTYPE(_POINTER, _POINTER)
_Api = _structure(size=_SIZE, extensions=_POINTER)  # the start of PJRT_Api
# PJRT_Xla_Transform_Extension, whose first three fields all extensions have.
_Extension = _structure(size=_SIZE, type=ctypes.c_int, next=_POINTER, register=_Function, clear=_Function)
_TYPE = 24  # PJRT_Extension_Type_XlaTransform in `pjrt_c_api.h`
_VERSION = 1  # PJRT_API_XLA_TRANSFORM_EXTENSION_VERSION
_INTERNAL = 13  # PJRT_Error_Code_INTERNAL
_Callbacks = _structure(version=ctypes.c_int64, dtor=_POINTER, transform=_POINTER)  # PJRT_XlaTransform_Callbacks
# PJRT_Register_Xla_Transform_Args and PJRT_Clear_Xla_Transform_Args
_Registration = _structure(size=_SIZE, name=ctypes.c_char_p, name_size=_SIZE, stage=ctypes.c_int, callbacks=_POINTER)
_Removal = _structure(
    size=_SIZE, stage=ctypes.c_int, name=ctypes.c_char_p, name_size=_SIZE, callbacks=_POINTER, cleared=ctypes.c_bool
)
_Text = _structure(data=_POINTER, size=_SIZE)  # PJRT_XlaTransform_string
# PJRT_XlaTransform_Args; the fields from version to message are its PJRT_XlaTransform_version_and_error.
_Call = _structure(
    size=_SIZE,
    version=ctypes.c_int64,
    data=_POINTER,
    cleanup=_POINTER,
    has_error=ctypes.c_bool,
    code=ctypes.c_int,
    message=_Text,
    module=_Text,
    result=_Text,
    changed=ctypes.c_bool,
)

# The callbacks given to XLA. Never freed: a compilation on another thread may still call one that was removed.
_registered: list[Any] = []


def _register_with_plugin(api: int, callback: Callback, name: bytes, stage: int) -> Callable[[], Any]:
    """Registers a callback with the plugin that has its `PJRT_Api` at an address; returns the function that removes it."""
    extension = _transform_extension(api)
    results: dict[int, bytes] = {}  # by call, the text that XLA reads after the call
    calls = itertools.count(1)

    @ctypes.CFUNCTYPE(None, _POINTER)
    def clean_up(number: int) -> None:
        del results[number]

    @ctypes.CFUNCTYPE(None, _POINTER, ctypes.POINTER(_Call))
    def transform(_: int, pointer: Any) -> None:
        call = pointer.contents
        try:
            result, text = callback(ctypes.string_at(call.module.data, call.module.size)), call.result
            call.changed = result is not None
        except BaseException as error:  # An exception must not cross C frames; XLA reports it as an error of the compilation.
            result, text = f"{type(error).__name__}: {error}".encode(), call.message
            call.has_error, call.code = True, _INTERNAL
        if result is not None:
            text.data, text.size = ctypes.cast(ctypes.c_char_p(result), _POINTER), len(result)
            call.data = number = next(calls)
            results[number] = result
            call.cleanup = ctypes.cast(clean_up, _POINTER)

    callbacks = _Callbacks(_VERSION, None, ctypes.cast(transform, _POINTER))
    arguments = _Registration(ctypes.sizeof(_Registration), name, len(name), stage, ctypes.addressof(callbacks))
    if extension.register(ctypes.addressof(arguments)):
        raise RuntimeError("the plugin refuses the transformation")
    _registered.append((callbacks, transform, clean_up))
    removal = _Removal(ctypes.sizeof(_Removal), stage, name, len(name))
    return lambda: extension.clear(ctypes.addressof(removal))


def _transform_extension(api: int) -> Any:
    address = _Api.from_address(api).extensions
    while address:
        extension = _Extension.from_address(address)
        if extension.type == _TYPE and extension.size >= ctypes.sizeof(_Extension):
            return extension
        address = extension.next
    raise RuntimeError("the plugin does not support transformations of HLO modules")
