# SPDX-License-Identifier: Apache-2.0
"""A change of one compilation's HLO module, near the end of XLA's pipeline.

XLA calls a callback (`_compat.transformations`) for every module that any thread compiles. hlotag registers one callback for each
platform at the end, and one before the scheduler once a compilation needs it. A token in the names of instructions tells a
callback which compilation a module belongs to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from hlotag import _compat
from hlotag._util.forks import free_in_children
from hlotag.hlo.module import HloModule, of_executable

_NAME = "hlotag"

# Reading a module back changes the order of users, which decides ties in a scheduler. So tags are restored after scheduling, and
# only what the compiler reads later is given back before. On GPU, the earlier stage is also before fusion.
LAST = _compat.transformations.PipelineStage.POST_SCHEDULER
BEFORE_SCHEDULER = _compat.transformations.PipelineStage.PRE_SCHEDULER

Transform = Callable[[bytes], bytes | None]
# Compiles a module with the backend and options of the current compilation.
Compile = Callable[[Any], Any]


class Transformations:
    """The transformations of running compilations, and the platforms whose compilers call them."""

    def __init__(self) -> None:
        self._lock = free_in_children(threading.Lock())
        # By stage and token. Equal modules have equal tokens. If they are compiled at the same time, any of their transformations
        # will do.
        self._running: dict[tuple[Any, str], list[Transform]] = {}
        # Guards the fields below. Held while a small program is compiled, whose callback takes the other lock.
        self._platforms_lock = free_in_children(threading.Lock())
        self._known: dict[str, Platform] = {}
        # By platform and stage, the function that unregisters the callback.
        self._registered: dict[tuple[str, Any], Callable[[], Any]] = {}
        # The platforms and options with which XLA did not call the callback.
        self._silent: set[tuple[str, bytes]] = set()

    def platform(self, backend: Any, options: bytes, compile_module: Compile) -> Platform | None:
        """How XLA for a client or topology treats transformed modules.

        Compiles a small program to find out, once for each platform. `options` is a digest of the compiler options, with which
        `compile_module` compiles an `ir.Module`. None if XLA does not call transformations there with these options.
        """
        platform = backend.platform
        with self._platforms_lock:
            if not self._register(backend, LAST):
                return None
            if platform not in self._known and (platform, options) not in self._silent:
                self._try(platform, options, compile_module)
            return None if (platform, options) in self._silent else self._known[platform]

    def is_called(self, backend: Any, options: bytes, compile_module: Compile) -> bool:
        """Whether XLA calls transformations with these options. Tries again after a compilation without a call."""
        with self._platforms_lock:
            self._try(backend.platform, options, compile_module)
            return (backend.platform, options) not in self._silent

    def is_called_before_scheduler(self, backend: Any) -> bool:
        """Registers the callback before the scheduler of a platform. False if its compiler does not support that."""
        with self._platforms_lock:
            return self._register(backend, BEFORE_SCHEDULER)

    @contextmanager
    def running(self, token: str, transform: Transform, stage: Any = LAST) -> Iterator[None]:
        """A block that compiles a module with `token` in its names. `transform(module)` replaces the module in XLA at a stage."""
        with self._lock:
            self._running.setdefault((stage, token), []).append(transform)
        try:
            yield
        finally:
            with self._lock:
                self._running[stage, token].remove(transform)
                if not self._running[stage, token]:
                    del self._running[stage, token]

    def clear(self) -> None:
        """Unregisters the callback from XLA; it is registered again on demand."""
        with self._platforms_lock:
            while self._registered:
                _, remove = self._registered.popitem()  # First: what is unregistered must not count as registered.
                remove()

    def _on_module(self, stage: Any, serialized: bytes) -> bytes | None:
        with self._lock:
            of_stage = ((token, all_[0]) for (at, token), all_ in self._running.items() if at == stage)
            transform = next((first for token, first in of_stage if is_numbered(serialized, token)), None)
        return None if transform is None else transform(serialized)

    def _register(self, backend: Any, stage: Any) -> bool:
        if (backend.platform, stage) in self._registered:
            return True
        try:
            remove = _compat.transformations.register_transformation(
                backend, partial(self._on_module, stage), name=_NAME, stage=stage
            )
        except RuntimeError:
            return False
        self._registered[backend.platform, stage] = remove
        return True

    def _try(self, platform: str, options: bytes, compile_module: Compile) -> None:
        """Compiles a small program, to find out whether XLA calls the callback and how it treats the returned module."""
        sources: dict[str, Any] = {}

        def record(serialized: bytes) -> bytes:
            sources.update({i.name: i.source for i in HloModule(serialized).instructions()})
            return serialized

        with self.running(_PROBE_TOKEN, record):
            executable = compile_module(_compat.modules.read_bytecode(_PROBE))
        if not sources:
            self._silent.add((platform, options))
            return
        after = {i.name: i.source for module in of_executable(executable) for i in module.instructions()}
        # Keep the first result: XLA numbers frames differently when it compiles the same program again.
        known = Platform(
            keeps_aliases=any("input_output_alias" in module.to_string() for module in executable.hlo_modules()),
            renumbers_frames=any(after.get(name, source) != source for name, source in sources.items()),
        )
        self._known.setdefault(platform, known)


def is_numbered(serialized: bytes, token: str) -> bool:
    """Whether names in a serialized HLO module have the token of a compilation."""
    return f"\x01{token}:".encode() in serialized


def is_named(serialized: bytes, name: str) -> bool:
    """Whether a serialized HLO module has this name. The name is the first field, because XLA writes fields in order."""
    written, length = name.encode(), b""
    size = len(written)
    while size > 127:  # A varint: seven bits in each byte.
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return serialized.startswith(b"\n" + length + bytes([size]) + written)


@dataclass(frozen=True)
class Platform:
    """How XLA for one platform treats transformed modules.

    Attributes:
        keeps_aliases: Whether it still reuses the memory of donated arguments; jaxlib 0.10's does not.
        renumbers_frames: Whether it renumbers stack frames.
    """

    keeps_aliases: bool
    renumbers_frames: bool


_PROBE_TOKEN = "0123456789abcdef"

# The program has the sine first and XLA's module the cosine, so a renumbering of frames is visible.
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
