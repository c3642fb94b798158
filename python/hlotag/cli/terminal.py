# SPDX-License-Identifier: Apache-2.0
"""What the commands have in common: errors in words, and colours."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from hlotag._util.files import write_atomically
from hlotag._util.text import printable
from hlotag.errors import HlotagError

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
