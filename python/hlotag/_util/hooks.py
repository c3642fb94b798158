# SPDX-License-Identifier: Apache-2.0
"""How are several patches of JAX installed and removed together?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any


class Hooks:
    """Patches of JAX; safe to install and remove from several threads.

    Args:
      patches: objects with `install` and `remove`, in the order in which they are installed.
      then: called after the patches are removed.
    """

    def __init__(self, *patches: Any, then: Callable[[], object] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._installed = False
        self._patches = patches
        self._then = then

    def install(self) -> None:
        """Installs the patches in JAX; idempotent."""
        with self._lock:
            if not self._installed:
                for patch in self._patches:
                    patch.install()
            self._installed = True

    def remove(self, keep: Collection[Any] = ()) -> None:
        """Removes the patches, except those in `keep`; idempotent."""
        with self._lock:
            if self._installed:
                for patch in reversed(self._patches):
                    if patch not in keep:
                        patch.remove()
                self._then()
            self._installed = False
