# SPDX-License-Identifier: Apache-2.0
"""A comparison as tables in a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import count, list_some, printable
from hlotag._util.columns import columns
from hlotag._util.groups import group
from hlotag.reports.audit_table import WIDE, fit_rows, needed_width, plain_text
from hlotag.results.compared import EQUAL, MEASURES, TIME, Amount, Difference, Outcome, Trend
from hlotag.results.tags import Verdict

if TYPE_CHECKING:
    from hlotag.comparisons.comparison import Comparison


# Limits of listed rows of a variant, and of problems.
_ROWS, _PROBLEMS = 10, 3
# A row is listed if it changed by this part of the program's amount.
_NOTABLE = 0.01
_SAME = "="
# The line of a variant has its results up to this.
_END_OF_SHORT_RESULTS = re.compile(" of the (?:largest|elements)|:")
_TITLES = {TIME: "step"}


def as_text(found: Comparison, width: int | None = None) -> str:
    """Renders a comparison without colours; `width` is that of `columns()` by default."""
    width = width or columns()
    return plain_text(renderable(found, width), width)


def renderable(found: Comparison, width: int) -> RenderableType:
    """Renders a comparison for rich: the sentence, a line for each variant, and the rows in which variants differ."""
    parts: list[RenderableType] = [Text(printable(found.sentence), "bold"), _variants(found, width)]
    if same := equal_measures(found):
        parts.append(Text(f"Equal in all variants: {', '.join(same)}.", "dim"))
    for outcome in found.outcomes:
        parts += _details(outcome, width)
    parts += [Text(printable(f"note: {note}"), "dim") for note in (*_rounds(found), *found.notes)]
    return Group(*parts)


def equal_measures(found: Comparison) -> list[str]:
    """The counted measures in which no variant differs, with their amount."""
    by_measure = group((amount.measure, amount) for each in found.outcomes for amount in each.program.amounts)
    return [
        f"{measure} {by_measure[measure][0].in_words(by_measure[measure][0].now)}"
        for measure in MEASURES[1:]
        if measure in by_measure and all(each.trend == Trend.SAME for each in by_measure[measure])
    ]


def effects_in_words(outcome: Outcome) -> str:
    """`2 changed, 1 refused`; empty without effects."""
    counts = {verdict: sum(each.verdict == verdict for each in outcome.effects) for verdict in Verdict}
    return ", ".join(f"{number} {verdict.label}" for verdict, number in counts.items() if number)


def _rounds(found: Comparison) -> Iterator[str]:
    if found.rounds:
        yield f"{count(found.rounds, 'round')} in {found.seconds:.0f} s; a change of {found.visible:.0%} was looked for."


def _variants(found: Comparison, width: int) -> Table:
    """A line for each variant. Measures in which none differs are left out."""
    every = (found.base, *found.outcomes)
    differing = [
        m
        for m in MEASURES
        if any((a := each.program.amount(m)) and (m == TIME or a.trend != Trend.SAME) for each in found.outcomes)
    ]
    limits = {"variant": 24 if width >= WIDE else 16} | {_TITLES.get(measure, measure): 21 for measure in differing}
    limits |= {"results": 40 if width >= WIDE else 18, "tags": 40 if width >= WIDE else 16}
    if not any(map(effects_in_words, every)):
        del limits["tags"]
    base_time = next((a for each in found.outcomes if (a := each.program.amount(TIME))), None)

    def lines(cell: Callable[[Amount], str]) -> list[list[str]]:
        made = []
        for each in every:
            results = "not compiled" if each.error else _END_OF_SHORT_RESULTS.split(each.results)[0]
            cells = {"variant": each.name, "results": results, "tags": effects_in_words(each)}
            for measure in differing:
                amount = base_time if each is found.base and measure == TIME else each.program.amount(measure)
                show = _first_cell if each is found.base else cell
                cells[_TITLES.get(measure, measure)] = show(amount) if amount else ""
            made.append([printable(cells[column]) for column in limits])
        return made

    return _fit(limits, lines, width, numbers={_TITLES.get(measure, measure) for measure in differing})


def _rows(rows: Sequence[Difference], width: int) -> Table:
    """The amounts of rows, with how they changed. Measures that are equal in all of these rows are left out."""
    measures = [m for m in MEASURES if any((a := row.amount(m)) and a.differs for row in rows)]

    def lines(cell: Callable[[Amount], str]) -> list[list[str]]:
        amounts = [(row.name, [row.amount(measure) for measure in measures]) for row in rows]
        return [[printable(name), *("" if each is None else cell(each) for each in found)] for name, found in amounts]

    return _fit({"row": 40 if width >= WIDE else 24} | dict.fromkeys(measures, 21), lines, width, numbers=set(measures))


def _fit(
    limits: Mapping[str, int],
    lines: Callable[[Callable[[Amount], str]], list[list[str]]],
    width: int,
    *,
    numbers: Collection[str],
) -> Table:
    """The table with amounts and changes, or with changes alone if the width has no room for both."""
    rows = lines(_cell)
    cut = [
        [cell if name in numbers else cell[:limit] for cell, (name, limit) in zip(row, limits.items(), strict=True)]
        for row in rows
    ]
    if needed_width(limits, cut) > width:
        rows = lines(_short_cell)
    return fit_rows(limits, rows, width, numbers=numbers)


def _first_cell(amount: Amount) -> str:
    return amount.in_words(amount.before)


def _cell(amount: Amount) -> str:
    change = _change(amount)
    return change if change == _SAME else f"{amount.in_words(amount.now)} {change}"


def _short_cell(amount: Amount) -> str:
    return f"+{amount.in_words(amount.now)}" if not amount.before and amount.now else _change(amount)


def _change(amount: Amount) -> str:
    return amount.change if amount.measure == TIME or amount.trend != Trend.SAME else _SAME


def _is_notable(row: Difference, program: Difference) -> bool:
    """Whether an amount of a row changed by 1% of the program's."""
    for amount in row.amounts:
        whole = program.amount(amount.measure)
        least = _NOTABLE * max(whole.before, whole.now) if whole else 0.0
        if amount.differs and abs(amount.now - amount.before) >= least:
            return True
    return False


