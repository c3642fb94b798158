# SPDX-License-Identifier: Apache-2.0
"""An audit as one self-contained HTML page: what the terminal says, then every tag and instruction, with a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from hlotag._text import in_work
from hlotag._util.groups import group
from hlotag.reports import audit_data, memory
from hlotag.reports.page import read_asset, render
from hlotag.results.listing import LISTED_COLUMNS, Listed, list_instructions, listed_row
from hlotag.results.report import (
    UNTAGGED_COLUMNS,
    Problem,
    effects_in_words,
    facts_in_words,
    list_untagged_lines,
)
from hlotag.results.tags import EntryTags, TagState, by_entry, phases_in

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

# Limits of problems, rows of a table, and kernels.
_PROBLEMS, _ROWS, _KERNELS = 100, 200, 40


class Entry(NamedTuple):
    """The tags with one key and value: how many are in each state, and those numbers with the ones in each phase."""

    tag: str
    states: Mapping[TagState, int]
    numbers: Sequence[int]


class Kernel(NamedTuple):
    """What is in a fusion, or an instruction that runs by itself."""

    name: str
    work: str
    tags: str
    rows: Sequence[Sequence[str]]


def html(audit: Audit, worse: Sequence[Problem] = ()) -> str:
    """Renders the page, which begins with what is worse than a baseline."""
    by = audit.keys or ["scope"]
    rows = audit_data.make_rows(audit, by)
    title = f"{audit.name}: what became of its tags"
    return render("audit.html", title, memory=memory.make_section(audit, by, rows), **describe(audit, worse, rows=rows))


def describe(
    audit: Audit, worse: Sequence[Problem] = (), *, rows: audit_data.Rows, times: audit_data.Times | None = None
) -> dict[str, Any]:
    """What `audit.html` shows of an audit but for its memory.

    `worse` are the problems that a baseline does not have; `rows` are what is in rows that open.
    """
    lines = audit_data.source_lines(audit)
    entries = by_entry(audit.tags)
    kernels = group((each.instruction.kernel, each) for each in list_instructions(audit) if each.op)  # Most work first.
    phases, states = phases_in(entries), {state: audit.counts[state] for state in TagState if audit.counts[state]}
    return {
        "audit": audit,
        "looks": _looks_of(audit, worse),
        "facts": facts_in_words(audit),
        "states": states,
        "worse": worse,
        "lines": lines,
        "links": audit_data.LINKS,
        "most": {"problems": _PROBLEMS, "rows": _ROWS, "kernels": _KERNELS},
        "effects": effects_in_words(audit),
        "entries": [_describe_entry(entry, [*states], phases) for entry in entries[:_ROWS]],
        "entry_count": len(entries),
        "entry_columns": ("tag", "", *states, *phases),
        "kernels": [_describe_kernel(name, inside) for name, inside in list(kernels.items())[:_KERNELS]],
        "kernel_count": len(kernels),
        "listed_columns": LISTED_COLUMNS,
        "untagged": list_untagged_lines(audit),
        "untagged_columns": UNTAGGED_COLUMNS,
        "packed": Markup(audit_data.dumps(audit, lines, rows, times)),  # In base64.
        # A function keeps the script's names private.
        "script": f'"use strict";\n(async () => {{\n{read_asset("page.js")}}})();\n',
    }


def _looks_of(audit: Audit, worse: Sequence[Problem]) -> str:
    """How the sentence of an audit looks: "good", "fair" or "bad"."""
    if worse or any(tag.needs_attention for tag in audit.tags):
        return "bad"
    return "fair" if audit.report.problems else "good"


def _describe_entry(entry: EntryTags, states: Sequence[TagState], phases: Sequence[str]) -> Entry:
    numbers = [*map(entry.states.__getitem__, states), *map(entry.phases.__getitem__, phases)]
    return Entry(f"{entry.key}={entry.value}", {state: entry.states[state] for state in TagState}, numbers)


def _describe_kernel(name: str, inside: Sequence[Listed]) -> Kernel:
    tags = dict.fromkeys(f"{key}={value}" for each in inside for key, value in each.tags.items())
    flops, size = (sum(getattr(each.instruction, amount) for each in inside) for amount in ("flops", "bytes"))
    return Kernel(name, in_work(flops, size), ", ".join(tags), [listed_row(each) for each in inside[:_ROWS]])
