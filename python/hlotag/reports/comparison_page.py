# SPDX-License-Identifier: Apache-2.0
"""A comparison as one self-contained HTML page: the variants side by side, and the rows in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotag.reports.comparison_table import effects_in_words
from hlotag.reports.drawing import BAR, Bar, Rect
from hlotag.reports.page import render
from hlotag.results.compared import MEASURES, TIME, Amount, Difference, Outcome, Trend

if TYPE_CHECKING:
    from hlotag.comparisons.comparison import Comparison


# Limit of rows of a variant.
_ROWS = 60
_TITLES = {
    TIME: "Time of a step",
    "flops": "Floating-point operations",
    "bytes": "Bytes written, and read by index",
    "exchanged": "Bytes of collectives",
    "memory": "Memory at the peak",
}


def html(found: Comparison) -> str:
    """Renders the page, without a script."""
    return render(
        "comparison.html",
        f"{found.base.name}: variants",
        kind="comparison",
        found=found,
        variants=[_describe(each, is_base=each is found.base) for each in (found.base, *found.outcomes)],
        measures=[(_TITLES[measure], bars) for measure in MEASURES if (bars := _make_bars(found, measure))],
        differences=[each for outcome in found.outcomes if (each := _list_differences(outcome))],
    )


def _describe(outcome: Outcome, *, is_base: bool) -> tuple[str, Sequence[str]]:
    """The name of a variant, and the cells of its row."""
    verdict = "compared with" if is_base else outcome.verdict
    return outcome.name, (verdict, outcome.error or outcome.results, effects_in_words(outcome), "; ".join(outcome.problems))


def _make_bars(found: Comparison, measure: str) -> list[Bar]:
    """A bar for each variant that has the measure; none if all are zero."""
    amounts = [(each.name, amount) for each in found.outcomes if (amount := each.program.amount(measure))]
    longest = max((max(amount.before, amount.now) for _, amount in amounts), default=0.0)
    if not longest:
        return []
    first = amounts[0][1]
    bars = [_make_bar(found.base.name, first.before, first.in_words(first.before), "", longest)]
    for name, amount in amounts:
        change = amount.change if amount.trend != Trend.SAME or amount.margin else "="
        bars.append(_make_bar(name, amount.now, amount.in_words(amount.now), change, longest))
    return bars


def _make_bar(name: str, amount: float, words: str, change: str, longest: float) -> Bar:
    return Bar(name, words, [Rect("forward", 0, BAR * amount / longest)], words, change, value=name)


def _list_differences(outcome: Outcome) -> tuple[str, list[tuple[str, str]], list[tuple[str, list[str]]], int] | None:
    """The rows of a variant that differ or are undecided; None if there is none.

    Returns its name; the columns of measures with their classes; the rows, each with its name and cells; and how many more there
    are.
    """
    rows = [row for row in outcome.rows if row.has(Trend.MORE, Trend.LESS, Trend.UNDECIDED)]
    if not rows:
        return None
    measures = [m for m in MEASURES if any((amount := row.amount(m)) and (amount.before or amount.now) for row in rows)]
    cells = [(row.name, [_cell(row, measure) for measure in measures]) for row in rows[:_ROWS]]
    return outcome.name, [(measure, "number") for measure in measures], cells, len(rows) - _ROWS


def _cell(row: Difference, measure: str) -> str:
    amount = row.amount(measure)
    return _in_words(amount) if amount else ""


def _in_words(amount: Amount) -> str:
    if amount.trend == Trend.UNDECIDED:
        return f"{amount.in_words(amount.now)} (undecided, {amount.doubt})"
    return str(amount) if amount.trend != Trend.SAME else amount.in_words(amount.now)
