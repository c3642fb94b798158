# SPDX-License-Identifier: Apache-2.0
"""Does a program take longer than another one? Times of rounds in which both ran in turns, or of two runs at two times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hlotag.results.compared import TIME, Amount, Trend

_Floats = NDArray[np.float64]
Times = Sequence[float] | _Floats
"""Seconds of steps."""
Place = tuple[str, str, str]
"""Key, value and phase of a row."""

# The margin of a difference holds it with this probability.
_SURE = 0.999
# The same as standard errors of a normal distribution.
_SURE_ERRORS = float(stats.norm.ppf((1 + _SURE) / 2))
# The margin of what processes keep for as long as they run: four of them allow no more.
_SURE_OF_LAUNCHES = 0.995
# A visible change is noticed with this probability.
_NOTICED = 0.9
# Of a step: no growth is looked for in rows below this.
_LIGHT = 0.05
# Of the heaviest row: rows below this do not show how busy a machine is.
_LIGHTEST = 0.01
# Standard deviation of a row between runs of one program at two times, as part of the row: memory and threads are placed anew.
_BETWEEN_RUNS = 0.05
# Standard deviations of a normal distribution: of its median for a sample of one, and in a median of absolute deviations.
_OF_MEDIAN, _IN_MAD = math.sqrt(math.pi / 2), 1.4826
# The least number of pairs of which the sign test is so sure.
_LEAST_PAIRS = 11


def compare_pairs(before: Times, now: Times, visible: float) -> Amount:
    """Compares the times of two programs that ran in turns.

    What else the machine does slows both times of a pair alike. So the median of their ratios is taken, whose margin is that of
    the sign test: it needs no assumption of how times are distributed, and eleven pairs. Where neighbouring pairs are alike, they
    count as fewer.

    Args:
        before: Seconds of steps.
        now: Seconds of the other program, each measured next to that of `before`.
        visible: The growth to look for: 0.2 for 20%.

    Returns:
        The amount, by the median of `before`. It is undecided if the growth would be noticed in fewer than 9 of 10 comparisons.
    """
    was, is_now = np.asarray(before, float), np.asarray(now, float)
    medians = _median(was), _median(is_now)
    is_measured = (was > 0) & (is_now > 0)
    if not all(medians) or is_measured.sum() < _LEAST_PAIRS:
        return Amount(TIME, *medians, _trend_of_presence(*medians))
    ratios = np.log(is_now[is_measured] / was[is_measured])
    change, independent = float(np.median(ratios)), _count_independent(ratios)
    left = (stats.binom.ppf((1 - _SURE) / 2, independent, 0.5) - 1) / independent
    ordered, at = np.sort(ratios), max(0, int(left * len(ratios)))
    margin = max(change - ordered[at], ordered[-1 - at] - change)
    return _judge((medians[0], medians[0] * math.exp(change)), float(margin), float(margin) / _SURE_ERRORS, visible)


def compare_runs(
    before: Mapping[Place, Sequence[float]], now: Mapping[Place, Sequence[float]], visible: float
) -> dict[Place, Amount]:
    """Compares the rows of two programs that ran at two times.

    The machine may have been busier at one of them, which slows all rows alike. If all rows grew, or all shrank, the least of
    the changes counts as the machine's. Rows of less than 1% of the heaviest one do not count for that.

    Args:
        before: By row, its seconds in each step.
        now: By row, its seconds in each step of the other program.
        visible: The growth to look for.

    Returns:
        The amount of each row.
    """
    pairs = {
        place: (np.asarray(before.get(place, ()), float), np.asarray(now.get(place, ()), float)) for place in {**before, **now}
    }
    medians = {place: (_median(was), _median(is_now)) for place, (was, is_now) in pairs.items()}
    heaviest = max((max(pair) for pair in medians.values()), default=0.0)
    heavy = [pair for pair in medians.values() if all(pair) and max(pair) >= _LIGHTEST * heaviest]
    shift = _common_shift([math.log(is_now / was) for was, is_now in heavy])
    found = {}
    for place, (was, is_now) in medians.items():
        if not (was and is_now):
            is_light = max(was, is_now) < _LIGHTEST * heaviest
            found[place] = Amount(TIME, was, is_now, Trend.SAME if is_light else _trend_of_presence(was, is_now))
            continue
        errors = [_error_of_median(steps) / _median(steps) for steps in pairs[place]]
        error = math.hypot(*errors, math.sqrt(2) * _BETWEEN_RUNS)
        freedom = max(1, sum(map(len, pairs[place])) - 2)
        margin = float(stats.t.ppf((1 + _SURE) / 2, freedom)) * math.hypot(*errors)
        margin = math.hypot(margin, _SURE_ERRORS * math.sqrt(2) * _BETWEEN_RUNS)
        found[place] = _judge((was, is_now), margin, error, visible, shift)
    return found


def join_launches(amounts: Sequence[Amount], visible: float) -> Amount:
    """Joins what several launches found of one row, each in processes of its own.

    The margin of a launch knows nothing of the speed that its processes keep. So the change lies between the least and the
    greatest one that any launch allows. If launches differ by more than their margins explain, the mean of such launches has
    a margin, too, by Student's t at 99.5%.

    Args:
        amounts: What each launch found.
        visible: The growth to look for.

    Returns:
        The amount, with the time of the first launch before. What is not more in each launch, or less in each, is undecided.
    """
    first = amounts[0]
    if len({each.trend for each in amounts}) > 1:
        return replace(first, trend=Trend.UNDECIDED, margin=0.0, visible=0.0)
    if not all(each.margin for each in amounts):
        return first
    changes, margins = (np.array(each) for each in zip(*((math.log(a.now / a.before), a.margin) for a in amounts), strict=True))
    least, most = float((changes - margins).min()), float((changes + margins).max())
    between = max(0.0, float(np.var(changes, ddof=1) - np.mean((margins / _SURE_ERRORS) ** 2)))
    of_mean = float(stats.t.ppf((1 + _SURE_OF_LAUNCHES) / 2, len(amounts) - 1)) * math.sqrt(between / len(amounts))
    margin = max((most - least) / 2, of_mean)
    now = first.before * math.exp((least + most) / 2)
    return _judge((first.before, now), margin, margin / _SURE_ERRORS, visible)


def without_light(amount: Amount, step_seconds: float) -> Amount:
    """The amount; in a row that has less than 5% of a step, no growth is looked for, so none is undecided."""
    is_light = max(amount.before, amount.now) < _LIGHT * step_seconds
    return replace(amount, trend=Trend.SAME) if amount.trend == Trend.UNDECIDED and is_light else amount


def _judge(medians: tuple[float, float], margin: float, error: float, visible: float, shift: float = 0.0) -> Amount:
    was, is_now = medians
    seen = math.expm1(margin + float(stats.norm.ppf(_NOTICED)) * error)
    change = math.log(is_now / was) - shift
    if abs(change) > margin:
        trend = Trend.MORE if change > 0 else Trend.LESS
    else:
        trend = Trend.SAME if seen <= visible else Trend.UNDECIDED
    return Amount(TIME, was, is_now, trend, margin, seen)


def _common_shift(changes: Sequence[float]) -> float:
    """The logarithm by which all rows changed at least; 0 if they changed in both directions, or there is one row."""
    if len(changes) < 2 or min(changes) < 0 < max(changes):
        return 0.0
    return min(changes, key=abs)


def _count_independent(ratios: _Floats) -> int:
    """How many independent ratios say as much: neighbours are alike where the machine is busy for longer than a pair takes."""
    signs = np.sign(ratios - np.median(ratios))
    alike = float(np.mean(signs[1:] * signs[:-1]))
    return max(_LEAST_PAIRS, int(len(ratios) * (1 - alike) / (1 + alike))) if alike > 0 else len(ratios)


def _trend_of_presence(was: float, is_now: float) -> Trend:
    if bool(was) == bool(is_now):
        return Trend.UNDECIDED if was else Trend.SAME
    return Trend.MORE if is_now else Trend.LESS


def _median(steps: _Floats) -> float:
    return float(np.median(steps)) if len(steps) else 0.0


def _error_of_median(steps: _Floats) -> float:
    """The standard error of a median. Single steps that took very long do not count."""
    deviation = _IN_MAD * float(np.median(np.abs(steps - np.median(steps))))
    return _OF_MEDIAN * deviation / math.sqrt(len(steps))
