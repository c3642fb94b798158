# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag completion`: a shell's completion script, made by the library shtab."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from hlotag.cli import terminal
from hlotag.errors import HlotagError
from hlotag.passes.pipeline import list_passes
from hlotag.tagging.keys import catalogue

_SHELLS = ("bash", "zsh", "tcsh", "fish")
_FILES = {"FILE": "FILE", "DIR": "DIRECTORY"}
_EXAMPLES = """\
examples:
  eval "$(hlotag completion bash)"          # for this shell
  hlotag completion bash > ~/.local/share/bash-completion/completions/hlotag
  hlotag completion zsh --program hlotag-opt > ~/.zfunc/_hlotag-opt
"""


def add_to(commands: terminal.Commands, of_all: argparse.ArgumentParser) -> None:
    """Adds the command; `of_all` is the parser of all commands."""
    parser = terminal.add_command(
        commands,
        "completion",
        partial(_run, {"hlotag": of_all, "hlotag-opt": commands.choices["opt"]}),
        help="print a shell's completion script",
        description="Prints a shell's completion script for the commands' flags, passes, keys and files.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("shell", choices=_SHELLS)
    parser.add_argument("--program", choices=("hlotag", "hlotag-opt"), default="hlotag", help="which (default: hlotag)")


def _run(parsers: dict[str, argparse.ArgumentParser], args: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise HlotagError("completion needs shtab; install it: pip install 'hlotag[completion]'") from None
    if args.shell not in shtab.SUPPORTED_SHELLS:
        raise HlotagError(
            f"this shtab supports {', '.join(shtab.SUPPORTED_SHELLS)}, not {args.shell}; upgrade it: pip install -U shtab"
        )
    _complete(parsers["hlotag"], shtab)
    print(shtab.complete(parsers[args.program], args.shell))
    return 0


def _complete(parser: argparse.ArgumentParser, shtab: Any) -> None:
    """Declares which arguments are files, passes and keys, and adds the passes' flags."""
    for info in list_passes() if parser.prog == "hlotag-opt" else ():
        parser.add_argument(f"--{info.name}", metavar="OPTIONS", help=info.summary.replace("%", "%%"))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete(command, shtab)
        elif (kind := _FILES.get(str(action.metavar))) is not None:
            action.complete = getattr(shtab, kind)  # type: ignore[attr-defined]
        elif action.metavar == "PASS":
            action.choices = [info.name for info in list_passes()]
        elif action.metavar == "NAME-GLOB":
            action.choices = [key.name for key in catalogue() if "*" not in key.name]
