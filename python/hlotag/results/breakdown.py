# SPDX-License-Identifier: Apache-2.0
"""How does an amount, such as time or memory, divide among values and phases?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hlotag.results.tags import PHASES


class Breakdown(NamedTuple):
    """An amount by value and phase.

    Attributes:
        title: What the values are of: a key, "scope:2".
        phases: The phases that have amounts.
        lines: By value, the amounts by phase: most first, that of operations without the key (an empty value) last.
        rest: The amounts of no operation, by what they are.
    """

    title: str
    phases: list[str]
    lines: dict[str, dict[str, float]]
    rest: dict[str, float]

    @property
    def total(self) -> float:
        """The whole amount."""
        return sum(map(self.sum, self.lines)) + sum(self.rest.values())

    def sum(self, value: str) -> float:
        """The amount of a value in all phases."""
        return sum(self.lines[value].values())


def break_down(title: str, rows: Iterable[tuple[str, str, str, float]]) -> Breakdown:
    """Arranges key, value, phase and amount of rows: those with the key `title`, and those with none."""
    lines: dict[str, dict[str, float]] = {}
    rest: dict[str, float] = {}
    for key, value, phase, amount in rows:
        if key == title:
            lines.setdefault(value, {})[phase] = amount
        elif not key:
            rest[value] = amount
    found = {phase for line in lines.values() for phase in line}
    order = sorted(lines.items(), key=lambda line: (not line[0], -sum(line[1].values())))
    return Breakdown(title, [phase for phase in PHASES if phase in found], dict(order), rest)
