# SPDX-License-Identifier: Apache-2.0
"""What do the variants of a program differ in? Time, work and memory, as a whole and by row, with a verdict for each."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hlotag._text import count, in_bytes, in_work
from hlotag.results.tags import Effect
from hlotag.results.times import in_words as time_in_words

TIME = "time"
# Of results that are the same in all bits.
EQUAL = "equal"
MEASURES = (TIME, "flops", "bytes", "exchanged", "memory")
# A smaller change of what is counted is no reason to choose a variant; tables show it.
_SMALL = 0.005


class Trend(enum.StrEnum):
    """How an amount differs from that of the first variant.

    - MORE, LESS: it differs by more than chance explains; a counted amount differs.
    - SAME: it differs by less than the change that the comparison looks for; a counted amount is equal. For a row of less than
      5% of a step, in which no change is looked for: none was found.
    - UNDECIDED: a change of that size could have gone unnoticed.
    """

    MORE = "more"
    LESS = "less"
    SAME = "same"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Amount:
    """One measure of a row in two variants.

    Attributes:
        measure: "time" (seconds of a step), "flops", "bytes" (written, and read from places that other values choose),
            "exchanged" (bytes of the results of collectives), "memory" (bytes at the peak). Of one device, for one execution.
        before: The amount in the first variant.
        now: The amount in the other variant.
        trend: How they differ.
        margin: By how much the logarithm of `now / before` may be off, with 99.9% probability; 0 for what is counted.
        visible: The smallest growth that would have been noticed in 9 of 10 comparisons: 0.2 for 20%; 0 for what is counted, and
            for times of too few steps to say.
    """

    measure: str
    before: float
    now: float
    trend: Trend
    margin: float = 0.0
    visible: float = 0.0

    @property
    def differs(self) -> bool:
        """Whether it is more or less than in the first variant."""
        return self.trend in (Trend.MORE, Trend.LESS)

    @property
    def growth(self) -> float:
        """`now` relative to `before`, less 1: 0.2 for 20% more. Infinite for what is new."""
        return self.now / self.before - 1 if self.before else math.inf if self.now else 0.0

    @property
    def change(self) -> str:
        """The growth in words, with its margin: `+12% ± 3%`."""
        if not (self.before and self.now):
            return "new" if self.now else "gone" if self.before else "0%"
        if not self.margin:
            return f"{self.growth:+.0%} ± ?" if self.trend == Trend.UNDECIDED else f"{self.growth:+.1%}"
        off = (1 + self.growth) * (1 - math.exp(-self.margin))
        return f"{self.growth:+.1%} ± {off:.1%}" if off < 0.1 else f"{self.growth:+.0%} ± {off:.0%}"

    @property
    def doubt(self) -> str:
        """How large a growth would have been noticed, in words."""
        return f"could have seen {self.visible:.0%}" if self.visible else "too few steps"

    def in_words(self, value: float) -> str:
        """An amount of this measure with its unit."""
        if self.measure == TIME:
            return time_in_words(value)
        return in_work(int(value), 0) or "0" if self.measure == "flops" else in_bytes(int(value))

    def __str__(self) -> str:
        """The two amounts and the change: `1 ms -> 2 ms (+100% ± 9%)`."""
        return f"{self.in_words(self.before)} -> {self.in_words(self.now)} ({self.change})"


@dataclass(frozen=True)
class Difference:
    """A row in two variants.

    Attributes:
        key: What rows are grouped by: a key, "source", "scope:2"; empty for the whole program and for no operation.
        value: The value; empty for the whole program, and for operations without the key.
        phase: The phase; empty without a key.
        amounts: The measures that are known.
    """

    key: str
    value: str
    phase: str
    amounts: tuple[Amount, ...]

    @property
    def name(self) -> str:
        """What differs: `layer=3, backward`; `program` for the whole."""
        if not self.key:
            return self.value or "program"
        if not self.value:
            return f"without {self.key}, {self.phase}"
        pairs = zip(self.key.split(", "), self.value.split(", "), strict=False)
        return f"{', '.join(f'{key}={value}' for key, value in pairs)}, {self.phase}"

    def amount(self, measure: str) -> Amount | None:
        """The amount of a measure; None if unknown."""
        return next((each for each in self.amounts if each.measure == measure), None)

    @property
    def differs(self) -> bool:
        """Whether a measure is more or less than in the first variant."""
        return any(amount.differs for amount in self.amounts)

    def has(self, *trends: Trend) -> bool:
        """Whether an amount has one of these trends."""
        return any(amount.trend in trends for amount in self.amounts)

    def __str__(self) -> str:
        """One line: the amounts that differ."""
        shown = [f"{each.measure} {each}" for each in self.amounts if each.differs]
        return f"{self.name}: {', '.join(shown) or 'the same'}"


@dataclass(frozen=True)
class Outcome:
    """What became of a variant, against the first one.

    Attributes:
        name: The variant.
        error: Why there is no program, in XLA's words or hlotag's; empty if it was compiled.
        results: "equal" in all bits, by how much they differ, or why they were not compared; empty for the first variant.
        effects: What its tags changed, as `Audit.effects`.
        problems: What became worse with the tags than in the first variant, a line each.
        program: The whole program. The time of a step is that without the profiler.
        rows: The rows of keys that both variants have, those that differ most first.
    """

    name: str
    error: str = ""
    results: str = ""
    effects: tuple[Effect, ...] = ()
    problems: tuple[str, ...] = ()
    program: Difference = Difference("", "", "", ())
    rows: tuple[Difference, ...] = ()

    def differing(self) -> list[Difference]:
        """The rows in which something differs."""
        return [row for row in self.rows if row.differs]

    def undecided(self) -> list[Difference]:
        """The rows of which a change could have gone unnoticed."""
        return [row for row in self.rows if row.has(Trend.UNDECIDED)]

    @property
    def verdict(self) -> str:
        """The answer in a few words: `slower`, `faster, less memory, results differ`, `not compiled`, `as fast, 1 problem`."""
        time = self.program.amount(TIME)
        doubt = [time.doubt] if time and time.trend == Trend.UNDECIDED and not self.error else []
        return self._answer(MEASURES, doubt)

    @property
    def brief(self) -> str:
        """As `verdict`, of time, memory and results only, if there are times."""
        return self._answer((TIME, "memory") if self.program.amount(TIME) else MEASURES, [])

    def _answer(self, measures: Sequence[str], doubt: Sequence[str]) -> str:
        if self.error:
            return "not compiled"
        words = [*self._speed(), *doubt]
        rows = [each for row in self.rows if (each := row.amount(TIME)) and each.trend == Trend.MORE and each.before]
        if rows and self._speed() and self._speed()[0] not in ("slower", "faster"):
            words.append("slower rows" if len(rows) > 1 else "a slower row")
        counted = [each for each in self.program.amounts if each.measure in measures and each.measure != TIME]
        words += [f"{each.trend} {each.measure}" for each in counted if abs(each.growth) >= _SMALL]
        if self.results not in ("", EQUAL):
            words.append("results differ")
        if self.problems:
            words.append(count(len(self.problems), "problem"))
        return ", ".join(words) or "the same"

    def _speed(self) -> list[str]:
        time = self.program.amount(TIME)
        return [SPEEDS[time.trend]] if time else []


SPEEDS = {Trend.LESS: "faster", Trend.SAME: "as fast", Trend.UNDECIDED: "undecided", Trend.MORE: "slower"}
