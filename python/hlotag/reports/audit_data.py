# SPDX-License-Identifier: Apache-2.0
"""What does a page's script list and search? Tags, instructions, and what is in each row of time or memory."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hlotag._text import in_bytes, in_work
from hlotag._util.files import source_line
from hlotag._util.groups import K, group
from hlotag.results.buffers import Buffer
from hlotag.results.grouping import Grouping, Reader, make_reader, read_values, title_of
from hlotag.results.listing import Listed, list_instructions, listed_row
from hlotag.results.report import TAG_COLUMNS, order_of_tags, tag_row
from hlotag.results.tags import Op, Tag

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

LINKS = 12
"""Limit of the links of a problem or a tag."""
# Limits of a row's instructions, lines and buffers.
_INSTRUCTIONS, _LINES, _BUFFERS = 20, 8, 12
_COLUMNS = ("instruction", "opcode", "operation", "phase", "source", "time", "flops", "bytes")


class Share(NamedTuple):
    """What an operation has of the time, or of the work, of what runs as one.

    Attributes:
        name: The instruction.
        op: The operation; None if XLA added the instruction.
        amount: Seconds, or work.
    """

    name: str
    op: Op | None
    amount: float


class Inside(NamedTuple):
    """What is in a row: the shares of instructions, and the buffers at the peak of memory."""

    shares: list[Share]
    buffers: list[Buffer]


class Times(NamedTuple):
    """The seconds of a step by what runs as one, and what formats them; shares have seconds, too."""

    seconds: Mapping[str, float]
    in_words: Callable[[float], str]


# By what the rows are grouped by, which is empty for those of no operation, and by value.
Rows = Mapping[tuple[str, str], Inside]


def make_rows(audit: Audit, by: Sequence[Grouping], shares: Iterable[tuple[str, str, Share]] | None = None) -> Rows:
    """Finds what is in each row. `shares` have what the rows are grouped by, and the value; by default those of the work."""
    values = read_values(audit)
    readers = {title_of(grouping): make_reader(grouping, values, audit.name) for grouping in by}
    rows: dict[tuple[str, str], Inside] = {}
    for title, value, share in _shares_of_work(audit, readers) if shares is None else shares:
        rows.setdefault((title, value), Inside([], [])).shares.append(share)
    for buffer in audit.memory.buffers if audit.memory else ():
        for title, read in readers.items():
            row = ("", buffer.kind) if buffer.op < 0 else (title, read(audit.ops[buffer.op], buffer.scope))
            inside = rows.setdefault(row, Inside([], []))
            if not inside.buffers or inside.buffers[-1] is not buffer:  # Each grouping has the rows of no operation.
                inside.buffers.append(buffer)
    return rows


def _shares_of_work(audit: Audit, readers: Mapping[str, Reader]) -> Iterator[tuple[str, str, Share]]:
    for each in audit.instructions:
        for owner, (scope, _), effort in zip(each.owners, each.places, each.divide(each.effort), strict=True):
            share = Share(each.kernel, audit.ops[owner], effort * each.runs)
            yield from ((title, read(share.op, scope), share) for title, read in readers.items() if share.op)


def dumps(audit: Audit, lines: Mapping[str, str], rows: Rows, times: Times | None = None) -> str:
    """Writes the data of a page as compressed JSON in base64: texts repeat, so it has a fifth of the size.

    Args:
        audit: The audit.
        lines: Lines of source, by `file:line`.
        rows: What is in each row.
        times: The time of instructions, if it is known.
    """
    data = json.dumps(_Data(audit, lines, times).write(rows), separators=(",", ":"))
    return base64.b64encode(zlib.compress(data.encode(), 9)).decode()


def source_lines(audit: Audit) -> dict[str, str]:
    """The source lines of operations and problems, by `file:line`, if their files can be read."""
    places = {(op.file, op.line) for op in audit.ops} | {(p.file, p.line) for p in audit.report.problems}
    texts = {f"{file}:{line}": source_line(file, line, audit.source_root) for file, line in sorted(places) if file}
    return {place: text for place, text in texts.items() if text}


class _Data:
    """The texts of a page, each once; everything else refers to them by number."""

    def __init__(self, audit: Audit, lines: Mapping[str, str], times: Times | None) -> None:
        self._audit = audit
        self._lines = lines
        self._times = times
        self._strings: dict[str, int] = {}
        self._numbers: dict[str, int] = {}  # of instructions

    def write(self, rows: Rows) -> dict[str, Any]:
        made: dict[str, Any] = {"tag": self._tags(), "instruction": self._instructions()}
        made["rows"] = [self._row(*row, inside) for row, inside in rows.items()]
        return made | {"strings": list(self._strings)}

    def _number_of(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _numbers_of(self, texts: Iterable[str]) -> list[int]:
        return [self._number_of(text) for text in texts]

    def _place(self, op: Op | None) -> tuple[str, str]:
        """The line of an operation: where, and its text."""
        place = f"{op.file}:{op.line}" if op and op.file else ""
        return place, self._lines.get(place, "")

    # --- Tags ------------------------------------------------------------------------------------------------------------

    def _tags(self) -> dict[str, Any]:
        """Each tag: its cells, what a row that opens tells, and the tags that it links to."""
        audit = self._audit
        tags_of = group((tag.op.id, number) for number, tag in enumerate(audit.tags))
        derivatives = group((source, op.id) for op in audit.ops for source in op.derived_from)

        def about(tag: Tag) -> Iterator[str]:
            op, origin = tag.op, tag.origin
            yield from self._place(op)
            yield f"{tag.state}: {tag.details}" if tag.details else ""
            yield f"function {op.function}{f', scope {op.scope}' if op.scope else ''}"
            yield f"{origin.how} by {origin.by}: {origin.detail}" if origin and origin.by else ""
            found = tag.instructions or op.instructions
            yield f"instructions {', '.join(found)}" if found else ""
            for what, numbers in (("derived from", op.derived_from), ("derivative", derivatives.get(op.id, ()))):
                untagged = [audit.ops[n] for n in numbers[:LINKS] if n not in tags_of]
                yield from (f"{what} {other.title} at {other.source}" for other in untagged)

        def links(tag: Tag) -> list[int]:
            related = (*tag.op.derived_from, *derivatives.get(tag.op.id, ()))[:LINKS]
            return [tags_of[n][0] for n in related if n in tags_of]

        return {
            "columns": TAG_COLUMNS,
            "order": order_of_tags(audit),
            "cells": [self._numbers_of(tag_row(tag)) for tag in audit.tags],
            "about": [self._numbers_of(filter(None, about(tag))) for tag in audit.tags],
            "links": [links(tag) for tag in audit.tags],
        }

    # --- Instructions ----------------------------------------------------------------------------------------------------

    def _instructions(self) -> dict[str, Any]:
        """Each instruction, those with most time or work first; a fusion is before what is in it."""
        cells, about = [], []
        inside_of = group((each.instruction.kernel, each) for each in list_instructions(self._audit))
        seconds = self._times.seconds if self._times else {}
        for name, inside in sorted(inside_of.items(), key=lambda each: -seconds.get(each[0], 0.0)):
            in_fusion = inside if inside[0].instruction.fusion else []
            for each in [*([_fusion(name, in_fusion)] if in_fusion else []), *inside]:
                self._numbers[each.instruction.name] = len(cells)
                cells.append(self._numbers_of(self._cells(each)))
                about.append(self._numbers_of(filter(None, self._about(each))))
        links: list[list[int]] = [[] for _ in cells]
        for name, inside in inside_of.items():
            within = [self._numbers[each.instruction.name] for each in inside if each.instruction.fusion]
            links[self._numbers[name]] = within
            for number in within:
                links[number] = [self._numbers[name]]
        return {"columns": _COLUMNS, "order": list(range(len(cells))), "cells": cells, "about": about, "links": links}

    def _cells(self, each: Listed) -> Iterator[str]:
        instruction = each.instruction
        name, opcode, _, operation, phase, source, *_ = listed_row(each)
        seconds = self._times.seconds.get(name) if self._times else None
        flops = in_work(instruction.flops, 0) if instruction.flops else ""
        yield from (name, opcode, operation, phase, source, self._words(seconds), flops)
        yield in_bytes(instruction.bytes) if instruction.bytes else ""

    def _about(self, each: Listed) -> Iterator[str]:
        instruction = each.instruction
        yield from self._place(each.op)
        yield f"scope {instruction.scope}" if instruction.scope else ""
        yield f"runs {instruction.runs} times" if instruction.runs != 1 else ""
        yield f"run by {instruction.caller}" if instruction.caller else ""
        yield ", ".join(f"{key}={value}" for key, value in each.tags.items())

    # --- Rows ------------------------------------------------------------------------------------------------------------

    def _row(self, title: str, value: str, inside: Inside) -> dict[str, Any]:
        """The instructions, the lines and the buffers of a row, those with most first."""
        shares = [share for share in inside.shares if share.name in self._numbers]
        known = _sum((self._numbers[share.name], share.amount) for share in shares)
        lines = _sum((self._place(share.op), share.amount) for share in shares if share.op and share.op.file)
        return {
            "of": [title, value],
            "instructions": [[number, self._number_of(self._words(amount))] for number, amount in known[:_INSTRUCTIONS]],
            "lines": [self._numbers_of((*place, self._words(amount))) for place, amount in lines[:_LINES]],
            "buffers": [self._numbers_of(self._buffer(each)) for each in inside.buffers[:_BUFFERS]],
            "more": [max(0, len(known) - _INSTRUCTIONS), max(0, len(lines) - _LINES), max(0, len(inside.buffers) - _BUFFERS)],
        }

    def _words(self, seconds: float | None) -> str:
        return self._times.in_words(seconds) if self._times and seconds is not None else ""

    def _buffer(self, buffer: Buffer) -> tuple[str, ...]:
        op = self._audit.ops[buffer.op] if buffer.op >= 0 else None
        return buffer.name, buffer.type, in_bytes(buffer.bytes), buffer.phase, op.source if op else ""


def _fusion(name: str, inside: Sequence[Listed]) -> Listed:
    """A fusion as the sum of what is in it, under the operation with most work."""
    most = max(inside, key=lambda each: (each.op is not None, each.instruction.effort))
    flops, size = (sum(getattr(each.instruction, amount) for each in inside) for amount in ("flops", "bytes"))
    tags: dict[str, str] = {}
    for each in reversed(inside):
        tags |= each.tags
    found = most.instruction._replace(name=name, opcode="fusion", fusion="", flops=flops, bytes=size)
    return Listed(found, most.op, tags)


def _sum(amounts: Iterable[tuple[K, float]]) -> list[tuple[K, float]]:
    """Sums the amounts of each key, most first."""
    found = {key: sum(some) for key, some in group(amounts).items()}
    return sorted(found.items(), key=lambda each: -each[1])
