# SPDX-License-Identifier: Apache-2.0
"""The reports made while a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A block that yields a list of the reports made within it, in its thread. The innermost block gets each report.

    Args:
        name: The name of the context variable.
    """

    def __init__(self, name: str) -> None:
        self._list: ContextVar[list[T] | None] = ContextVar(name, default=None)

    @contextmanager
    def __call__(self) -> Iterator[list[T]]:
        kept: list[T] = []
        token = self._list.set(kept)
        try:
            yield kept
        finally:
            self._list.reset(token)

    def innermost(self) -> list[T] | None:
        """The list of the innermost block, for callbacks in other threads; None outside of blocks."""
        return self._list.get()
