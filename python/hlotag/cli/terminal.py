# SPDX-License-Identifier: Apache-2.0
"""What the commands have in common: how they are declared and run, and how they print errors."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from hlotag._util.files import write_atomically
from hlotag._util.text import printable
from hlotag.errors import HlotagError

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_STYLES = {"error": "bold red", "warning": "bold magenta", "note": "bold cyan"}
_SEVERITY = r"(?m)^(?:.*?: )?(?:(?P<error>error:)|(?P<warning>warning:)|(?P<note>note:))"
_INTERRUPTED = 130  # as shells have it


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], *, failure: int = 1, **kwargs: Any
) -> argparse.ArgumentParser:
    """Adds a command to a program.

    Args:
        commands: Those of the program.
        name: The command.
        run: Runs it on its arguments, and returns the exit status.
        failure: The exit status if it raises.
        **kwargs: As for `argparse.ArgumentParser`.

    Returns:
        The command's parser.
    """
    parser = commands.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)
    parser.set_defaults(run=run, failure=failure, parser=parser)
    return parser


def say(text: str) -> None:
    """Prints to stderr; on a terminal the words "error:", "warning:" and "note:" stand out, as in clang's messages.

    Args:
        text: One or more messages, each `place: error: words`.
    """
    from rich.console import Console
    from rich.text import Text
    from rich.theme import Theme

    message = Text(printable(text, keep="\n\t"))
    message.highlight_regex(_SEVERITY)
    Console(stderr=True, theme=Theme(_STYLES)).print(message, soft_wrap=True)


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
        # The reader closed the pipe. The interpreter flushes what is still buffered when the process ends; let that succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        say(f"{program}: error: {place}{error.strerror or error}")
    except HlotagError as error:
        say(f"{program}: error: {error}")
    return failure
