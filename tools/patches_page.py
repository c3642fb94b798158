# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/compatibility.md with the patches of JAX in python/hlotag/_compat.

Run in an environment that hlotag is installed in, with the newest supported jax, after a change to a patch.
"""

from __future__ import annotations

from pathlib import Path

from jax.extend.core import Primitive

from hlotag._compat.hooks import Patch
from hlotag.lowering import staging

PAGE = Path(__file__).resolve().parent.parent / "docs" / "compatibility.md"
BEGIN, END = "<!-- patches -->\n", "<!-- end of patches -->\n"
_HEAD = """
| Attribute | What for |
|---|---|
"""


def render() -> str:
    """The page. Which entries of a table of JAX's are wrapped depends on its version, so the table is one row."""
    rows = (f"| `{_target(patch)}` | {patch.purpose.use} |\n" for patch in staging.PATCHES)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + _HEAD + "".join(dict.fromkeys(rows)) + "\n" + END + rest.partition(END)[2]


def _target(patch: Patch) -> str:
    """The path of the attribute or table that a patch wraps: `jax._src.pjit._infer_params`."""
    if patch.rules:
        return f"jax._src.interpreters.{patch.rules}"
    if isinstance(patch.owner, Primitive):
        return f"{patch.owner.name}_p.{patch.name}"
    module = getattr(patch.owner, "__module__", "")
    owner = getattr(patch.owner, "__qualname__", patch.owner.__name__)
    return ".".join(part for part in (module, owner, patch.name) if part)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
