# SPDX-License-Identifier: Apache-2.0
"""The values whose time differs from that of an earlier profile, by more than chance explains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hlotag.profiles.model import Timing, in_words

_Floats = NDArray[np.float64]

# Part of a step by which a value must differ to be listed.
_LEAST = 0.01
# The margin of a difference holds it with this probability, if the steps vary alike in both profiles.
_SURE = 0.999
# Standard deviation of a row between processes that run the same program, as part of the row: memory and threads are placed anew.
_BETWEEN_RUNS = 0.05
# Standard deviations of a normal distribution: of its median for a sample of one, and in a median of absolute deviations.
_OF_MEDIAN, _IN_MAD = math.sqrt(math.pi / 2), 1.4826


@dataclass(frozen=True)
class Change:
    """A row whose time differs from that of an earlier profile by more than chance explains.

    Attributes:
        key: The key; empty for the whole step.
        value: The value; empty for the whole step, or for operations without the key.
        phase: The phase; empty for the whole step.
        before: Seconds of a step in the earlier profile: the median of its steps.
        now: Seconds of a step.
        margin: By how much the logarithm of `now / before` may be off, with 99.9% probability. The more steps, the smaller.
    """

    key: str
    value: str
    phase: str
    before: float
    now: float
    margin: float

    @property
    def is_slower(self) -> bool:
        """Whether the time grew."""
        return self.now > self.before

    @property
    def name(self) -> str:
        """What changed: `layer=3, backward`."""
        if not self.key:
            return "step"
        pairs = zip(self.key.split(", "), self.value.split(", "), strict=False)
        values = ", ".join(f"{key}={value}" for key, value in pairs) if self.value else f"without {self.key}"
        return f"{values}, {self.phase}"

    def __str__(self) -> str:
        """One line."""
        ratio = self.now / self.before if self.before else 0.0
        how = f"{ratio - 1:+.0%} ± {ratio * (1 - math.exp(-self.margin)):.0%}" if ratio else "new" if self.now else "gone"
        return f"{self.name}: {in_words(self.before)} -> {in_words(self.now)} ({how})"


def changes(now: Timing, before: Timing, *, in_turns: bool = False) -> list[Change]:
    """Compares two profiles: rows of keys that both have, and the whole step.

    A row counts if its seconds and its share of the time in operations differ, both in one direction, by more than their
    margins, and by more than a hundredth of a step. So a busy machine, on which all rows take longer alike, changes no row. The
    step counts if it differs by more than its margin, and a row counts.

    Args:
        now: A profile.
        before: An earlier profile.
        in_turns: Whether the two programs ran in turns (`profile_both`). What else the machine did slowed both alike, so a step
            that differs counts without a row.

    Returns:
        The changes, those with the largest difference first.

    Examples:
        >>> before, now = (hlotag.profiles.Profile("f", ("CPU:0",), steps=(t,) * 5, rows=()) for t in (1.0, 2.0))
        >>> print(hlotag.profiles.changes(now, before, in_turns=True)[0])
        step: 1 s -> 2 s (+100% ± 42%)
    """
    keys = {row.key for row in now.rows if row.key} & {row.key for row in before.rows}
    rows = [{(r.key, r.value, r.phase): np.array(r.steps) for r in p.rows if r.key in keys} for p in (now, before)]
    totals = [{key: np.sum([steps for (k, *_), steps in found.items() if k == key], axis=0) for key in keys} for found in rows]
    least = _LEAST * _median(np.array(before.steps))
    found = []
    for place in rows[0] | rows[1]:
        seconds = [each.get(place, np.zeros(len(p.steps))) for each, p in zip(rows, (now, before), strict=True)]
        shares = [_divide(steps, total[place[0]]) for steps, total in zip(seconds, totals, strict=True)]
        change = _compare(place, *seconds)
        is_one_way = change.is_slower == _compare(place, *shares).is_slower
        if abs(change.now - change.before) > least and is_one_way and _is_sure(change) and _is_sure(_compare(place, *shares)):
            found.append(change)
    step = _compare(("", "", ""), np.array(now.steps), np.array(before.steps))
    if _is_sure(step) and abs(step.now - step.before) > least and (found or in_turns):
        found.append(step)
    return sorted(found, key=lambda change: (-abs(change.now - change.before), change.name))


def _is_sure(change: Change) -> bool:
    return not (change.before and change.now) or abs(math.log(change.now / change.before)) > change.margin


def _compare(place: tuple[str, str, str], now: _Floats, before: _Floats) -> Change:
    was, is_now = _median(before), _median(now)
    if not (was and is_now):
        return Change(*place, was, is_now, 0.0)
    freedom = max(1, len(now) + len(before) - 2)
    of_steps = _quantile(freedom) * math.hypot(_error(now) / is_now, _error(before) / was)
    of_runs = NormalDist().inv_cdf((1 + _SURE) / 2) * math.sqrt(2) * _BETWEEN_RUNS
    return Change(*place, was, is_now, math.hypot(of_steps, of_runs))


def _median(steps: _Floats) -> float:
    return float(np.median(steps)) if len(steps) else 0.0


def _error(steps: _Floats) -> float:
    """The standard error of a median. Single steps that took very long do not count."""
    deviation = _IN_MAD * float(np.median(np.abs(steps - np.median(steps))))
    return _OF_MEDIAN * deviation / math.sqrt(len(steps))


def _quantile(freedom: int) -> float:
    """The quantile of Student's distribution for both sides, by the first terms of its series at the normal quantile."""
    z = NormalDist().inv_cdf((1 + _SURE) / 2)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _divide(steps: _Floats, total: _Floats) -> _Floats:
    return np.divide(steps, total, out=np.zeros(len(steps)), where=total > 0)
