# SPDX-License-Identifier: Apache-2.0
"""`Comparison`, with its views: a table, JSON and a page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.jupyter import JupyterMixin

from hlotag._util.files import write_atomically
from hlotag.reports import comparison_json, comparison_page, comparison_table
from hlotag.results.compared import Compared

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


class Comparison(Compared, JupyterMixin):
    """Variants of a program, compiled, checked and timed; `Compared` has its fields."""

    @classmethod
    def from_json(cls, text: str, filename: str) -> Comparison:
        """Reads the JSON of a comparison.

        Args:
            text: What `to_json` returned.
            filename: The file, for errors.

        Returns:
            The comparison.

        Raises:
            ParseError: The text is something else.
        """
        return cls(**vars(comparison_json.loads(text, filename)))

    def to_json(self, *, indent: int | None = None) -> str:
        """The comparison as JSON.

        Args:
            indent: As for `json.dumps`.

        Returns:
            The JSON text, which `hlotag compare --resume` reads.
        """
        return comparison_json.dumps(self, indent=indent)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one self-contained HTML page: the variants side by side, and the rows that differ.

        Args:
            path: The file to write.

        Raises:
            OSError: The file cannot be written.
        """
        write_atomically(path, comparison_page.html(self), private=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What `rich.print` and notebooks show."""
        yield comparison_table.renderable(self, options.max_width)

    def __str__(self) -> str:
        """The sentence and the tables, without colours."""
        return comparison_table.as_text(self)

    def __repr__(self) -> str:
        """One line."""
        return f"<Comparison of {len(self.outcomes) + 1} variants, {self.rounds} rounds>"
