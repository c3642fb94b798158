# SPDX-License-Identifier: Apache-2.0
"""`Comparison`: variants of a program, and views of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlotag._util.groups import group
from hlotag.reports import comparison_json, comparison_page, comparison_table
from hlotag.reports.view import View
from hlotag.results.compared import SPEEDS, TIME, Outcome

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

# The sentence on more variants names those with one answer together.
_FEW = 3


@dataclass(frozen=True)
class Comparison(View):
    """Variants of a program, compiled, checked and timed.

    Attributes:
        base: The first variant, with which the others are compared. Its amounts are those that are counted, the same before and
            now.
        outcomes: The other variants.
        by: What the rows are grouped by.
        rounds: In how many rounds the variants ran in turns; 0 without a device.
        visible: The growth that the comparison looks for: 0.2 for 20%.
        seconds: How long the rounds took.
        notes: What else to know.
    """

    base: Outcome
    outcomes: tuple[Outcome, ...]
    by: tuple[str, ...] = ()
    rounds: int = 0
    visible: float = 0.0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Outcome:
        """The outcome of a variant. Raises KeyError if there is none."""
        for outcome in (self.base, *self.outcomes):
            if outcome.name == name:
                return outcome
        raise KeyError(name)

    @property
    def sentence(self) -> str:
        """The result in one sentence. More than three variants are grouped by answer, faster ones first."""
        if len(self.outcomes) <= _FEW:
            found = [f"{each.name}: {each.verdict}" for each in self.outcomes]
        else:
            answers = group((each.brief, each.name) for each in sorted(self.outcomes, key=_order))
            found = [f"{', '.join(names)}: {answer}" for answer, names in answers.items()]
        return f"Against {self.base.name}: {'; '.join(found)}."

    @classmethod
    def from_json(cls, text: str, filename: str = "the comparison") -> Comparison:
        """Reads what `to_json` returned.

        Args:
            text: The JSON text.
            filename: The file, for errors.

        Returns:
            The comparison.

        Raises:
            ParseError: The text is something else.
        """
        return cls(**comparison_json.loads(text, filename))

    def to_json(self, *, indent: int | None = None) -> str:
        """The comparison as JSON.

        Args:
            indent: As for `json.dumps`.

        Returns:
            The JSON text, which `hlotag compare --resume` reads.
        """
        return comparison_json.dumps(self, indent=indent)

    @property
    def _page(self) -> str:
        return comparison_page.html(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What `rich.print` and notebooks show."""
        yield comparison_table.renderable(self, options.max_width)

    def __str__(self) -> str:
        """The sentence and the tables, without colours."""
        return comparison_table.as_text(self)

    def __repr__(self) -> str:
        """One line."""
        return f"<Comparison of {len(self.outcomes) + 1} variants, {self.rounds} rounds>"


def _order(outcome: Outcome) -> tuple[bool, int]:
    """Faster variants first, those without a program last."""
    time = outcome.program.amount(TIME)
    return bool(outcome.error), list(SPEEDS).index(time.trend) if time else 0
