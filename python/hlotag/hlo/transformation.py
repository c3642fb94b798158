# SPDX-License-Identifier: Apache-2.0
"""A place inside XLA: functions that change the HLO module of one compilation, near the end of XLA's pipeline.

XLA calls what `_compat.register_transformation` registered for every module that any thread compiles. One callback of ours is
registered for a platform; it knows by a token in the names of instructions which compilation a module belongs to, and leaves all
others alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hlotag import _compat
from hlotag.hlo.module import HloModule, of_executable

_NAME = "hlotag"

Transform = Callable[[bytes], bytes | None]
# Compiles a module as the compilation in hand would.
Compile = Callable[[Any], Any]


class Transformations:
    """The transformations of the compilations that are running now, and the platforms that call them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Equal modules have equal tokens; compiled at the same time, each has its own entry, and any of them will do.
        self._running: dict[str, list[Transform]] = {}
        self._platforms = _Platforms(self._on_module)
        self._interrupted = False

    def platform(self, backend: Any, options: bytes, compile_module: Compile) -> Platform | None:
        """What XLA for `backend` does with a module that was transformed; found out with a small program, once for a platform.

        Args:
          backend: the client or topology that compiles.
          options: digest of the compiler options, which may turn transformations off.
          compile_module: compiles an `ir.Module` for it, with these options.

        Returns:
          The platform, or None if XLA is known not to call transformations there with these options.
        """
        return self._platforms.ready(backend, options, compile_module, self)

    def is_called(self, backend: Any, options: bytes, compile_module: Compile) -> bool:
        """Whether XLA calls transformations with these options, for a compilation in which it did not.

        Args:
          backend: as for `platform`.
          options: as for `platform`.
          compile_module: as for `platform`.
        """
        return self._platforms.is_called(backend, options, compile_module, self)

    @contextmanager
    def running(self, token: str, transform: Transform) -> Iterator[None]:
        """While the block compiles a module with `token` in its names, `transform` gets what XLA made of it.

        The result of `transform` replaces the module.
        """
        with self._lock:
            self._running.setdefault(token, []).append(transform)
        try:
            yield
        finally:
            with self._lock:
                self._running[token].remove(transform)
                if not self._running[token]:
                    del self._running[token]
            if self._interrupted and threading.current_thread() is threading.main_thread():
                self._interrupted = False
                raise KeyboardInterrupt

    def clear(self) -> None:
        """Unregisters the callback from XLA; it is registered again on demand."""
        self._platforms.clear()

    def _on_module(self, serialized: bytes) -> bytes | None:
        try:
            with self._lock:
                transform = next((all_[0] for token, all_ in self._running.items() if is_numbered(serialized, token)), None)
            return None if transform is None else transform(serialized)
        except KeyboardInterrupt:  # XLA would turn it into an ordinary error.
            self._interrupted = True
            return None


def is_numbered(serialized: bytes, token: str) -> bool:
    """Whether names in a serialized HLO module have numbers of the compilation with that token."""
    return f"\x01{token}:".encode() in serialized


def is_named(serialized: bytes, name: str) -> bool:
    """Whether a serialized HLO module has that name: its first field, since XLA writes fields in order."""
    written = name.encode()
    size = len(written)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return serialized.startswith(b"\n" + length + written)


@dataclass(frozen=True)
class Platform:
    """What XLA for one platform does with a module that was transformed.

    Attributes:
      keeps_aliases: whether it still reuses the memory of donated arguments; jaxlib 0.10's does not.
      renumbers_frames: whether it numbers stack frames anew.
    """

    keeps_aliases: bool
    renumbers_frames: bool


class _Platforms:
    """The platforms that the callback is registered for."""

    def __init__(self, callback: Callable[[bytes], bytes | None]):
        self._callback = callback
        self._lock = threading.Lock()
        # By platform: what is known of it; and what takes the callback out, while it is registered.
        self._known: dict[str, Platform] = {}
        self._registered: dict[str, Callable[[], Any]] = {}
        # The platforms and options with which XLA did not call it.
        self._silent: set[tuple[str, bytes]] = set()

    def ready(self, backend: Any, options: bytes, compile_module: Compile, transformations: Transformations) -> Platform | None:
        platform = backend.platform
        with self._lock:
            if platform not in self._registered and not self._register(backend):
                return None
            if platform not in self._known and (platform, options) not in self._silent:
                self._try(platform, options, compile_module, transformations)
            return None if (platform, options) in self._silent else self._known[platform]

    def is_called(self, backend: Any, options: bytes, compile_module: Compile, transformations: Transformations) -> bool:
        with self._lock:
            self._try(backend.platform, options, compile_module, transformations)
            return (backend.platform, options) not in self._silent

    def clear(self) -> None:
        with self._lock:
            if not self._registered:
                return
            for remove in self._registered.values():
                remove()
            self._registered.clear()

    def _register(self, backend: Any) -> bool:
        # A module that was read back has its users in another order, which decides ties between instructions that a scheduler
        # could run in either order. GPU's is handed over before fusion in the earlier stage.
        stage = _compat.PipelineStage.POST_SCHEDULER
        try:
            remove = _compat.register_transformation(backend, self._callback, name=_NAME, stage=stage)
        except Exception:
            return False
        self._registered[backend.platform] = remove
        return True

    def _try(self, platform: str, options: bytes, compile_module: Compile, transformations: Transformations) -> None:
        """Compiles a small program, to see whether the callback is called, and what XLA does with the module it gives."""
        sources: dict[str, Any] = {}

        def see(serialized: bytes) -> bytes:
            sources.update({i.name: i.source for i in HloModule(serialized).instructions()})
            return serialized

        with transformations.running(_PROBE_TOKEN, see):
            executable = compile_module(_compat.read_bytecode(_PROBE))
        if not sources:
            self._silent.add((platform, options))
            return
        after = {i.name: i.source for module in of_executable(executable) for i in module.instructions()}
        self._known[platform] = Platform(
            keeps_aliases=any("input_output_alias" in module.to_string() for module in executable.hlo_modules()),
            renumbers_frames=any(after.get(name, source) != source for name, source in sources.items()),
        )


_PROBE_TOKEN = "0123456789abcdef"

# The sine is first in the program, the cosine in what XLA makes of it: their frames are numbered in either order.
_PROBE = f"""
module @hlotag_probe {{
  func.func public @main(%x: tensor<4xf32> {{tf.aliasing_output = 0 : i32}}) -> tensor<4xf32> {{
    %0 = stablehlo.sine %x : tensor<4xf32> loc("\\01{_PROBE_TOKEN}:0\\01/jit(f)/sin"("f"("f.py":1:1)))
    %1 = stablehlo.cosine %x : tensor<4xf32> loc("\\01{_PROBE_TOKEN}:1\\01/jit(f)/cos"("f"("f.py":2:1)))
    %2 = stablehlo.subtract %1, %0 : tensor<4xf32> loc("\\01{_PROBE_TOKEN}:2\\01/jit(f)/sub"("f"("f.py":3:1)))
    return %2 : tensor<4xf32>
  }}
}}
""".encode()
