# SPDX-License-Identifier: Apache-2.0
"""The values that became slower since an earlier profile, and by more than the steps vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlotag.profiles.model import Timing, in_words

# Part of a step by which a value must differ to be listed.
_LEAST = 0.01


@dataclass(frozen=True)
class Change:
    """A row whose time differs from that of an earlier profile by more than its steps vary.

    Attributes:
        key: The key; empty for the whole step, or for time in no operation.
        value: The value; empty for the whole step, or for operations without the key.
        phase: The phase; empty without a key.
        before: Seconds of a step in the earlier profile.
        now: Seconds of a step.
        spread: The difference between the longest and the shortest step, in the profile where it is larger, in seconds.
    """

    key: str
    value: str
    phase: str
    before: float
    now: float
    spread: float

    @property
    def is_slower(self) -> bool:
        """Whether the time grew."""
        return self.now > self.before

    @property
    def name(self) -> str:
        """What changed: `layer=3, backward`."""
        if not self.key:
            return self.value or "step"
        pairs = zip(self.key.split(", "), self.value.split(", "), strict=False)
        values = ", ".join(f"{key}={value}" for key, value in pairs) if self.value else f"without {self.key}"
        return f"{values}, {self.phase}"

    def __str__(self) -> str:
        """One line."""
        how = f"{self.now / self.before - 1:+.0%}, " if self.before else "new, "
        return f"{self.name}: {in_words(self.before)} -> {in_words(self.now)} ({how}steps vary by {in_words(self.spread)})"


def changes(now: Timing, before: Timing) -> list[Change]:
    """Compares two profiles: the whole step, and rows of keys that both have, those with the largest difference first.

    A row counts if it differs by more than its steps vary and by more than a hundredth of a step.
    """
    keys = {row.key for row in now.rows} & {row.key for row in before.rows}
    steps = [{(row.key, row.value, row.phase): row.steps for row in profile.rows if row.key in keys} for profile in (now, before)]
    rows = [(name, steps[0].get(name, ()), steps[1].get(name, ())) for name in steps[0] | steps[1]]
    found = [_change(name, *values) for name, *values in [(("", "", ""), now.steps, before.steps), *rows]]
    least = _LEAST * before.total_seconds
    significant = [change for change in found if abs(change.now - change.before) > max(change.spread, least)]
    return sorted(significant, key=lambda change: (-abs(change.now - change.before), change.name))


def _change(name: tuple[str, str, str], now: Sequence[float], before: Sequence[float]) -> Change:
    was, is_now = (sum(steps) / len(steps) if steps else 0.0 for steps in (before, now))
    spread = max(max(steps) - min(steps) if steps else 0.0 for steps in (before, now))
    return Change(*name, was, is_now, spread)
