# SPDX-License-Identifier: Apache-2.0
"""How is Ctrl-C held back? An interrupted compilation continues in XLA's threads, and would write to removed folders."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Holds Ctrl-C back until the block ends. Does nothing in threads other than the main one, which get no Ctrl-C.

    Yields:
        Nothing.

    Raises:
        KeyboardInterrupt: At the end, if one was held back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        # None: the handler is not Python's, and cannot be restored.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
        if came:
            signal.raise_signal(signal.SIGINT)
