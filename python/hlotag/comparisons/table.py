# SPDX-License-Identifier: Apache-2.0
"""A comparison as tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._text import count, list_some, printable
from hlotag._util.columns import columns
from hlotag._util.groups import group
from hlotag.audits.model import Verdict
from hlotag.audits.render.table import WIDE, fit_rows, plain_text
from hlotag.comparisons.model import MEASURES, TIME, Amount, Compared, Difference, Outcome, Trend

# Limits of listed rows of a variant, and of problems.
_ROWS, _PROBLEMS = 10, 3
_TITLES = {TIME: "step"}


def as_text(found: Compared, width: int | None = None) -> str:
    """Renders a comparison without colours; `width` is that of `columns()` by default."""
    width = width or columns()
    return plain_text(renderable(found, width), width)


def renderable(found: Compared, width: int) -> RenderableType:
    """Renders a comparison for rich: the sentence, a line for each variant, and the rows in which variants differ."""
    parts: list[RenderableType] = [Text(printable(found.sentence), "bold"), _variants(found, width)]
    if same := equal_measures(found):
        parts.append(Text(f"Equal in all variants: {', '.join(same)}.", "dim"))
    for outcome in found.outcomes:
        parts += _details(outcome, width)
    parts += [Text(printable(f"note: {note}"), "dim") for note in (*_rounds(found), *found.notes)]
    return Group(*parts)


def equal_measures(found: Compared) -> list[str]:
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


def _rounds(found: Compared) -> Iterator[str]:
    if found.rounds:
        yield f"{found.rounds} rounds in {found.seconds:.0f} s; a change of {found.visible:.0%} was looked for."


def _variants(found: Compared, width: int) -> Table:
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
    rows = []
    for each in every:
        cells = {"variant": each.name, "results": (each.error and "not compiled") or each.results, "tags": effects_in_words(each)}
        for measure in differing:
            amount = each.program.amount(measure)
            cells[_TITLES.get(measure, measure)] = "" if amount is None else _cell(amount, is_base=each is found.base)
        rows.append([printable(cells[column]) for column in limits])
    base_time = next((a for each in found.outcomes if (a := each.program.amount(TIME))), None)
    if base_time and TIME in differing:
        rows[0][list(limits).index("step")] = base_time.in_words(base_time.before)
    return fit_rows(limits, rows, width, numbers={_TITLES.get(measure, measure) for measure in differing})


def _rows(rows: Sequence[Difference], width: int) -> Table:
    """The amounts of rows, with how they changed. Measures that are equal in all of these rows are left out."""
    measures = [m for m in MEASURES if any((a := row.amount(m)) and a.trend in (Trend.MORE, Trend.LESS) for row in rows)]
    lines = []
    for row in rows:
        amounts = [row.amount(measure) for measure in measures]
        lines.append([printable(row.name), *("" if each is None else _cell(each, is_base=False) for each in amounts)])
    return fit_rows({"row": 40 if width >= WIDE else 24} | dict.fromkeys(measures, 21), lines, width, numbers=set(measures))


def _cell(amount: Amount, *, is_base: bool) -> str:
    if is_base:
        return amount.in_words(amount.before)
    return f"{amount.in_words(amount.now)} {amount.change}" if amount.measure == TIME or amount.trend != Trend.SAME else "="


def _details(outcome: Outcome, width: int) -> Iterator[RenderableType]:
    """What is to be said of one variant: its error, its rows that differ, and what is undecided."""
    if outcome.error:
        yield Text(printable(f"{outcome.name} was not compiled: {outcome.error.strip().splitlines()[0]}"), "bold red")
        return
    if differing := outcome.differing():
        yield Text(
            printable(f"{outcome.name}: {count(len(differing), 'row')} that {'differs' if len(differing) == 1 else 'differ'}"),
            "bold",
        )
        yield _rows(differing[:_ROWS], width)
        if len(differing) > _ROWS:
            yield Text(f"{len(differing) - _ROWS} more", "dim")
    if undecided := outcome.undecided():
        rows = [f"{row.name} ({each.doubt})" for row in undecided for each in row.amounts if each.trend == Trend.UNDECIDED]
        yield Text(printable(f"{outcome.name}: undecided: {list_some(rows, 5)}"), "yellow")
    if outcome.problems:
        yield Text(printable(f"{outcome.name}: worse with the tags: {list_some(outcome.problems, _PROBLEMS)}"), "yellow")
    refused = [str(each) for each in outcome.effects if each.verdict == Verdict.REFUSED]
    yield from (Text(printable(f"{outcome.name}: {line}"), "yellow") for line in refused[:_PROBLEMS])
