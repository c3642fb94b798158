# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C held back while XLA compiles, and while several changes are made that belong together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hold() -> Iterator[None]:
    """Holds Ctrl-C back until the block ends, and raises KeyboardInterrupt then.

    Does nothing in threads other than the main one, which get no Ctrl-C, and if a signal runs no Python code, because it then
    raises nothing.
    """
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    came = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
