# SPDX-License-Identifier: Apache-2.0
"""A comparison as one self-contained HTML page: the variants side by side, and the rows in which they differ."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from hlotag.reports.breakdown import head_of_table
from hlotag.reports.comparison_table import effects_in_words
from hlotag.reports.page import assemble
from hlotag.results.compared import MEASURES, TIME, Amount, Difference, Outcome, Trend

if TYPE_CHECKING:
    from hlotag.comparisons.comparison import Comparison


# Limit of rows of a variant.
_ROWS = 60
_BAR = 1000  # the width of the longest bar
_TITLES = {
    TIME: "Time of a step",
    "flops": "Floating-point operations",
    "bytes": "Bytes written, and read by index",
    "exchanged": "Bytes of collectives",
    "memory": "Memory at the peak",
}


def html(found: Comparison) -> str:
    """Renders the page, without a script. Its content security policy forbids connections."""
    return assemble(f"{found.base.name}: variants", "\n".join(_body(found)), kind="comparison")


def _body(found: Comparison) -> Iterator[str]:
    yield f"<header><h1>{escape(found.base.name)} and {len(found.outcomes)} more</h1>"
    yield f'<p id="sentence">{escape(found.sentence)}</p>'
    if found.rounds:
        yield f'<p id="facts">{found.rounds} rounds in turns; a change of {found.visible:.0%} was looked for</p>'
    yield "</header>"
    yield from _variants(found)
    for measure in MEASURES:
        yield from _bars(found, measure)
    for outcome in found.outcomes:
        yield from _rows(outcome)
    yield "<footer>" + "".join(f"<p>{escape(note)}</p>" for note in found.notes) + "</footer>"


def _variants(found: Comparison) -> Iterator[str]:
    yield '<section id="variants"><h2>Variants</h2><div class="scroll">'
    columns = ("variant", "verdict", "results", "effects of tags", "worse")
    yield f"{head_of_table('Variants', ((title, '') for title in columns))}<tbody>"
    for each in (found.base, *found.outcomes):
        verdict = "compared with" if each is found.base else each.verdict
        cells = (verdict, each.error or each.results, effects_in_words(each), "; ".join(each.problems))
        yield f"<tr><td><code>{escape(each.name)}</code></td>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div></section>"


def _bars(found: Comparison, measure: str) -> Iterator[str]:
    """A bar for each variant that has the measure."""
    amounts = [(each.name, amount) for each in found.outcomes if (amount := each.program.amount(measure))]
    longest = max((max(amount.before, amount.now) for _, amount in amounts), default=0.0)
    if not longest:
        return
    yield f'<section><h2>{_TITLES[measure]}</h2><ul class="bars">'
    first = amounts[0][1]
    yield _bar(found.base.name, first.before, first.in_words(first.before), "", longest)
    for name, amount in amounts:
        yield _bar(
            name,
            amount.now,
            amount.in_words(amount.now),
            amount.change if amount.trend != Trend.SAME or amount.margin else "=",
            longest,
        )
    yield "</ul></section>"


def _bar(name: str, amount: float, words: str, change: str, longest: float) -> str:
    rect = f'<rect class="forward" x="0" width="{_BAR * amount / longest:.1f}" height="10"/>'
    return (
        f"<li><span><code>{escape(name)}</code></span>"
        f'<svg viewBox="0 0 {_BAR} 10" preserveAspectRatio="none" role="img"><title>{escape(words)}</title>{rect}</svg>'
        f'<span class="amount">{escape(words)}</span><span class="share">{escape(change)}</span></li>'
    )


def _rows(outcome: Outcome) -> Iterator[str]:
    """The rows of a variant that differ or are undecided: each measure before and now."""
    rows = [row for row in outcome.rows if row.has(Trend.MORE, Trend.LESS, Trend.UNDECIDED)]
    if not rows:
        return
    measures = [m for m in MEASURES if any((amount := row.amount(m)) and (amount.before or amount.now) for row in rows)]
    yield f'<section><h2>{escape(outcome.name)}</h2><div class="scroll">'
    columns = [("row", ""), *((measure, "number") for measure in measures)]
    yield f"{head_of_table(f'Rows of {outcome.name} that differ', columns)}<tbody>"
    for row in rows[:_ROWS]:
        yield f"<tr><td><code>{escape(row.name)}</code></td>{''.join(_cell(row, measure) for measure in measures)}</tr>"
    yield "</tbody></table></div>"
    yield f"<p>{len(rows) - _ROWS} more rows are in the JSON.</p></section>" if len(rows) > _ROWS else "</section>"


def _cell(row: Difference, measure: str) -> str:
    amount = row.amount(measure)
    return f'<td class="number">{escape(_in_words(amount)) if amount else ""}</td>'


def _in_words(amount: Amount) -> str:
    if amount.trend == Trend.UNDECIDED:
        return f"{amount.in_words(amount.now)} (undecided, {amount.doubt})"
    return str(amount) if amount.trend != Trend.SAME else amount.in_words(amount.now)
