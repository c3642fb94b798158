# SPDX-License-Identifier: Apache-2.0
"""An audit as one self-contained HTML page: what the terminal says, then every tag and instruction, with a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from hlotag._text import count, in_work
from hlotag._util.groups import group
from hlotag.reports import audit_data, breakdown, memory
from hlotag.reports.page import assemble, read_asset
from hlotag.results.listing import LISTED_COLUMNS, list_instructions, listed_row
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

_SEARCH = """\
<section id="every"><h2>Search: every tag and instruction</h2>
<label for="search">Words of a name, opcode, operation, scope, line, key, value, state or pass; <kbd>/</kbd> comes here</label>
<input id="search" type="search" autocomplete="off" spellcheck="false" placeholder="lost layer_0 dot model.py:12"
 aria-describedby="found">
<p id="found" role="status"></p>
<div id="tags-found"><h3>Tags</h3><p id="count"></p><div id="list"></div><button id="more" type="button" hidden></button></div>
<div id="instructions-found"><h3>Instructions</h3><p id="instruction-count"></p><div id="instruction-list"></div>
<button id="instruction-more" type="button" hidden></button></div>
<noscript><p>The lists need JavaScript. The report above does not.</p></noscript></section>
"""
# Limits of problems, rows of a table, and kernels.
_PROBLEMS, _ROWS, _KERNELS = 100, 200, 40


def html(audit: Audit, worse: Sequence[Problem] = ()) -> str:
    """Renders the page, which begins with what is worse than a baseline."""
    by = audit.keys or ["scope"]
    rows = audit_data.make_rows(audit, by)
    body = [*_header(audit, worse), *memory.html(audit, by, rows)]
    return with_audit(f"{audit.name}: what became of its tags", body, audit, worse, rows=rows)


def with_audit(
    title: str,
    body: Iterable[str],
    audit: Audit,
    worse: Sequence[Problem] = (),
    *,
    rows: audit_data.Rows,
    times: audit_data.Times | None = None,
    end: Iterable[str] = (),
) -> str:
    """A document with the sections of an audit between `body` and `end`: problems, effects, kernels, and a search.

    `worse` are the problems that a baseline does not have; `rows` are what is in rows that open.
    """
    # A function keeps the script's names private.
    script = f'"use strict";\n(async () => {{\n{read_asset("page.js")}}})();\n'
    lines = audit_data.source_lines(audit)
    packed = audit_data.dumps(audit, lines, rows, times)
    scripts = f'<script type="application/octet-stream" id="data">{packed}</script>\n<script>{script}</script>'
    return assemble(title, "\n".join([*body, *_sections(audit, lines, worse), *_footer(audit), *end, scripts]), script)


# --- The report, which needs no script -------------------------------------------------------------------------------------


def looks_of(audit: Audit, worse: Sequence[Problem] = ()) -> str:
    """How the sentence of an audit looks: "good", "fair" or "bad"."""
    if worse or any(tag.needs_attention for tag in audit.tags):
        return "bad"
    return "fair" if audit.report.problems else "good"


def _header(audit: Audit, worse: Sequence[Problem]) -> Iterator[str]:
    yield f"<header><h1>{escape(audit.name)}</h1>"
    yield f'<p id="sentence" class="{looks_of(audit, worse)}">{escape(audit.report.sentence)}</p>'
    yield f'<p id="facts">{escape(facts_in_words(audit))}</p>{"".join(states_bar(audit))}</header>'


def states_bar(audit: Audit) -> Iterator[str]:
    """How many tags are in each state, as a bar and as links to the list of tags."""
    states = [state for state in TagState if audit.counts[state]]
    links = (
        f'<li><a href="#search={state}" title="{escape(state.meaning)}">{audit.counts[state]} '
        f'<span class="state {state}">{state}</span></a></li>'
        for state in states
    )
    yield f'{_bar([(state, audit.counts[state]) for state in states])}<ul id="states">{"".join(links)}</ul>' if states else ""


def _sections(audit: Audit, lines: dict[str, str], worse: Sequence[Problem]) -> Iterator[str]:
    yield from _problems("worse", "Worse than the baseline", worse, audit, lines)
    yield from _problems("problems", "Problems", audit.report.problems, audit, lines)
    if effects := effects_in_words(audit):
        yield '<section id="effects"><h2>Effects</h2><dl>'
        for verdict, what, details in effects[:_ROWS]:
            yield f'<dt><span class="state {verdict}">{escape(verdict.label)}</span> <code>{escape(what)}</code></dt>'
            yield f"<dd>{escape(details)}</dd>"
        yield f"</dl>{_more(len(effects), _ROWS)}</section>"
    yield from _entries(audit)
    yield from _kernels(audit)
    if rows := list_untagged_lines(audit):
        yield '<section id="untagged"><h2>Lines without a tag</h2>'
        yield f"<details><summary>{count(len(rows), 'line')}, those with most work first</summary>"
        yield _table("Lines without a tag", UNTAGGED_COLUMNS, (map(escape, row) for row in rows[:_ROWS]))
        yield f"{_more(len(rows), _ROWS, 'hlotag audit --untagged lists all')}</details></section>"
    yield _SEARCH


def _problems(section: str, title: str, found: Sequence[Problem], audit: Audit, lines: dict[str, str]) -> Iterator[str]:
    if not found:
        return
    yield f'<section id="{section}"><h2>{title}</h2>'
    for problem in found[:_PROBLEMS]:
        kind = "lost" if problem.kind == "lost" else "other"
        many = f"{problem.count} &times; " if problem.count > 1 else ""
        yield f'<article class="problem {kind}"><h3><span class="state {kind}">{many}{escape(problem.kind)}</span>'
        yield f"<code>{escape(problem.tag)}</code>" if problem.tag else ""
        yield f'<span class="on">on <code>{escape(problem.on)}</code></span>' if problem.on else ""
        yield f'<span class="where" title="{escape(problem.file)}">{escape(problem.source)}</span></h3>'
        code = lines.get(f"{problem.file}:{problem.line}", "")
        yield f'<pre class="code">{escape(code)}</pre>' if code else ""
        yield f"<p>{escape(problem.why)} {escape(problem.effect)}</p>"
        yield f'<p class="do">{escape(problem.advice)}</p>' if problem.advice else ""
        links = (f'<a href="#tag-{n}">#{n} {escape(audit.tags[n].op.scope)}</a>' for n in problem.tags[: audit_data.LINKS])
        left = len(problem.tags) - audit_data.LINKS
        yield f'<p class="tags">{"".join(links)}{f"and {left} more" if left > 0 else ""}</p></article>'
    yield f"{_more(len(found), _PROBLEMS)}</section>"


def _entries(audit: Audit) -> Iterator[str]:
    rows = by_entry(audit.tags)
    if not rows:
        return
    phases, states = phases_in(rows), [state for state in TagState if audit.counts[state]]

    def cells(entry: EntryTags) -> Iterable[object]:
        tag = f"{entry.key}={entry.value}"
        yield f'<a href="#search={quote(tag)}"><code>{escape(tag)}</code></a>'
        yield _bar([(state, entry.states[state]) for state in TagState])
        yield from (n or "&middot;" for n in (*map(entry.states.__getitem__, states), *map(entry.phases.__getitem__, phases)))

    yield '<section id="tags"><h2>Keys and values</h2>'
    yield _table("Tags by what became of them", ("tag", "", *map(str, states), *phases), map(cells, rows[:_ROWS]))
    yield f"{_more(len(rows), _ROWS, 'the search below finds their tags')}</section>"


def _kernels(audit: Audit) -> Iterator[str]:
    """What is in each fusion and instruction, those with most work first."""
    of_program = (each for each in list_instructions(audit) if each.op)
    found = list(group((each.instruction.kernel, each) for each in of_program).items())
    yield '<section id="kernels"><h2>Kernels: what is in a fusion</h2>' if found else ""
    for name, inside in found[:_KERNELS]:
        tags = dict.fromkeys(f"{key}={value}" for each in inside for key, value in each.tags.items())
        flops, size = (sum(getattr(each.instruction, amount) for each in inside) for amount in ("flops", "bytes"))
        head = f"<code>{escape(name)}</code> {escape(in_work(flops, size))} <code>{escape(', '.join(tags))}</code>"
        rows = (map(escape, listed_row(each)) for each in inside[:_ROWS])
        table = _table(f"Instructions of {name}", LISTED_COLUMNS, rows)
        yield f"<details><summary>{head}</summary>{table}</details>"
    yield f"{_more(len(found), _KERNELS, 'the search below finds them')}</section>" if found else ""


def _bar(parts: Sequence[tuple[TagState, int]]) -> str:
    total, x, drawn = sum(number for _, number in parts), 0, []
    for state, number in parts:
        drawn.append(f'<rect class="{state}" x="{x}" width="{number}" height="1"/>' if number else "")
        x += number
    return f'<svg class="bar" viewBox="0 0 {total} 1" preserveAspectRatio="none" aria-hidden="true">{"".join(drawn)}</svg>'


def _table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table. The cells are HTML."""
    head = breakdown.head_of_table(caption, ((column, "") for column in columns))
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="scroll">{head}<tbody>{body}</tbody></table></div>'


def _more(number: int, shown: int, where: str = "audit.to_json() has all") -> str:
    return f"<p>{number - shown} more are hidden; {where}.</p>" if number > shown else ""


def _footer(audit: Audit) -> Iterator[str]:
    terms = (
        f'<dt class="state {state}">{state}</dt><dd>{escape(state.meaning)}</dd>' for state in TagState if audit.counts[state]
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in audit.notes)
    yield f"<footer><h2>States</h2><dl>{''.join(terms)}</dl>{notes}</footer>" if audit.tags or notes else ""
