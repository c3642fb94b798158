# SPDX-License-Identifier: Apache-2.0
"""Data attached to live objects that cannot be dictionary keys."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class ByIdentity(Generic[V]):
    """A dictionary that compares keys by identity and holds them weakly."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], V]] = {}

    def __setitem__(self, key: Any, value: V) -> None:
        number = id(key)
        self._entries[number] = weakref.ref(key, lambda _: self._entries.pop(number, None)), value

    def get(self, key: Any) -> V | None:
        return self._entries[id(key)][1] if id(key) in self._entries else None

    def __len__(self) -> int:
        return len(self._entries)
