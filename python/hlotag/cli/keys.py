# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag keys`: the catalogue of keys, as a table or as JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hlotag._util.arguments import did_you_mean, show
from hlotag.cli import terminal
from hlotag.errors import HlotagError
from hlotag.tagging.keys import Key, catalogue

if TYPE_CHECKING:
    from rich.table import Table

_HEADER = ("name", "values", "ops", "consumer", "derived")
_GAP = 2
_WIDE = 80  # from this width on, names are not wrapped
_EXAMPLES = """\
examples:
  hlotag keys                       # all of them
  hlotag keys '_xla_*' MUST_FUSE
  hlotag keys --json | jq '.[].name'
"""


def add_to(commands: terminal.Commands) -> None:
    """Adds the command."""
    parser = terminal.add_command(
        commands,
        "keys",
        _run,
        help="list the keys that XLA knows, with their legal values",
        description="Lists the keys that XLA knows, with their legal values.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "pattern", nargs="*", metavar="NAME-GLOB", help="only these, described; * stands for any text, ? for one character"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, descriptions included")


def _run(args: argparse.Namespace) -> int:
    keys = [key for key in catalogue() if not args.pattern or any(fnmatchcase(key.name, p) for p in args.pattern)]
    unmatched = [p for p in args.pattern if not any(fnmatchcase(key.name, p) for key in keys)]
    if unmatched:
        # Empty output would suggest that the key is known.
        meant = did_you_mean(unmatched[0], [key.name for key in catalogue()]) or "; unknown keys may have any value"
        raise HlotagError(f"no known key matches {', '.join(map(show, unmatched))}{meant}")
    if args.json:
        print(json.dumps([as_json(key) for key in keys], indent=2))
    else:
        console = terminal.console()
        console.print(table(keys, console.width))
        for key in keys if args.pattern else ():
            console.print(f"\n{key.name}: {describe(key)}", markup=False)
    return 0


def as_json(key: Key) -> dict[str, object]:
    """A key as JSON, with its legal values as text and by kind."""
    return {**dataclasses.asdict(key), "values": key.values and {**dataclasses.asdict(key.values), "text": str(key.values)}}


def table(keys: Sequence[Key], width: int) -> Table:
    """Makes a rich table of keys for the width of the terminal."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for name in _HEADER:
        grid.add_column(name, overflow="fold", no_wrap=name == "name" and width >= _WIDE)
    for key in keys:
        grid.add_row(*map(Text, cells(key)), style="dim" if key.reserved else "")
    return grid


def cells(key: Key) -> tuple[str, ...]:
    """The columns of the table."""
    values = "reserved" if key.reserved else str(key.values) if key.values else "any text"
    return key.name, values, ", ".join(key.ops), _consumer(key), "" if key.reserved else key.derived


def _consumer(key: Key) -> str:
    """The compilers that were seen to read a key, then those that only XLA's source names."""
    if key.reserved or not key.readers:
        return key.consumer
    unseen = f"not seen: {', '.join(key.unseen)}" if key.unseen else ""
    return "; ".join(filter(None, (", ".join(key.seen), unseen)))


def describe(key: Key) -> str:
    """What a key does, and what an illegal value does."""
    return f"{key.doc} With another value {key.otherwise}." if key.otherwise else key.doc
