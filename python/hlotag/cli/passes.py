# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag passes`."""

from __future__ import annotations

import argparse
import textwrap

from hlotag.cli import terminal
from hlotag.errors import ArgumentError
from hlotag.passes.pipeline import list_passes

_EXAMPLES = """\
examples:
  hlotag passes
  hlotag passes hlotag-strip hlotag-attach
"""


def add_to(commands: terminal.Commands) -> None:
    """Adds the command."""
    parser = terminal.add_command(
        commands, "passes", _run, help="describe the passes", description="Describes hlotag's passes.", epilog=_EXAMPLES
    )
    parser.add_argument("name", nargs="*", metavar="PASS", help="only these")


def _run(args: argparse.Namespace) -> int:
    known = {info.name: info for info in list_passes()}
    unknown = [name for name in args.name if name not in known]
    if unknown:
        ours_first = sorted(known, key=lambda name: (not name.startswith("hlotag-"), name))
        raise ArgumentError(f"no such pass: {', '.join(unknown)}; there are: {', '.join(ours_first)}")
    for name in args.name or known:
        info = known[name]
        print(f"{info.name}: {info.summary}\n\n{textwrap.indent(info.description, '  ')}\n")
        for option in info.options:
            print(f"  {option.name} ({option.type}, default {option.default}): {option.description}")
        print()
    return 0
