# SPDX-License-Identifier: Apache-2.0
"""The declaration of commands, their errors, and the files that they write."""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeAlias, cast

from hlotag._text import printable
from hlotag._util.columns import columns
from hlotag._util.files import write_atomically
from hlotag.errors import HlotagError

if TYPE_CHECKING:
    from rich.console import Console

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

STDIN = "<stdin>"  # the name of standard input in messages
_STYLES = {"error": "bold red", "warning": "bold magenta", "note": "bold cyan"}
_SEVERITY = r"(?m)^(?:.*?: )?(?:(?P<error>error:)|(?P<warning>warning:)|(?P<note>note:))"
_PADDING = re.compile(r" +(?=\n)")
_INTERRUPTED = 130  # the exit status of shells after SIGINT


def add_command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], *, failure: int = 1, **kwargs: Any
) -> argparse.ArgumentParser:
    """Adds a command to a program. `run` returns its exit status, which is `failure` after an error.

    `kwargs` are those of `argparse.ArgumentParser`.
    """
    parser = commands.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)
    parser.set_defaults(run=run, failure=failure, parser=parser)
    return parser


def add_moved(parser: argparse.ArgumentParser, flag: str, metavar: str, instead: str) -> None:
    """Declares a flag that is gone. Its use is an error that says what to write instead."""

    class Moved(argparse.Action):
        def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
            given = {"program": getattr(namespace, "program", None) or getattr(namespace, "file", None) or "PROGRAM"}
            parser.error(f"{flag} is gone: write {instead.format(values, **given)}")

    parser.add_argument(flag, action=Moved, metavar=metavar, help=argparse.SUPPRESS)


def say(text: str) -> None:
    """Prints messages to stderr, each `place: error: words`.

    On a terminal the words "error:", "warning:" and "note:" stand out, as in clang's messages.
    """
    from rich.console import Console
    from rich.text import Text
    from rich.theme import Theme

    message = Text(printable(text, keep="\n\t"))
    message.highlight_regex(_SEVERITY)
    Console(stderr=True, theme=Theme(_STYLES)).print(message, soft_wrap=True)


def console(*, stderr: bool = False) -> Console:
    """Where a command prints tables and listings. In a file or pipe, no line is broken, cut or filled with spaces."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, width=columns(stream), highlight=False)
    return Console(file=cast("IO[str]", _WithoutPadding(stream)), width=columns(stream), highlight=False)


class _WithoutPadding(io.TextIOBase):
    """Writes to a stream, lines without the spaces at their ends: rich fills a line up to the console's width."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        self._stream.write(_PADDING.sub("", text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def write_output(path: str, content: str | bytes) -> None:
    """Writes a file, or standard output if `path` is `-`. The folder must exist: a missing one is probably misspelt."""
    if path == "-":
        sys.stdout.buffer.write(content.encode() if isinstance(content, str) else content)
        sys.stdout.buffer.flush()
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
    write_atomically(path, content, private=False)


def run(program: str, failure: int, work: Callable[[], int]) -> int:
    """Runs a command and returns its exit status. Prints user errors without a traceback; `failure` is the status then."""
    try:
        status = work()
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe. Let the interpreter's flush at exit succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (HlotagError, OSError) as error:
        say(f"{program}: error: {in_words(error)}")
    return failure


def in_words(error: HlotagError | OSError) -> str:
    """What a user reads of an error: of one of the system's, the file and what is wrong with it."""
    if not isinstance(error, OSError):
        return str(error)
    place = f"{error.filename}: " if error.filename is not None else ""
    return f"{place}{error.strerror or error}"
