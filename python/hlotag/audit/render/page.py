# SPDX-License-Identifier: Apache-2.0
"""An audit as one page that needs no network: the module as a graph, filters, and each tag's way."""

from __future__ import annotations

import base64
import hashlib
import html as _html
import json
from importlib import resources
from typing import Any

from hlotag._util.files import source_line
from hlotag.audit.model import RANK, Audit, Stage, TagState, groups
from hlotag.audit.render.layout import HEIGHT, WIDTH, layout

_STATES = tuple(TagState)
_STAGES = tuple(Stage)
_FRAGMENT_ROWS = 40
_SCRIPTS = ("page_model.js", "page_list.js", "page_graph.js", "page_start.js")


def html(audit: Audit) -> str:
    """The page.

    Args:
        audit: What to show.

    Returns:
        HTML. A policy in it forbids every connection and every script but its own, whatever the tags' texts are.
    """
    style, template = _asset("page.css"), _asset("page.html")
    # One function around all: their names are theirs. The texts in the data are the user's; they reach the document through
    # textContent and the canvas only.
    script = f'"use strict";\n(() => {{\n{"".join(map(_asset, _SCRIPTS))}}})();\n'
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "@POLICY@": policy,
        "@TITLE@": _html.escape(f"{audit.name}: where its tags went"),
        "@STYLE@": style,
        # Within a script element only "<" could end it.
        "@DATA@": json.dumps(_data(audit), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c"),
        "@SCRIPT@": script,
    }
    pieces = []
    rest = template
    for mark, text in parts.items():  # In the template's order, so that no text is searched for marks.
        before, rest = rest.split(mark, 1)
        pieces += [before, text]
    return "".join([*pieces, rest])


def fragment(audit: Audit) -> str:
    """A table for notebooks.

    Args:
        audit: What to show.

    Returns:
        HTML without scripts.
    """
    rows = groups(audit.tags)
    states = [state for state in _STATES if audit.counts[state]]
    cell = "padding:2px 10px;text-align:right"
    head = "".join(f'<th style="{cell}" title="{_html.escape(state.meaning)}">{state.label}</th>' for state in states)
    body = []
    for group in rows[:_FRAGMENT_ROWS]:
        cells = "".join(f'<td style="{cell}">{group.states[state] or "&middot;"}</td>' for state in states)
        name = _html.escape(f"{group.key}={group.value}")
        body.append(f'<tr><td style="padding:2px 10px;text-align:left"><code>{name}</code></td>{cells}</tr>')
    if len(rows) > _FRAGMENT_ROWS:
        body.append(f'<tr><td colspan="{len(states) + 1}">and {len(rows) - _FRAGMENT_ROWS} more</td></tr>')
    caption = _html.escape(f"{audit.name}: {len(audit.tags)} tags on {len(audit.ops)} operations")
    return f'<table><caption style="text-align:left">{caption}</caption><tr><th></th>{head}</tr>{"".join(body)}</table>'


def _asset(name: str) -> str:
    return resources.files("hlotag.audit.render").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class _Strings:
    """A table of distinct texts, which the columns refer to."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.index.setdefault(text, len(self.index))


def _data(audit: Audit) -> dict[str, Any]:
    """The audit by columns, which is a third of the size and much quicker to read than a list of objects."""
    number = _Strings()
    place = layout(audit.ops)
    ops, tags = audit.ops, audit.tags
    data = {
        "name": audit.name,
        "platform": audit.platform,
        "instructions": audit.instruction_count,
        "notes": list(audit.notes),
        "dropped": [[dict(d.attrs), f"{d.file}:{d.line}" if d.file else ""] for d in audit.dropped],
        "states": [[str(s), s.label, s.meaning, RANK[s]] for s in _STATES],
        "stages": [str(s) for s in _STAGES],
        "box": [WIDTH, HEIGHT],
        "middle": place.middle,
        "size": [place.width, place.height],
        "bands": [[band.label, band.y, band.height] for band in place.bands],
        "ops": {
            "name": [number(op.name) for op in ops],
            "scope": [number(op.scope) for op in ops],
            "function": [number(op.function) for op in ops],
            "backward": [int(op.phase == "backward") for op in ops],
            "file": [number(op.file) for op in ops],
            "line": [op.line for op in ops],
            "x": place.x,
            "y": place.y,
            "operands": [list(op.operands) for op in ops],
            "instructions": [[number(name) for name in op.instructions] for op in ops],
        },
        "tags": {
            "key": [number(tag.key) for tag in tags],
            "value": [number(tag.value) for tag in tags],
            "op": [tag.op.id for tag in tags],
            "steps": [
                [
                    [
                        _STAGES.index(s.stage),
                        _STATES.index(s.state),
                        number(s.by),
                        number(s.detail),
                        s.confidence,
                        [number(i) for i in s.instructions],
                    ]
                    for s in tag.steps
                ]
                for tag in tags
            ],
        },
        "strays": [[s.key, s.value, s.instruction, s.opcode, None if s.op is None else s.op.id] for s in audit.strays],
        "lines": _source_lines(audit),
    }
    data["strings"] = list(number.index)
    return data


def _source_lines(audit: Audit) -> dict[str, str]:
    """The text of the lines that operations come from, where the files are at hand."""
    places = {(op.file, op.line) for op in audit.ops if op.file}
    texts = {f"{file}:{line}": source_line(file, line, audit.source_root) for file, line in sorted(places)}
    return {place: text for place, text in texts.items() if text}
