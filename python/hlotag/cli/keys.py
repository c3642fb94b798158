# SPDX-License-Identifier: Apache-2.0
"""The command `hlotag keys`: the catalogue of keys as a table for a terminal, as JSON, and as the page `docs/keys.md`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import textwrap
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hlotag.cli import terminal
from hlotag.errors import HlotagError
from hlotag.tagging.keys import Key, catalogue

if TYPE_CHECKING:
    from rich.table import Table

_HEADER = ("name", "values", "ops", "consumer", "derived")
_GAP = 2
_UNBOUNDED = 10_000
_WIDE = 80  # from this width on, names are not wrapped
_EXAMPLES = """\
examples:
  hlotag keys                       # all of them
  hlotag keys '_xla_*' MUST_FUSE
  hlotag keys --json | jq '.[].name'
"""

_PAGE = """\
<!-- Made by `hlotag keys --markdown` from python/hlotag/tagging/catalogue.py; do not edit. -->
# Keys

The keys of `mhlo.frontend_attributes` that XLA's compilers read. A value that is not legal is a `TagError` on the line
that tags. On a terminal, `hlotag keys` prints the same as a table.

Any other key is free: all values are legal, and derived operations get it too. `hlotag.register_key` adds your own. A
key that looks like one below (`group`, `_scheduling_group`) warns once at the line that tags.

- **Read by**: the compilers that make something else of a program with the key. *Not seen* marks those that XLA's
  source or JAX says read it, and that did not. [What each compiler reads](effects.md#what-each-compiler-reads) has the
  evidence.
- **Derived**: what operations that autodiff derives get when `grad=` is not given: the `same` entry, or none (`drop`).

## Keys that XLA reads

"""
_RESERVED = """\
## Reserved

Tags and rules must not use these; `*` stands for any text.

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
    parser.add_argument("pattern", nargs="*", metavar="NAME-GLOB", help="only these; * stands for any text, ? for one character")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, descriptions included")
    form.add_argument("--markdown", action="store_true", help="print docs/keys.md")


def _run(args: argparse.Namespace) -> int:
    keys = [key for key in catalogue() if not args.pattern or any(fnmatchcase(key.name, p) for p in args.pattern)]
    unmatched = [p for p in args.pattern if not any(fnmatchcase(key.name, p) for key in keys)]
    if unmatched:
        # Success without output would suggest a known key.
        raise HlotagError(f"no known key matches {', '.join(unmatched)}; unknown keys may have any value")
    if args.json:
        print(json.dumps([as_json(key) for key in keys], indent=2))
    elif args.markdown:
        print(markdown(keys), end="")
    else:
        from rich.console import Console

        # In a file or a pipe a key stays on one line, for grep.
        console = Console(highlight=False, width=None if sys.stdout.isatty() else _UNBOUNDED)
        console.print(table(keys, console.width))
    return 0


def as_json(key: Key) -> dict[str, object]:
    """One key, with its legal values as text and by kind."""
    return {**dataclasses.asdict(key), "values": key.values and {**dataclasses.asdict(key.values), "text": str(key.values)}}


def table(keys: Sequence[Key], width: int) -> Table:
    """The keys in aligned columns.

    Args:
      keys: the keys.
      width: columns of the terminal.

    Returns:
      A table of rich's.
    """
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for name in _HEADER:
        grid.add_column(name, overflow="fold", no_wrap=name == "name" and width >= _WIDE)
    for key in keys:
        grid.add_row(*map(Text, _cells(key)), style="dim" if key.reserved else "")
    return grid


def _cells(key: Key) -> tuple[str, ...]:
    values = "reserved" if key.reserved else str(key.values) if key.values else "any text"
    return key.name, values, ", ".join(key.ops), _consumer(key), "" if key.reserved else key.derived


def _consumer(key: Key) -> str:
    """The compilers that were seen to read it, and those that are only said to."""
    if key.reserved or not key.readers:
        return key.consumer
    unseen = f"not seen: {', '.join(key.unseen)}" if key.unseen else ""
    return "; ".join(filter(None, (", ".join(key.seen), unseen)))


def markdown(keys: Sequence[Key]) -> str:
    """The page `docs/keys.md`."""
    free, reserved = [key for key in keys if not key.reserved], [key for key in keys if key.reserved]
    sections = "".join(map(_section, free))
    return _PAGE + sections + _RESERVED + "".join(_wrapped(f"- `{key.name}`: {key.doc}", "  ") for key in reserved)


def _section(key: Key) -> str:
    _, values, ops, consumer, derived = _cells(key)
    doc = f"{key.doc} With another value {key.otherwise}." if key.otherwise else key.doc
    facts = {"Values": values, "Operations": ops, "Read by": consumer, "Derived": derived}
    listed = " · ".join(f"**{name}**: {text}" for name, text in facts.items())
    return f"### `{key.name}`\n\n{_wrapped(doc)}\n{_wrapped(listed)}\n"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"
