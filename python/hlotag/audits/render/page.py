# SPDX-License-Identifier: Apache-2.0
"""An audit as one self-contained HTML page: the report first, then every tag with its steps."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import quote

from hlotag._text import count
from hlotag._util.files import source_line
from hlotag.audits import cost
from hlotag.audits.model import RANK, EntryTags, Form, Op, Step, TagState, by_entry, kernels, phases_in
from hlotag.audits.report import (
    KERNEL_COLUMNS,
    UNTAGGED_COLUMNS,
    Problem,
    Reported,
    describe_folded,
    effects_in_words,
    facts_in_words,
    kernel_rows,
    list_untagged_lines,
)

_STATES = tuple(TagState)
_FORMS = tuple(Form)
_DOCUMENT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
# How many problems, rows of a table, links of a problem and kernels are written.
_PROBLEMS, _ROWS, _LINKS, _KERNELS = 100, 200, 12, 40


def html(audit: Reported, worse: Sequence[Problem] = ()) -> str:
    """Renders the page, which begins with what is worse than a baseline."""
    # A function keeps the script's names private.
    script = f'"use strict";\n(() => {{\n{_asset("page.js")}}})();\n'
    lines = _source_lines(audit)
    # Escaped, because "<" could end the script element.
    data = json.dumps(_data(audit, lines), separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    scripts = f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>'
    body = "\n".join([_report(audit, lines, worse), _asset("list.html"), _footer(audit), scripts])
    return assemble(f"{audit.name}: where its tags went", body, script=script)


def assemble(title: str, body: str, style: str = "", script: str = "") -> str:
    """Makes an HTML document in the style of audits.

    Its content security policy forbids connections and scripts other than `script`, which is in `body`.
    """
    css = _asset("page.css") + style
    scripts = f"script-src '{_digest(script)}'; " if script else ""
    policy = f"default-src 'none'; {scripts}style-src '{_digest(css)}'; base-uri 'none'; form-action 'none'"
    return _DOCUMENT.format(policy=policy, title=escape(title), style=css, body=body)


# --- The report, which needs no script -------------------------------------------------------------------------------------


def _report(audit: Reported, lines: dict[str, str], worse: Sequence[Problem]) -> str:
    problems = audit.report.problems
    looks = "bad" if worse or any(tag.state.needs_attention for tag in audit.tags) else "fair" if problems else "good"
    states = "".join(
        f'<li><a href="#search={quote(str(state))}" title="{escape(state.meaning)}">'
        f'{audit.counts[state]} <span class="state {state}">{escape(str(state))}</span></a></li>'
        for state in _list_end_states(audit)
    )
    return "\n".join(
        [
            f"<header><h1>{escape(audit.name)}</h1>",
            f'<p id="sentence" class="{looks}">{escape(audit.report.sentence)}</p>',
            f'<p id="facts">{escape(facts_in_words(audit))}</p>',
            f'<ul id="states">{states}</ul></header>',
            *_list_problems("worse", "Worse than the baseline", worse, audit, lines),
            *_list_problems("problems", "Problems", problems, audit, lines),
            *_effects(audit),
            *_entries(audit),
            *_kernels(audit),
            *_render_untagged(audit),
        ]
    )


def _list_problems(
    section: str, title: str, problems: Sequence[Problem], audit: Reported, lines: dict[str, str]
) -> Iterable[str]:
    if not problems:
        return
    yield f'<section id="{section}"><h2>{title}</h2>'
    for problem in problems[:_PROBLEMS]:
        yield _problem(problem, audit, lines.get(f"{problem.file}:{problem.line}", ""))
    yield f"{_more(len(problems), _PROBLEMS)}</section>"


def _problem(problem: Problem, audit: Reported, code: str) -> str:
    kind = problem.kind if problem.kind in ("lost", "moved") else "other"
    what = f"{problem.count} &times; {escape(problem.kind)}" if problem.count > 1 else escape(problem.kind)
    tag = f"<code>{escape(problem.tag)}</code>" if problem.tag else ""
    on = f'<span class="on">on <code>{escape(problem.on)}</code></span>' if problem.on else ""
    where = f'<span class="where" title="{escape(problem.file)}">{escape(problem.source)}</span>' if problem.source else ""
    return "".join(
        [
            f'<article class="problem {kind}"><h3><span class="state {kind}">{what}</span>{tag}{on}{where}</h3>',
            f'<pre class="code">{escape(code)}</pre>' if code else "",
            f"<p>{escape(problem.why)} {escape(problem.effect)}</p>",
            f'<p class="do">{escape(problem.advice)}</p>' if problem.advice else "",
            _links(problem, audit),
            "</article>",
        ]
    )


def _links(problem: Problem, audit: Reported) -> str:
    if not problem.tags:
        return ""
    links = [f'<a href="#tag-{number}">#{number} {escape(audit.tags[number].op.scope)}</a>' for number in problem.tags[:_LINKS]]
    more = f"and {len(problem.tags) - _LINKS} more" if len(problem.tags) > _LINKS else ""
    return f'<p class="tags">{"".join(links)}{more}</p>'


def _effects(audit: Reported) -> Iterable[str]:
    rows = effects_in_words(audit)
    if not rows:
        return
    yield '<section id="effects"><h2>Effects</h2><dl>'
    for verdict, what, details in rows[:_ROWS]:
        yield f'<dt><span class="state {verdict}">{escape(verdict.label)}</span> <code>{escape(what)}</code></dt>'
        yield f"<dd>{escape(details)}</dd>"
    yield f"</dl>{_more(len(rows), _ROWS)}</section>"


def _render_untagged(audit: Reported) -> Iterable[str]:
    if rows := list_untagged_lines(audit):
        yield '<section id="untagged"><h2>Lines without a tag</h2>'
        yield f"<details><summary>{count(len(rows), 'line')}, those with most work first</summary>"
        yield _table(UNTAGGED_COLUMNS, (map(escape, row) for row in rows[:_ROWS]))
        yield f"{_more(len(rows), _ROWS, 'hlotag audit --untagged lists all')}</details></section>"


def _kernels(audit: Reported) -> Iterable[str]:
    """What is in each fusion and instruction, those with most work first."""
    found = kernels(audit)
    if not found:
        return
    yield '<section id="kernels"><h2>Kernels: what is in a fusion</h2>'
    for kernel in found[:_KERNELS]:
        rows = kernel_rows(audit, kernel)
        tags = ", ".join(dict.fromkeys(row[-1] for row in rows if row[-1]))
        head = f"<code>{escape(kernel.name)}</code> {escape(cost.in_words(*kernel.work))} <code>{escape(tags)}</code>"
        yield f"<details><summary>{head}</summary>{_table(KERNEL_COLUMNS, (map(escape, row) for row in rows[:_ROWS]))}</details>"
    yield f"{_more(len(found), _KERNELS)}</section>"


def _entries(audit: Reported) -> Iterable[str]:
    rows = by_entry(audit.tags)
    if not rows:
        return
    phases, states = phases_in(rows), [state for state in TagState if audit.counts[state]]

    def cells(entry: EntryTags) -> Iterable[object]:
        tag = f"{entry.key}={entry.value}"
        yield f'<a href="#search={quote(tag)}"><code>{escape(tag)}</code></a>'
        yield from (n or "&middot;" for n in (*map(entry.phases.__getitem__, phases), *map(entry.states.__getitem__, states)))

    yield '<section id="tags"><h2>Keys and values</h2>'
    yield _table(("tag", *phases, *map(str, states)), map(cells, rows[:_ROWS]))
    if folded := describe_folded(audit):
        yield f"<p>{escape(folded)}</p>"
    yield f"{_more(len(rows), _ROWS, 'the search below finds their tags')}</section>"


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table. The cells are HTML."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _more(number: int, shown: int, where: str = "audit.to_json() has all") -> str:
    return f"<p>{number - shown} more are hidden; {where}.</p>" if number > shown else ""


def _footer(audit: Reported) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in audit.notes)
    seen = {step.state for tag in audit.tags for step in tag.steps}
    states = [state for state in _STATES if state in seen]
    terms = "".join(f'<dt class="state {s}">{escape(str(s))}</dt><dd>{escape(s.meaning)}</dd>' for s in states)
    return f"<footer><h2>States</h2><dl>{terms}</dl>{notes}</footer>" if terms or notes else ""


# --- The data of the script --------------------------------------------------------------------------------------------------


class _Table:
    """Distinct values, which columns refer to by index."""

    def __init__(self) -> None:
        self.indexes: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self.indexes.setdefault(value, len(self.indexes))


def _data(audit: Reported, lines: dict[str, str]) -> dict[str, Any]:
    """The tags by columns: smaller and quicker to parse than a list of objects."""
    text, steps = _Table(), _Table()
    numbers = {tag.op.id for tag in audit.tags}
    # Besides tagged operations, those that a tagged operation derives from, or that derive from it.
    pairs = [(op.id, other) for op in audit.ops for other in op.derived_from]
    ops = [audit.ops[number] for number in sorted(numbers.union(*(pair for pair in pairs if not numbers.isdisjoint(pair))))]
    place = {op.id: index for index, op in enumerate(ops)}
    return {
        "states": [[str(state), str(state), state.meaning] for state in _STATES],
        "forms": [str(form) for form in _FORMS],
        "lines": lines,
        "order": sorted(range(len(audit.tags)), key=lambda number: -RANK[audit.tags[number].state]),
        "tags": {
            "key": [text(tag.key) for tag in audit.tags],
            "value": [text(tag.value) for tag in audit.tags],
            "op": [place[tag.op.id] for tag in audit.tags],
            "steps": [steps(tuple([_encode(step, text) for step in tag.steps])) for tag in audit.tags],
            "on": [[list(map(text, step.instructions)) for step in tag.steps] for tag in audit.tags],
        },
        "ops": _columns(ops, text, place),
        "steps": list(steps.indexes),
        "strings": list(text.indexes),
    }


def _encode(step: Step, text: _Table) -> tuple:
    return _FORMS.index(step.form), _STATES.index(step.state), text(step.by), text(step.detail), step.confidence


def _columns(ops: Sequence[Op], text: _Table, place: dict[int, int]) -> dict[str, list]:
    return {
        "name": [text(op.name.rpartition(".")[2]) for op in ops],
        "type": [text(op.type) for op in ops],
        "work": [text(cost.in_words(op.flops, op.bytes)) for op in ops],
        "scope": [text(op.scope) for op in ops],
        "function": [text(op.function) for op in ops],
        "phase": [text(op.phase) for op in ops],
        "file": [text(op.file) for op in ops],
        "line": [op.line for op in ops],
        "instructions": [list(map(text, op.instructions)) for op in ops],
        "fusions": [list(map(text, op.fusions)) for op in ops],
        "derived": [[place[other] for other in op.derived_from if other in place] for op in ops],
    }


def _source_lines(audit: Reported) -> dict[str, str]:
    """The source lines of tags and problems, by `file:line`, if their files can be read."""
    places = {(tag.op.file, tag.op.line) for tag in audit.tags} | {(p.file, p.line) for p in audit.report.problems}
    texts = {f"{file}:{line}": source_line(file, line, audit.source_root) for file, line in sorted(places) if file}
    return {place: text for place, text in texts.items() if text}


def _list_end_states(audit: Reported) -> list[TagState]:
    """The states that tags ended in, those that need attention first."""
    return sorted(audit.counts, key=RANK.__getitem__)


def _asset(name: str) -> str:
    return resources.files("hlotag.audits.render").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
