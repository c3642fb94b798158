# SPDX-License-Identifier: Apache-2.0
"""How many rounds do variants run in turns? Until a change of a given size would be seen, or for so many seconds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from hlotag._util.progress import step
from hlotag.comparisons.subjects import Subject
from hlotag.comparisons.timing import Place, compare_pairs, without_light
from hlotag.profiles.profile import Profile
from hlotag.results.compared import Difference, Trend
from hlotag.results.grouping import Grouping

# Steps of a round, and the seconds that they should not exceed; rounds before the first look, and growth until the next one.
_STEPS, _ROUND_SECONDS = 5, 1.0
_FIRST_LOOK, _GROWTH = 12, 1.5
# Fewer seconds than this of an operation are shorter than the clock of a trace.
_NO_TIME = 1e-7

Times = tuple[Difference, list[Difference]]
"""The times of a variant against the first one's: of a step, and of each row."""


@dataclass
class Turns:
    """The rounds of variants, the first of which is compared with each other one.

    Attributes:
        subjects: The variants.
        by: For each of the others, what its rows are grouped by.
        visible: The growth to look for.
        rounds: How many rounds there were.
    """

    subjects: Sequence[Subject]
    by: Sequence[Grouping | None]
    visible: float
    rounds: int = 0
    _steps: int = 1
    _untraced: dict[str, list[float]] = field(default_factory=dict)

    def run(self, step_seconds: float, limit: float) -> list[Times]:
        """Runs rounds until the growth would be seen, or for `limit` seconds. Returns the times of each variant but the first."""
        self._steps = max(1, min(_STEPS, int(_ROUND_SECONDS / max(step_seconds, 1e-9))))
        end, look = time.monotonic() + limit, _FIRST_LOOK
        while True:
            with step(f"round {self.rounds + 1}"):
                self._run_round()
            is_late = time.monotonic() >= end
            if self.rounds >= look or is_late:
                found = self._compare_all()
                if is_late or all(map(_is_decided, found)):
                    return found
                look = int(look * _GROWTH)

    def _run_round(self) -> None:
        """Runs some steps without the profiler, and some with it."""
        for number in range(self._steps):
            for subject in self._in_order(number):
                self._untraced.setdefault(subject.name, []).append(subject.time_step())
        if self._is_apart:
            self._trace(self.subjects)
        else:
            for subject in self._in_order(0):
                self._trace([subject])
        self.rounds += 1

    def _trace(self, subjects: Sequence[Subject]) -> None:
        with ExitStack() as traces:
            for subject in subjects:
                traces.enter_context(subject.tracing())
            for number in range(self._steps):
                for subject in self._in_order(number):
                    if subject in subjects:
                        subject.time_step()

    def _in_order(self, number: int) -> Sequence[Subject]:
        """The order of a step of a round.

        Each round begins with another variant, because the first step after a trace is slow. No variant follows itself, which
        would find its caches warm, and the others change direction: what a variant leaves in caches concerns the next one.
        """
        begins = self.rounds % len(self.subjects)
        first, *others = [*self.subjects[begins:], *self.subjects[:begins]]
        return [first, *(reversed(others) if number % 2 else others)]

    def _compare_all(self) -> list[Times]:
        base, *others = self.subjects
        groups = {repr(group): group for group in self.by}
        times = {name: self._times_of(base.profile(group)) for name, group in groups.items()}
        return [self._compare(other, times[repr(group)], group) for other, group in zip(others, self.by, strict=True)]

    def _compare(self, other: Subject, was: Mapping[Place, np.ndarray], group: Grouping | None) -> Times:
        base, is_now = self.subjects[0], self._times_of(other.profile(group))
        whole = compare_pairs(self._untraced[base.name], self._untraced[other.name], self.visible)
        step_seconds = max(whole.before, whole.now)
        rows = []
        for place in dict.fromkeys([*was, *is_now]):
            missing = np.zeros_like(was.get(place, is_now.get(place)))
            amount = compare_pairs(was.get(place, missing), is_now.get(place, missing), self.visible)
            if max(amount.before, amount.now) > _NO_TIME:
                rows.append(Difference(*place, (without_light(amount, step_seconds),)))
        return Difference("", "", "", (whole,)), rows

    def _times_of(self, profile: Profile) -> dict[Place, np.ndarray]:
        """By row, its seconds in each step; where variants were not traced at once, the median of each round."""
        steps = {(row.key, row.value, row.phase): np.asarray(row.steps) for row in profile.rows if row.key}
        if self._is_apart:
            return steps
        return {place: np.median(np.reshape(each, (self.rounds, self._steps)), axis=1) for place, each in steps.items()}

    @property
    def _is_apart(self) -> bool:
        return all(subject.has_own_process for subject in self.subjects)


def _is_decided(found: Times) -> bool:
    program, rows = found
    return not any(row.has(Trend.UNDECIDED) for row in (program, *rows))
