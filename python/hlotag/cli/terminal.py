# SPDX-License-Identifier: Apache-2.0
"""What the commands have in common: errors in words, colours, and a line that says what takes long."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hlotag._util.files import write_atomically
from hlotag._util.text import printable
from hlotag.errors import HlotagError

_PATIENCE = 1.0  # seconds without a word
_BIG = 4 << 20  # bytes that MLIR reads in about a second
_COLOURS = {"error": "31", "warning": "35", "note": "36"}
_INTERRUPTED = 130  # as shells have it


def has_colours(stream: IO[Any]) -> bool:
    """Whether to write colours to a stream: to terminals that have some, unless NO_COLOR is set (https://no-color.org)."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def say(text: str) -> None:
    """Prints to stderr; on a terminal the words "error:", "warning:" and "note:" stand out, as in clang's messages.

    Args:
        text: One or more messages, each `place: error: words`.
    """
    text = printable(text, keep="\n\t")
    if has_colours(sys.stderr):
        text = re.sub(
            r"^((?:.*?: )?)(error|warning|note):",
            lambda found: f"{found[1]}\x1b[1;{_COLOURS[found[2]]}m{found[2]}:\x1b[0m",
            text,
            flags=re.MULTILINE,
        )
    print(text, file=sys.stderr)


def write_output(path: str, content: str | bytes) -> None:
    """Writes a file that the user named; `-` is standard output.

    Args:
        path: The file; its folder is there, since one that is not is more likely misspelt than wanted.
        content: What is to be in it.

    Raises:
        OSError: It cannot be written; an old file is as it was.
    """
    if path == "-":
        sys.stdout.buffer.write(content.encode() if isinstance(content, str) else content)
        sys.stdout.buffer.flush()
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
    write_atomically(path, content, private=False)


def run(program: str, failure: int, work: Callable[[], int]) -> int:
    """Runs a command so that nothing ends in a traceback that a user can cause.

    Args:
        program: What errors begin with.
        failure: The exit status of a failure.
        work: The command; returns its exit status.

    Returns:
        The exit status.
    """
    try:
        status = work()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Who reads has seen enough. What is still buffered must not complain when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        say(f"{program}: error: {place}{error.strerror or error}")
    except HlotagError as error:
        say(f"{program}: error: {error}")
    return failure


class Progress:
    """Says on stderr, if that is a terminal, what a command is at when it takes more than a second."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    @contextmanager
    def __call__(self, doing: str, size: int = 0) -> Iterator[None]:
        """A step of the command; nothing else may be printed meanwhile.

        Args:
            doing: What is shown.
            size: Bytes of text to parse. MLIR keeps Python from running meanwhile, so where it will take long that is said first.
        """
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield
            return
        line = _Line(doing)
        left = self._since + _PATIENCE - time.monotonic()
        timer = threading.Timer(left, line.show)
        if size > _BIG or left <= 0:
            line.show()
        else:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            line.remove()


class _Line:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._status: Any = None
        self._over = False

    def show(self) -> None:
        from rich.console import Console

        with self._lock:
            if not self._over:
                self._status = Console(stderr=True).status(self._text)
                self._status.start()

    def remove(self) -> None:
        with self._lock:
            self._over = True
            if self._status is not None:
                self._status.stop()
