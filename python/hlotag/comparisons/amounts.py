# SPDX-License-Identifier: Apache-2.0
"""How do the work and the memory of two programs differ? Counted by XLA, so exact on a busy machine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from hlotag.audits.audit import Audit
from hlotag.audits.baseline import FEWER, worse
from hlotag.comparisons.timing import Place
from hlotag.results.compared import MEASURES, TIME, Amount, Difference, Trend
from hlotag.results.costs import Cost, sum_costs
from hlotag.results.grouping import Grouping, make_reader, read_values, title_of
from hlotag.results.report import Problem

# Without time, and without memory if an audit lacks it.
_COUNTED = MEASURES[1:]


def groupings_of(now: Audit, before: Audit, by: Grouping | None) -> list[Grouping]:
    """What rows are grouped by: `by`, else each key that both programs have, else "scope"."""
    return [by] if by is not None else [key for key in now.keys if key in before.keys] or ["scope"]


def list_worse(now: Audit, before: Audit) -> tuple[str, ...]:
    """The problems of tags that the other program does not have, a line each. Fewer tags are none: programs may differ."""
    found = (problem for problem in worse(now, before) if problem.kind != FEWER)
    return tuple(_in_a_line(problem) for problem in found)


def _in_a_line(problem: Problem) -> str:
    """What is wrong and where; without a tag, which rule or pass it is."""
    if problem.source:
        return f"{problem.title} at {problem.source}"
    return problem.title if problem.tag else f"{problem.title}: {problem.why}"


def compare_amounts(now: Audit, before: Audit, groups: Sequence[Grouping]) -> tuple[Difference, list[Difference]]:
    """Compares what the programs compute, exchange and hold.

    Returns the whole program, and all rows. Raises ArgumentError if a key of `groups` is in none of the programs.
    """
    names = _COUNTED if now.memory is not None and before.memory is not None else _COUNTED[:-1]
    keys = [*now.keys, *before.keys]
    rows: dict[Place, Difference] = {}
    for group in groups:
        was, is_now = (_sum_amounts(audit, group, keys) for audit in (before, now))
        for place in dict.fromkeys([*was, *is_now]):
            rows[place] = Difference(*place, _pair(names, was.get(place, []), is_now.get(place, [])))
    return Difference("", "", "", _pair(names, _totals(before), _totals(now))), list(rows.values())


def order_of_row(row: Difference) -> tuple[bool, bool, float, float]:
    """Sorts rows that differ before others, then rows of keys, then those that differ most in time, and in what is counted."""
    differs = [each for each in row.amounts if each.differs]
    of_time, counted = (
        sum(abs(each.now - each.before) for each in differs if (each.measure == TIME) is is_time) for is_time in (True, False)
    )
    return not differs, not row.key, -of_time, -counted


def _pair(names: Sequence[str], before: Sequence[int], now: Sequence[int]) -> tuple[Amount, ...]:
    """The amounts of a row, which may be in one of the programs only."""
    pairs = zip(names, zip_longest(before, now, fillvalue=0), strict=False)
    return tuple(Amount(name, was, is_now, _trend(was, is_now)) for name, (was, is_now) in pairs)


def _trend(was: int, is_now: int) -> Trend:
    if was == is_now:
        return Trend.SAME
    return Trend.MORE if is_now > was else Trend.LESS


def _sum_amounts(audit: Audit, by: Grouping, keys: Sequence[str]) -> dict[Place, list[int]]:
    """By row, the amounts of `_COUNTED`."""
    rows = sum_costs(audit, title_of(by), make_reader(by, read_values(audit), audit.name, keys))
    return {(row.key, row.value, row.phase): _amounts([row]) for row in rows}


def _totals(audit: Audit) -> list[int]:
    return _amounts(audit.costs_by("operation"))


def _amounts(rows: Sequence[Cost]) -> list[int]:
    return [sum(getattr(row, name) for row in rows) for name in _COUNTED]
