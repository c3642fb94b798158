# SPDX-License-Identifier: Apache-2.0
"""Does a difference in time last in fresh processes? A process keeps some of its speed for as long as it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlotag._util.progress import step
from hlotag.comparisons.timing import join_launches
from hlotag.comparisons.turns import Times, Turns
from hlotag.results.compared import Difference, Trend

# In so many pairs of fresh processes a variant must be slower, too.
_CONFIRMATIONS = 3


def confirm(turns: Turns, found: Sequence[Times], step_seconds: float, limit: float) -> list[Times]:
    """Runs variants that are slower or faster again, in fresh processes.

    Args:
        turns: The rounds in which they were.
        found: The times that the rounds showed, of each variant but the first.
        step_seconds: Seconds of a step.
        limit: The most seconds that all of these launches' rounds take.

    Returns:
        The times. What is not slower, or faster, in each launch is undecided. Raises VariantError.
    """
    base, *others = turns.subjects
    launches = {other.name: [times] for other, times in zip(others, found, strict=True)}
    doubted = [
        (other, group)
        for other, group in zip(others, turns.by, strict=True)
        if any(row.differs for row in _flat(launches[other.name][0]))
    ]
    subjects = [base, *(other for other, _ in doubted)]
    for number in range(_CONFIRMATIONS if doubted else 0):
        with step("starting fresh processes"):
            # Which one starts first alternates: threads of a later one find the cores taken.
            for subject in subjects if number % 2 else reversed(subjects):
                subject.restart()
        again = Turns(subjects, [group for _, group in doubted], turns.visible)
        for (other, _), times in zip(doubted, again.run(step_seconds, limit / _CONFIRMATIONS), strict=True):
            launches[other.name].append(times)
    return [_join(each, turns.visible) for each in launches.values()]


def _flat(times: Times) -> list[Difference]:
    program, rows = times
    return [program, *rows]


def _join(launches: Sequence[Times], visible: float) -> Times:
    """The times of the first launch, in which what differs must differ in the other launches, too."""
    first, *others = launches
    again = [{(row.key, row.value, row.phase): row for row in _flat(times)} for times in others]
    if not again:
        return first
    program, *rows = (
        _join_row(row, [times.get((row.key, row.value, row.phase)) for times in again], visible) if row.differs else row
        for row in _flat(first)
    )
    return program, rows


def _join_row(row: Difference, again: Sequence[Difference | None], visible: float) -> Difference:
    (amount,) = row.amounts
    absent = replace(amount, trend=Trend.UNDECIDED)
    amounts = [amount, *(other.amounts[0] if other else absent for other in again)]
    return replace(row, amounts=(join_launches(amounts, visible),))
