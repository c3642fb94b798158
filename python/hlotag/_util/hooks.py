# SPDX-License-Identifier: Apache-2.0
"""Patches of JAX that are installed and removed together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

from hlotag._util.forks import free_in_children


class Hooks:
    """Patches of JAX; safe to install and remove from several threads.

    An interrupted change can be repeated or undone: every patch is installed and removed any number of times.

    Args:
        patches: Objects with `install` and `remove`, in the order in which they are installed.
        then: Called after the patches are removed.
    """

    def __init__(self, *patches: Any, then: Callable[[], object] = lambda: None) -> None:
        self._lock = free_in_children(threading.RLock())
        self._is_whole = False  # All patches are installed.
        self._is_gone = True  # None is installed.
        self.patches = patches
        self._then = then

    @property
    def are_installed(self) -> bool:
        """Whether all patches are installed."""
        return self._is_whole

    def install(self) -> None:
        """Installs the patches in JAX; idempotent."""
        with self._lock:
            if self._is_whole:
                return
            self._is_gone = False
            for patch in self.patches:
                patch.install()
            self._is_whole = True

    def remove(self, keep: Collection[Any] = ()) -> None:
        """Removes the patches, except those in `keep`; idempotent."""
        with self._lock:
            if self._is_gone:
                return
            self._is_whole = False
            for patch in reversed(self.patches):
                if patch not in keep:
                    patch.remove()
            self._then()
            self._is_gone = not keep
