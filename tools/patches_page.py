# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/compatibility.md with the patches of JAX in python/hlotag/_compat.

Run in an environment that hlotag is installed in, with the newest supported jax, after a change to a patch.
"""

from __future__ import annotations

from pathlib import Path

from hlotag.lowering import staging

PAGE = Path(__file__).resolve().parent.parent / "docs" / "compatibility.md"
BEGIN, END = "<!-- patches -->\n", "<!-- end of patches -->\n"
_HEAD = """
| Attribute | What for | Without the wrapper | Upstream issue |
|---|---|---|---|
"""


def render() -> str:
    """The page. Which entries of a table of JAX's are wrapped depends on its version, so the table is one row."""
    named = ((patch.target.partition("[")[0], patch.purpose) for patch in staging.PATCHES)
    rows = (f"| `{name}` | {of.use} | {of.without} | {of.issue or 'none'} |\n" for name, of in named)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + _HEAD + "".join(dict.fromkeys(rows)) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
