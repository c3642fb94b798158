# SPDX-License-Identifier: Apache-2.0
"""Writes docs/patches.md from the patches of JAX in python/hlotag/_compat.

Run in an environment that hlotag is installed in, with the newest supported jax, after a change to a patch.
"""

from __future__ import annotations

from pathlib import Path

from hlotag.lowering import staging

PAGE = Path(__file__).resolve().parent.parent / "docs" / "patches.md"

_PAGE = """\
<!-- Made by tools/patches_page.py from python/hlotag/_compat; do not edit. -->
# What hlotag changes in JAX

hlotag wraps these attributes of JAX when a process has its first stage. The wrappers stay. Each calls the function that
it found. Without a stage they only pass arguments on, but for two things: what was traced in a stage is lowered without
hlotag's own entries, and what was lowered in a stage is compiled in that stage. Importing hlotag wraps none. JAX has no
public hook at any of these places.
`xla_metadata_value_p` is a primitive of `jax._src.xla_metadata`.

hlotag also registers two things with JAX: its folder, so that locations and tracebacks leave out its frames, and one
function with each XLA compiler in use.

| Attribute | What for | Without the wrapper | Upstream issue |
|---|---|---|---|
"""
_NOTES = """
[A JAX that changed one of them](compatibility.md#a-jax-that-hlotag-does-not-know) turns the stage off, with a warning.
"""


def render() -> str:
    """The page. Which entries of a table of JAX's are wrapped depends on its version, so the table is one row."""
    named = ((patch.target.partition("[")[0], patch.purpose) for patch in staging.PATCHES)
    rows = (f"| `{name}` | {of.use} | {of.without} | {of.issue or 'none'} |\n" for name, of in named)
    return _PAGE + "".join(dict.fromkeys(rows)) + _NOTES


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
