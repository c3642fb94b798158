# SPDX-License-Identifier: Apache-2.0
"""Writes docs/keys.md from the catalogue of keys.

Run in an environment that hlotag is installed in, after a change to python/hlotag/tagging/keys.toml.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from hlotag.cli.keys import cells, describe
from hlotag.tagging.catalogue import Key, known_keys

PAGE = Path(__file__).resolve().parent.parent / "docs" / "keys.md"

_PAGE = """\
<!-- Made by tools/keys_page.py from python/hlotag/tagging/keys.toml; do not edit. -->
# Keys

The keys of `mhlo.frontend_attributes` that XLA's compilers read, as `hlotag keys` prints them. A value that is not
legal is a `TagError` on the line that tags.

Any other key is yours: all values are legal, derived operations get it too, and XLA does not see it. hlotag writes it
on the instructions at the end of the compilation ([why](how_it_works.md#which-keys-xla-sees)). XLA sees the keys below,
all that begin with `_` or `xla`, and those of `hlotag.register_key(name, compiler=True)`. A key that looks like one
below (`_scheduling_group`) warns once at the line that tags.

- **Values**, **On**: any text, and any operation, unless the key says otherwise.
- **Read by**: the compilers that compile a program differently with the key. *Not seen*: XLA's source or JAX says that
  the compiler reads the key, and the compiled program was the same. [The
  evidence](ahead_of_time.md#what-each-compiler-reads).
- **Derived**: what derived operations get without `grad=`: nothing (`drop`), unless the key says `same`.
- **Restored**: the compilers that read the key after their optimizations. Where these drop the tag, the
  [HLO pass](how_it_works.md#the-hlo-pass) restores it before the scheduler.
- **Where**: with these keys, a value tag of a loop, a branch, a reduction or a sort is on that operation only. A block
  or a rule also tags the operations in a loop or a branch.

## Keys that XLA reads

"""
_UNSEEN = """\
## Keys that no compiler was seen to read

XLA's source or JAX names a compiler that reads them; `hlotag keys NAME` describes each. Values are any text, and
derived operations get none, unless the line says otherwise.

"""
_RESERVED = """\
## Reserved

Tags and rules must not use these, which belong to others; `*` stands for any text.

"""


def render() -> str:
    """The page."""
    known = known_keys().values()
    free, reserved = [key for key in known if not key.reserved], [key for key in known if key.reserved]
    seen = "".join(_section(key) for key in free if key.seen)
    unseen = _listed((key.name, _facts(key)) for key in free if not key.seen)
    return (
        _PAGE
        + seen
        + _UNSEEN
        + unseen
        + "\n"
        + _RESERVED
        + _listed((key.name, key.doc.removeprefix("Belongs to ").rstrip(".")) for key in reserved)
    )


def _section(key: Key) -> str:
    _, values, ops, consumer, derived = cells(key)
    facts = {"Values": values} if key.values else {}
    facts |= {"On": ops} if ops != "any" else {}
    facts |= {"Read by": consumer}
    facts |= {"Derived": derived} if derived != "drop" else {}
    facts |= {"Restored": ", ".join(key.late)} if key.late else {}
    listed = " · ".join(f"**{name}**: {text}" for name, text in facts.items())
    return f"### `{key.name}`\n\n{_wrapped(describe(key))}\n{_wrapped(listed)}\n"


def _facts(key: Key) -> str:
    """The facts of a key that are not those of most keys, and its compilers."""
    _, values, ops, consumer, derived = cells(key)
    facts = [values] if key.values else []
    facts += [f"on {ops}"] if ops != "any" else []
    facts += [f"derived: {derived}"] if derived != "drop" else []
    return "; ".join([*facts, consumer.removeprefix("not seen: ")])


def _listed(described: Iterable[tuple[str, str]]) -> str:
    """A list with a line for each text, and the names that have it."""
    names: dict[str, list[str]] = {}
    for name, text in described:
        names.setdefault(text, []).append(f"`{name}`")
    return "".join(_wrapped(f"- {', '.join(each)}: {text}", "  ") for text, each in names.items())


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
