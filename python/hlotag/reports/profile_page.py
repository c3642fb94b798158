# SPDX-License-Identifier: Apache-2.0
"""One self-contained HTML page that answers: time, communication, memory, rates, and what became of the tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hlotag._text import in_bytes, rate_in_words
from hlotag._util.files import source_line
from hlotag.reports import audit_data, audit_page, breakdown, charts, memory
from hlotag.reports.page import render
from hlotag.reports.profile_table import operation_in_words
from hlotag.results.times import ADDED, MEANINGS, UNDIVIDED, Hot, Rates, Transfer, in_words

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile
    from hlotag.profiles.program import Program

# Limit of instructions.
_HOT = 60
_TRANSFER_NUMBERS = ("bytes", "devices", "time", "minimum", "maximum", "waiting", "exposed")
_TRANSFER_TEXTS = ("slowest", "operation", "phase", "line", "scope", "tags")


def html(profile: Profile) -> str:
    """Renders the page. Without its program, it has no script."""
    values: dict[str, Any] = {"audit": None, "memory": None}
    rows: audit_data.Rows = {}
    if profile.program is not None:
        audit = profile.program.audit
        rows = audit_data.make_rows(audit, profile.groupings, _shares(profile, profile.program))
        values = audit_page.describe(audit, rows=rows, times=audit_data.Times(profile.seconds, in_words))
        values["memory"] = memory.make_section(audit, profile.groupings, rows)
    title = f"{profile.name}: {'report' if profile.program else 'time by tag'}"
    return render("profile.html", title, **values, **_describe(profile, rows))


def _describe(profile: Profile, rows: audit_data.Rows) -> dict[str, Any]:
    """What `profile.html` shows besides the audit."""
    key = profile.telling_key
    return {
        "profile": profile,
        "step_facts": _facts(profile),
        "contents": _contents(profile),
        "times": [
            breakdown.make_bars(found, in_words, MEANINGS, _rates(profile, found.title), opens=rows)
            for found in profile.break_down()
        ],
        "transfers": [_transfer_row(each) for each in profile.transfers[:_HOT]],
        "transfer_columns": _columns("collective", _TRANSFER_NUMBERS, _TRANSFER_TEXTS),
        "overlaps": profile.overlaps,
        "key": key,
        "roofline": charts.draw_roofline(profile, key) if key else None,
        "timeline": charts.draw_timeline(profile, key),
        "hottest": [_describe_hot(hot, profile.source_root) for hot in profile.instructions[:_HOT]],
        "hot_columns": _columns("instruction", ("time", "share", "events"), ("operation", "phase", "line", "tags")),
        "meanings": MEANINGS,
    }


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


def _contents(profile: Profile) -> dict[str, str]:
    """The sections that there are, by their ids; none without the script, which follows links in a frame of a notebook."""
    if profile.program is None:
        return {}
    names = {f"time-{key}": f"Time by {key}" for key in profile.keys[:1]}
    names |= {"communication": "Communication"} if profile.transfers else {}
    if audit := profile.program.audit:
        names |= {"memory": "Memory"} if audit.memory else {}
        names |= {"timeline": "Timeline"} if profile.timeline else {}
        names |= {"tags": "Tags"} if audit.tags else {}
        names |= {"kernels": "Kernels", "every": "Search"}
    return names


def _facts(profile: Profile) -> str:
    fastest, slowest = min(profile.steps), max(profile.steps)
    return f"Mean of {len(profile.steps)} steps of {in_words(fastest)} to {in_words(slowest)}, on {', '.join(profile.devices)}"


def _rates(profile: Profile, key: str) -> dict[str, str]:
    """By value, its rates in words."""
    return {value: _rates_in_words(each) for value, each in profile.rates(key).items()}


def _rates_in_words(rates: Rates) -> str:
    found = f"{rate_in_words(rates.flops_per_second)}flop/s, {rate_in_words(rates.bytes_per_second)}B/s"
    return f"{found}, {rates.of_limit}" if rates.of_limit else found


def _columns(first: str, numbers: Sequence[str], texts: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of a table, with their classes."""
    return [(first, ""), *((name, "number") for name in numbers), *((name, "") for name in texts)]


def _transfer_row(each: Transfer) -> tuple[str, Sequence[str], Sequence[str]]:
    """The name of a collective, and the cells of its numbers and texts."""
    seconds = (each.seconds, each.least, each.most, each.waiting, each.exposed)
    numbers = (in_bytes(each.bytes), str(each.group or "all"), *map(in_words, seconds))
    return each.name, numbers, (each.slowest, each.operation, each.phase, each.source, each.scope, ", ".join(each.tags))


class HotRow(NamedTuple):
    """An instruction with its line of code."""

    name: str
    numbers: Sequence[str]
    operation: str
    phase: str
    source: str
    code: str
    tags: str


def _describe_hot(hot: Hot, source_root: str | None) -> HotRow:
    code = source_line(hot.file, hot.line, source_root) if hot.file else ""
    numbers = (in_words(hot.seconds), f"{hot.share:.1%}", f"{hot.events:.3g}")
    return HotRow(hot.name, numbers, operation_in_words(hot), hot.phase, hot.source, code, ", ".join(hot.tags))
