# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML page that answers: time, communication, memory, rates, and what became of the tags."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from hlotag._text import in_bytes, rate_in_words
from hlotag._util.files import source_line
from hlotag.reports import audit_data, audit_page, breakdown, charts, memory
from hlotag.reports.page import assemble
from hlotag.reports.profile_table import operation_in_words
from hlotag.results.times import ADDED, MEANINGS, UNDIVIDED, Rates, in_words

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile
    from hlotag.profiles.program import Program

# Limit of instructions.
_HOT = 60


def html(profile: Profile) -> str:
    """Renders the page. Its content security policy forbids connections. Without its program, it has no script."""
    if profile.program is None:
        return assemble(f"{profile.name}: time by tag", "\n".join([*_body(profile, {}), *_footer(profile)]))
    audit = profile.program.audit
    rows = audit_data.make_rows(audit, profile.groupings, _shares(profile, profile.program))
    parts = {"rows": rows, "times": audit_data.Times(profile.seconds, in_words), "end": _footer(profile)}
    return audit_page.with_audit(f"{profile.name}: report", _body(profile, rows), audit, **parts)


def _shares(profile: Profile, program: Program) -> Iterator[tuple[str, str, audit_data.Share]]:
    """The time of each row by what runs as one, and by operation."""
    groupings = [each for by in profile.groupings for each in program.grouping(by)]
    for name, seconds in profile.seconds.items():
        parts = program.sure_parts(name, groupings)
        if not parts:
            rest = UNDIVIDED if program.parts(name) else ADDED
            yield "", rest, audit_data.Share(name, None, seconds)
        for title, read in groupings:
            yield from (
                (title, read(part), audit_data.Share(name, part.op, seconds * part.weight)) for part in parts if part.weight
            )


def _body(profile: Profile, rows: audit_data.Rows) -> Iterator[str]:
    yield f"<header><h1>{escape(profile.name)}</h1>"
    yield f'<p id="sentence">{escape(profile.sentence)}</p>'
    yield f'<p id="facts">{escape(_facts(profile))}</p>'
    audit = profile.program and profile.program.audit
    if audit and (audit.tags or audit.report.problems):
        yield f'<p class="{audit_page.looks_of(audit)}">{escape(audit.report.sentence)}</p>'
        yield from audit_page.states_bar(audit)
    yield f"</header>{_contents(profile)}"
    for found in profile.break_down():
        yield f'<section id="time-{escape(found.title)}"><h2>Time by {escape(found.title)}</h2>'
        yield from breakdown.bars(found, in_words, MEANINGS, _rates(profile, found.title), opens=rows)
        yield "</section>"
    yield from _communication(profile)
    if audit:
        yield from memory.html(audit, profile.groupings, rows)
    if key := profile.telling_key:
        yield from charts.draw_roofline(profile, key)
    yield from charts.draw_timeline(profile, key)
    yield from _hottest(profile)


def _contents(profile: Profile) -> str:
    """Links to the sections that there are; none without the script, which follows them in a frame of a notebook."""
    if profile.program is None:
        return ""
    names = {f"time-{key}": f"Time by {key}" for key in profile.keys[:1]}
    names |= {"communication": "Communication"} if profile.transfers else {}
    if audit := profile.program.audit:
        names |= {"memory": "Memory"} if audit.memory else {}
        names |= {"timeline": "Timeline"} if profile.timeline else {}
        names |= {"tags": "Tags"} if audit.tags else {}
        names |= {"kernels": "Kernels", "every": "Search"}
    links = (f'<a href="#{escape(name)}">{escape(title)}</a>' for name, title in names.items())
    return f'<nav aria-label="Sections">{" ".join(links)}</nav>'


def _footer(profile: Profile) -> Iterator[str]:
    yield "<footer><h2>What the rows without a key are</h2><dl>"
    yield "".join(f"<dt>{escape(row.value)}</dt><dd>{escape(MEANINGS[row.value])}</dd>" for row in profile.rest)
    yield "</dl>" + "".join(f"<p>{escape(note)}</p>" for note in profile.notes) + "</footer>"


def _facts(profile: Profile) -> str:
    fastest, slowest = min(profile.steps), max(profile.steps)
    return f"Mean of {len(profile.steps)} steps of {in_words(fastest)} to {in_words(slowest)}, on {', '.join(profile.devices)}"


def _rates(profile: Profile, key: str) -> dict[str, str]:
    """By value, its rates in words."""
    return {value: _rates_in_words(each) for value, each in profile.rates(key).items()}


def _rates_in_words(rates: Rates) -> str:
    found = f"{rate_in_words(rates.flops_per_second)}flop/s, {rate_in_words(rates.bytes_per_second)}B/s"
    return f"{found}, {rates.of_limit}" if rates.of_limit else found


def _communication(profile: Profile) -> Iterator[str]:
    if not profile.transfers:
        return
    yield '<section id="communication"><h2>Communication</h2><p>Exposed: the device computed nothing meanwhile. Waiting: until '
    yield "the last device of the group started it; the slowest is the one that the others wait for. Minimum and maximum are "
    yield "those of devices.</p>"
    yield from memory.what_helps(profile.overlaps)
    yield '<div class="scroll">'
    numbers = ("bytes", "devices", "time", "minimum", "maximum", "waiting", "exposed")
    texts = ("slowest", "operation", "phase", "line", "scope", "tags")
    columns = [("collective", ""), *((name, "number") for name in numbers), *((name, "") for name in texts)]
    yield f"{breakdown.head_of_table('Collectives, the most exposed first', columns)}<tbody>"
    for each in profile.transfers[:_HOT]:
        seconds = (each.seconds, each.least, each.most, each.waiting, each.exposed)
        texts = (each.slowest, each.operation, each.phase, each.source, each.scope, ", ".join(each.tags))
        yield (
            f"<tr><td><code>{escape(each.name)}</code></td>"
            + "".join(f'<td class="number">{text}</td>' for text in (in_bytes(each.bytes), str(each.group or "all")))
            + "".join(f'<td class="number">{in_words(each_seconds)}</td>' for each_seconds in seconds)
            + "".join(f"<td>{escape(text)}</td>" for text in texts)
            + "</tr>"
        )
    yield "</tbody></table></div></section>"


def _hottest(profile: Profile) -> Iterator[str]:
    if not profile.instructions:
        return
    yield '<section id="hot"><h2>Instructions that take most time</h2><div class="scroll">'
    numbers, texts = ("time", "share", "events"), ("operation", "phase", "line", "tags")
    columns = [("instruction", ""), *((name, "number") for name in numbers), *((name, "") for name in texts)]
    yield f"{breakdown.head_of_table('Instructions, those with most time first', columns)}<tbody>"
    for hot in profile.instructions[:_HOT]:
        code = source_line(hot.file, hot.line, profile.source_root) if hot.file else ""
        quoted = f"<pre>{escape(code)}</pre>" if code else ""
        yield (
            f"<tr><td><code>{escape(hot.name)}</code></td>"
            + "".join(
                f'<td class="number">{text}</td>' for text in (in_words(hot.seconds), f"{hot.share:.1%}", f"{hot.events:.3g}")
            )
            + f'<td class="wide">{escape(operation_in_words(hot))}</td><td>{escape(hot.phase)}</td>'
            + f"<td>{escape(hot.source)}{quoted}</td><td class='wide'><code>{escape(', '.join(hot.tags))}</code></td></tr>"
        )
    yield "</tbody></table></div></section>"
