# SPDX-License-Identifier: Apache-2.0
"""The entry points: `hlotag` with its commands, and `hlotag-opt`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hlotag._util.version import VERSION
from hlotag.cli import audit, compare, keys, opt, profile, report, terminal

_EXAMPLES = """\
examples:
  hlotag opt module.mlir --hlotag-propagate
  hlotag audit module.mlir --fail-if lost:_scheduling_group_id
  hlotag profile train.py:step --by layer
  hlotag compare train.py:step --rules none --rules groups.toml
  hlotag keys '_xla_*'

hlotag COMMAND --help has the flags of a command, with examples.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `hlotag` with the process's arguments, or others; returns the exit status."""
    given = sys.argv[1:] if argv is None else argv
    if status := terminal.run("hlotag-opt", 1, lambda: opt.load_plugins_for_help(given) or 0):
        return status
    args, unknown = parser().parse_known_args(given)
    if args.run is opt.run:
        args.passes = unknown
    elif unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return terminal.run(args.parser.prog, args.failure, lambda: args.run(args))


def opt_main(argv: Sequence[str] | None = None) -> int:
    """Runs `hlotag-opt`, which is `hlotag opt`; returns the exit status: 0, or 1 after an error, printed to stderr."""
    return main(["opt", *(sys.argv[1:] if argv is None else argv)])


def parser() -> argparse.ArgumentParser:
    """The parser of all commands; shtab makes completion scripts of it."""
    made = argparse.ArgumentParser(
        prog="hlotag",
        description="Tags on the operations of a JAX program.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action="version", version=f"hlotag {VERSION}")
    commands = made.add_subparsers(metavar="COMMAND", required=True)
    for command in (opt, audit, profile, report, compare, keys):
        command.add_to(commands)
    return made
