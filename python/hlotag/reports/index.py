# SPDX-License-Identifier: Apache-2.0
"""The programs of a run as a folder: an index, and a page and the JSON of each program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag._text import count
from hlotag._util.files import write_atomically
from hlotag.reports import audit_json
from hlotag.reports.breakdown import head_of_table
from hlotag.reports.page import assemble
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
    write_atomically(folder / "index.html", assemble("Programs of a run", "\n".join(_body(entries)), kind="index"), private=False)


def _file_of(audit: Audit) -> str:
    """The name of a program's files, without their suffix."""
    return _NO_FILE.sub("_", audit.name)


def _body(entries: Sequence[Entry]) -> Iterator[str]:
    seconds = sum(entry.compilation.seconds for entry in entries)
    again = sum(bool(entry.compilation.why) for entry in entries)
    yield f'<header><h1>Programs of a run</h1><p id="sentence">{count(len(entries), "program")} compiled in {seconds:.1f} s'
    yield f", {again} of them under a name that was compiled before.</p></header>" if again else ".</p></header>"
    has_runs = any(entry.runs is not None for entry in entries)
    columns = [("program", ""), ("compiled", "number"), *([("runs", "number"), ("ran", "number")] if has_runs else [])]
    columns += [("instructions", "number"), ("tags", ""), ("why again", ""), ("arguments", "")]
    yield f'<section><div class="scroll">{head_of_table("Programs", columns)}<tbody>'
    for entry in entries:
        yield _row(entry, has_runs=has_runs)
    yield "</tbody></table></div><p>Programs are compiled anew in the block, so JAX's cache on disk does not count.</p></section>"


def _row(entry: Entry, *, has_runs: bool) -> str:
    made = entry.compilation
    audit = made.audit
    states = ", ".join(f"{audit.counts[state]} {state}" for state in TagState if audit.counts[state])
    needing = sum(tag.needs_attention for tag in audit.tags)
    tags = f'<span class="state lost">{needing} need attention</span>: {states}' if needing else states
    ran = ("", "") if entry.runs is None else (str(entry.runs), f"{entry.seconds or 0.0:.3g} s")
    arguments = f"<details><summary>{len(made.arguments)}</summary>{'<br>'.join(map(escape, made.arguments))}</details>"
    cells = [f'<td><a href="{escape(_file_of(audit))}.html"><code>{escape(audit.name)}</code></a></td>']
    cells += [
        f'<td class="number">{text}</td>'
        for text in (f"{made.seconds:.2f} s", *(ran if has_runs else ()), str(audit.instruction_count))
    ]
    cells += [f"<td>{tags}</td>", f'<td class="wide">{escape(made.why)}</td>', f"<td>{arguments}</td>"]
    return f"<tr>{''.join(cells)}</tr>"
