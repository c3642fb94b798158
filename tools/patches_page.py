# SPDX-License-Identifier: Apache-2.0
"""Writes docs/patches.md from the patches of JAX in python/hlotag/_compat.

Run in an environment that hlotag is installed in, with the newest supported jax, after a change to a patch.
"""

from __future__ import annotations

from pathlib import Path

from hlotag.lowering import hlo_stage, staging
from hlotag.tagging import marks, rule_hooks

PAGE = Path(__file__).resolve().parent.parent / "docs" / "patches.md"

_PAGE = """\
<!-- Made by tools/patches_page.py from python/hlotag/_compat; do not edit. -->
# What hlotag changes in JAX

hlotag wraps these attributes of JAX while a stage is on, and some as long as a module of a stage lives. A wrapper calls
the function that it found. Importing hlotag wraps none. JAX has no public hook at any of these places.
`xla_metadata_value_p` and `xla_metadata_call_p` are primitives of `jax._src.xla_metadata`.

hlotag also registers two things with JAX: its folder, so that locations and tracebacks leave out its frames, and one
function with each XLA compiler in use.

| Attribute | What for | How long | Without the wrapper | Upstream issue |
|---|---|---|---|---|
"""
_NOTES = """
[1] Longer if a tag of the process has reserved entries (`grad=`, a removed key): what was traced may be lowered later.

[2] While a stage has rules with that kind of pattern.

[3] While a module of a stage lives that may still be compiled.

[A JAX that changed one of them](compatibility.md#a-jax-that-hlotag-does-not-know) turns the stage off, with a warning.
"""


def render() -> str:
    """The page."""
    patches = {patch: "stage [1]" if patch in marks.patches() else "stage" for patch in staging.HOOKS.patches}
    patches |= {patch: "stage [2]" for hooks in rule_hooks.ALL for patch in hooks.patches}
    patches |= dict.fromkeys(hlo_stage.HOOKS.patches, "modules [3]")
    rows = (
        f"| `{patch.target}` | {patch.purpose.use} | {span} | {patch.purpose.without} | {patch.purpose.issue or 'none'} |\n"
        for patch, span in patches.items()
    )
    return _PAGE + "".join(rows) + _NOTES


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
