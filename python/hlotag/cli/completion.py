# SPDX-License-Identifier: Apache-2.0
"""`hlotag completion`: what a shell needs to complete the commands, made by the library shtab."""

from __future__ import annotations

import argparse
from typing import Any

from hlotag.errors import HlotagError
from hlotag.passes.pipeline import list_passes
from hlotag.tagging.keys import catalogue

SHELLS = ("bash", "zsh", "tcsh", "fish")
_FILES = {"FILE": "FILE", "DIR": "DIRECTORY"}


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """What a shell is to read.

    Args:
        shell: One of `SHELLS`.
        parser: Of the program to complete.

    Returns:
        The text.

    Raises:
        HlotagError: shtab is not installed, or does not know the shell.
    """
    try:
        import shtab
    except ImportError:
        raise HlotagError("completions are made by shtab; install it: pip install 'hlotag[completion]'") from None
    if shell not in shtab.SUPPORTED_SHELLS:
        raise HlotagError(f"this shtab knows {', '.join(shtab.SUPPORTED_SHELLS)}, and not {shell}; a newer one may")
    _complete(parser, shtab)
    return shtab.complete(parser, shell)


def _complete(parser: argparse.ArgumentParser, shtab: Any) -> None:
    """Says which arguments are files, passes and keys."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in {id(p): p for p in action.choices.values()}.values():
                _complete(command, shtab)
        elif (kind := _FILES.get(str(action.metavar))) is not None:
            action.complete = getattr(shtab, kind)  # type: ignore[attr-defined]
        elif action.metavar == "PASS":
            action.choices = [info.name for info in list_passes()]
        elif action.metavar == "NAME-GLOB":
            action.choices = [key.name for key in catalogue() if "*" not in key.name]
