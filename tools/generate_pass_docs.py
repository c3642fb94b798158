# SPDX-License-Identifier: Apache-2.0
"""Writes docs/passes.md from what the passes say about themselves.

Run in an environment that hlotag is installed in, after a change to a pass's PassInfo or options.
"""

from __future__ import annotations

from pathlib import Path

import hlotag
from hlotag.passes.syntax import PassInfo

PAGE = Path(__file__).resolve().parent.parent / "docs" / "passes.md"

INTRODUCTION = """<!-- Made by tools/generate_pass_docs.py from the passes' own descriptions; do not edit. -->
# Passes

The passes that come with hlotag, as `hlotag.list_passes()` and `hlotag opt --help` list them. A pipeline may mix them
with any pass that jaxlib registers (`canonicalize`, `cse`, ...). `hlotag.enable()` runs this pipeline:

```text
{pipeline}
```
"""


def own_passes() -> list[PassInfo]:
    """The passes that come with hlotag; those that someone registered are not for this page."""
    return [info for info in hlotag.list_passes() if info.name.startswith("hlotag-")]


def render() -> str:
    """The page."""
    passes = own_passes()
    introduction = INTRODUCTION.format(pipeline=",\n".join(hlotag.passes.DEFAULT_PIPELINE.split(",")))
    return "\n".join([introduction, *map(_section, passes)])


def _section(info: PassInfo) -> str:
    lines = [f"## {info.name}", "", f"{info.summary}.", "", info.description.strip(), ""]
    if info.options:
        lines += ["| option | type | default | |", "| --- | --- | --- | --- |"]
        lines += [f"| `{o.name}` | {_cell(o.type)} | {_default(o.default)} | {_cell(o.description)} |" for o in info.options]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(text: str) -> str:
    return f"`{_cell(text)}`" if text.strip('"{}') else ""


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
