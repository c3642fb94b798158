# SPDX-License-Identifier: Apache-2.0
"""Writes docs/keys.md from the catalogue of keys.

Run in an environment that hlotag is installed in, after a change to python/hlotag/tagging/keys.toml.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from hlotag.cli.keys import cells, describe
from hlotag.tagging.catalogue import Key, known_keys

PAGE = Path(__file__).resolve().parent.parent / "docs" / "keys.md"

_PAGE = """\
<!-- Made by tools/keys_page.py from python/hlotag/tagging/keys.toml; do not edit. -->
# Keys

The keys of `mhlo.frontend_attributes` that XLA's compilers read. A value that is not legal is a `TagError` on the line
that tags. On a terminal, `hlotag keys` prints the same as a table.

Any other key is free: all values are legal, and derived operations get it too. `hlotag.register_key` adds your own. A
key that looks like one below (`group`, `_scheduling_group`) warns once at the line that tags. GPU's compiler gets no
other key than those below and those that begin with `_` or `xla`, unless you register it with `compiler=True`
([why](how_it_works.md#limits-of-the-hlo-stage)).

- **Read by**: the compilers that the key makes compile a program differently. *Not seen*: XLA's source or JAX says that
  the compiler reads the key, and the compiled program was the same. [What each compiler
  reads](ahead_of_time.md#what-each-compiler-reads) has the evidence.
- **Given back**: the compilers that read the key after their optimizations. Where these drop the tag, the
  [HLO stage](how_it_works.md#the-hlo-stage) gives it back before it is read.
- **Where**: a value tag of a loop, a branch, a reduction or a sort is on that operation, and with these keys on nothing
  in it. A block or a rule tags the equations in a loop or a branch. What a reduction, a sort, a scatter or a collective
  applies has none of these keys. XLA schedules, fuses and places the operations of one computation together.
- **Derived**: what operations that autodiff derives get when `grad=` is not given: the `same` entry, or none (`drop`).
- **How to**: [scheduling groups](scheduling_groups.md), [offload](offload.md), [must-fuse](must_fuse.md).

## Keys that XLA reads

"""
_RESERVED = """\
## Reserved

Tags and rules must not use these; `*` stands for any text.

"""


def render() -> str:
    """The page."""
    known = known_keys().values()
    free, reserved = [key for key in known if not key.reserved], [key for key in known if key.reserved]
    sections = "".join(map(_section, free))
    return _PAGE + sections + _RESERVED + "".join(_wrapped(f"- `{key.name}`: {key.doc}", "  ") for key in reserved)


def _section(key: Key) -> str:
    _, values, ops, consumer, derived = cells(key)
    facts = {"Values": values, "Operations": ops, "Read by": consumer, "Derived": derived}
    if key.late:
        facts["Given back"] = ", ".join(key.late)
    listed = " · ".join(f"**{name}**: {text}" for name, text in facts.items())
    return f"### `{key.name}`\n\n{_wrapped(describe(key))}\n{_wrapped(listed)}\n"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