def _details(outcome: Outcome, width: int) -> Iterator[RenderableType]:
    """What is to be said of one variant: its error, its rows that differ, and what is undecided."""
    if outcome.error:
        yield Text(printable(f"{outcome.name} was not compiled: {outcome.error.strip().splitlines()[0]}"), "bold red")
        return
    if outcome.results not in ("", EQUAL):
        yield Text(printable(f"{outcome.name}: results: {outcome.results}"), "yellow")
    differing = outcome.differing()
    if listed := [row for row in differing if _is_notable(row, outcome.program)][:_ROWS]:
        yield Text(
            printable(f"{outcome.name}: {count(len(differing), 'row')} that {'differs' if len(differing) == 1 else 'differ'}"),
            "bold",
        )
        yield _rows(listed, width)
    if listed and len(differing) > len(listed):
        more = len(differing) - len(listed)
        yield Text(f"{count(more, 'more row')} {'is' if more == 1 else 'are'} in the JSON.", "dim")
    if undecided := outcome.undecided():
        rows = [f"{row.name} ({each.doubt})" for row in undecided for each in row.amounts if each.trend == Trend.UNDECIDED]
        yield Text(printable(f"{outcome.name}: undecided: {list_some(rows, 5)}"), "yellow")
    if outcome.problems:
        yield Text(printable(f"{outcome.name}: worse with the tags: {list_some(outcome.problems, _PROBLEMS)}"), "yellow")
    for verdict, style in ((Verdict.REFUSED, "yellow"), (Verdict.CHANGED, "dim")):
        lines = [str(each) for each in outcome.effects if each.verdict == verdict]
        yield from (Text(printable(f"{outcome.name}: {line}"), style) for line in lines[:_PROBLEMS])
