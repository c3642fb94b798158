# SPDX-License-Identifier: Apache-2.0
"""`Profile`, with its views: a table, JSON, a page, and tracks of a timeline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlotag._text import printable
from hlotag._util.files import write_atomically
from hlotag._util.notebook import PageMixin
from hlotag.errors import ArgumentError
from hlotag.profiles import as_json, page, perfetto, table
from hlotag.profiles.model import Timing, in_words

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


class Profile(Timing, PageMixin):
    """Where the time of a program's steps went; `Timing` has its fields."""

    def to_json(self, *, indent: int | None = None) -> str:
        """The profile as JSON, without its timeline.

        Args:
            indent: As for `json.dumps`.

        Returns:
            The JSON text, which `hlotag profile --baseline` reads.
        """
        return as_json.dumps(self, indent=indent)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one self-contained HTML page that answers: time, communication, memory, rates, a timeline and tags.

        Args:
            path: The file to write.

        Raises:
            OSError: The file cannot be written.
        """
        write_atomically(path, self._page, private=False)

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Writes a timeline with a track for each key, for https://ui.perfetto.dev.

        Args:
            path: The file to write: JSON, compressed if its name ends in `.gz`.

        Raises:
            ArgumentError: The profile was read from JSON, which has no timeline.
            OSError: The file cannot be written.
        """
        if self.program is None:
            raise ArgumentError("a profile that was read from JSON has no timeline; make it from the trace")
        write_atomically(path, perfetto.dumps(self.program, self.timeline, compressed=str(path).endswith(".gz")), private=False)

    @property
    def _page(self) -> str:
        return page.html(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What `rich.print` shows."""
        yield table.renderable(self, options.max_width)

    def __str__(self) -> str:
        """The sentence and the tables, without colours."""
        return table.as_text(self)

    def __repr__(self) -> str:
        """One line."""
        return f"<Profile of {printable(self.name)}: {in_words(self.total_seconds)} a step, {len(self.steps)} steps>"
