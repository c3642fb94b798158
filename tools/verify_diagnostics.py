# SPDX-License-Identifier: Apache-2.0
"""`hlotag-opt` with `--verify-diagnostics`, as in `mlir-opt`: fails unless diagnostics match the `expected-...` comments.

With HLOTAG_MLIR_OPT_PLUGIN in the environment, `mlir_opt_driver.py` runs the passes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hlotag.cli import commands, opt, terminal
from hlotag.errors import Diagnostic
from hlotag.mlir.modules import SOURCE_NAME

_COMMENT = re.compile(
    r"expected-(?P<severity>error|note|remark|warning)(?P<regex>-re)? *"
    r"(?:@(?P<place>[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\}"
)
_REGEX_PART = re.compile(r"\{\{(.*?)\}\}")


@dataclass
class Expectation:
    """One comment.

    Attributes:
        severity: "error", "note", "remark" or "warning".
        line: The line of the expected diagnostic; None for `@unknown`, which includes locations outside the file.
        comment_line: The line of the comment.
        text: The text that the message must contain.
        pattern: The text as a regular expression.
    """

    severity: str
    line: int | None
    comment_line: int
    text: str
    pattern: re.Pattern[str]


def find_expectations(source: str) -> list[Expectation]:
    """Reads the comments of a file."""
    lines = source.splitlines()
    holds_comment = [bool(_COMMENT.search(line)) for line in lines]
    found = []
    for number, line in enumerate(lines, start=1):
        for match in _COMMENT.finditer(line):
            text = match["text"]
            found.append(
                Expectation(
                    severity=match["severity"],
                    line=_target(match["place"], number, holds_comment),
                    comment_line=number,
                    text=text,
                    pattern=_pattern(text) if match["regex"] else re.compile(re.escape(text)),
                )
            )
    return found


def compare(expectations: list[Expectation], reports: Iterable[Diagnostic]) -> list[tuple[int | None, str]]:
    """Matches expectations with reports."""
    unmatched = list(expectations)
    problems: list[tuple[int | None, str]] = []
    for report in _flatten(reports):
        match = next((e for e in unmatched if _accepts(e, report)), None)
        if match is None:
            problems.append((_line_of(report), f"unexpected {report.severity}: {report.message}"))
        else:
            unmatched.remove(match)
    problems += [(e.comment_line, f'expected {e.severity} "{e.text}" was not produced') for e in unmatched]
    return problems


def _flatten(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flatten(diagnostic.notes)


def _line_of(report: Diagnostic) -> int | None:
    """The line of a report; None if it is outside the file."""
    return report.line if report.file == SOURCE_NAME else None


def _accepts(expectation: Expectation, report: Diagnostic) -> bool:
    same_place = expectation.line == _line_of(report) and expectation.severity == report.severity
    return same_place and expectation.pattern.search(report.message) is not None


def _target(place: str | None, number: int, holds_comment: list[bool]) -> int | None:
    """The line that a comment on line `number` refers to; `@above` and `@below` skip other comments."""
    if place is None:
        return number
    if place == "unknown":
        return None
    if place not in ("above", "below"):
        return number + int(place)
    step = -1 if place == "above" else 1
    target = number + step
    while 1 <= target <= len(holds_comment) and holds_comment[target - 1]:
        target += step
    return target


def _pattern(text: str) -> re.Pattern[str]:
    """The pattern of an `-re` comment: `{{...}}` within the text is a regular expression, the rest is literal."""
    parts = _REGEX_PART.split(text)
    return re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))


def verified(args: Any, source: str, filename: str, pipeline: str) -> bytes | None:
    """As `opt._result`, but compares the diagnostics instead of printing them; None if they differ."""
    reports: list[Diagnostic] = []
    opt._report = lambda diagnostics, *_: reports.extend(diagnostics)
    result = _result(args, source, filename, pipeline)
    problems = compare(find_expectations(source), reports)
    for line, problem in problems:
        terminal.say(f"{filename}:{line}: error: {problem}" if line else f"{filename}: unknown location: error: {problem}")
    return None if problems else result or b""


_result, opt._result = opt._result, verified


def main() -> int:
    """Returns the exit status: 1 if a diagnostic and the comments differ."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--verify-diagnostics"]
    if "HLOTAG_MLIR_OPT_PLUGIN" not in os.environ:
        return commands.opt_main(arguments)
    import mlir_opt_driver

    sys.argv[1:] = arguments
    return mlir_opt_driver.main()


if __name__ == "__main__":
    sys.exit(main())
