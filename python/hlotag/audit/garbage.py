# SPDX-License-Identifier: Apache-2.0
"""Python's garbage collector, kept out of what it would only delay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Keeps the collector from looking through what is only being built: beside a program of JAX's it takes as long as all else.

    Yields:
        Nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
