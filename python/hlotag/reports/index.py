# SPDX-License-Identifier: Apache-2.0
"""The programs of a run as a folder: an index, and a page and the JSON of each program."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hlotag._util.files import write_atomically
from hlotag.reports import audit_json
from hlotag.reports.page import render
from hlotag.results.tags import TagState

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit
    from hlotag.audits.compilations import Entry

_NO_FILE = re.compile(r"[^\w.-]+")


def write_index(folder: Path, entries: Sequence[Entry], write_page: Callable[[Entry, Path], None]) -> None:
    """Writes `index.html`, and a page and the JSON of each program in the same folder.

    Args:
        folder: Where; it is made if it does not exist.
        entries: The programs, in the order of the index.
        write_page: Writes the page of an entry.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        audit = entry.compilation.audit
        write_page(entry, folder / f"{_file_of(audit)}.html")
        write_atomically(folder / f"{_file_of(audit)}.json", audit_json.dumps(audit), private=False)
    write_atomically(folder / "index.html", _render(entries), private=False)


def _file_of(audit: Audit) -> str:
    """The name of a program's files, without their suffix."""
    return _NO_FILE.sub("_", audit.name)


class Line(NamedTuple):
    """The row of a program: `numbers` are its times and runs, `needing` how many of its tags need attention."""

    file: str
    name: str
    numbers: Sequence[str]
    needing: int
    states: str
    why: str
    arguments: Sequence[str]


def _render(entries: Sequence[Entry]) -> str:
    has_runs = any(entry.runs is not None for entry in entries)
    numbers = ("compiled", *(("runs", "ran") if has_runs else ()), "instructions")
    return render(
        "index.html",
        "Programs of a run",
        kind="index",
        seconds=sum(entry.compilation.seconds for entry in entries),
        again=sum(bool(entry.compilation.why) for entry in entries),
        columns=[("program", ""), *((name, "number") for name in numbers), ("tags", ""), ("why again", ""), ("arguments", "")],
        entries=[_describe(entry, has_runs=has_runs) for entry in entries],
    )


def _describe(entry: Entry, *, has_runs: bool) -> Line:
    made = entry.compilation
    audit = made.audit
    ran = ("", "") if entry.runs is None else (str(entry.runs), f"{entry.seconds or 0.0:.3g} s")
    return Line(
        _file_of(audit),
        audit.name,
        (f"{made.seconds:.2f} s", *(ran if has_runs else ()), str(audit.instruction_count)),
        sum(tag.needs_attention for tag in audit.tags),
        ", ".join(f"{audit.counts[state]} {state}" for state in TagState if audit.counts[state]),
        made.why,
        made.arguments,
    )
