# SPDX-License-Identifier: Apache-2.0
"""Values grouped by a key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def group(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Collects the values of each key. Keys and values keep their order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
