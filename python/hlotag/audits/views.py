# SPDX-License-Identifier: Apache-2.0
"""`Audit`, with its views: text, JSON and a page."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag._text import printable
from hlotag._util.files import write_atomically
from hlotag._util.notebook import PageMixin
from hlotag.audits.model import RANK
from hlotag.audits.render import as_json, page, table
from hlotag.audits.report import Reported

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


class Audit(Reported, PageMixin):
    """What became of every tag of a program; `Findings` has its fields."""

    def summary(self, width: int | None = None) -> str:
        """The report for a terminal: a sentence, what needs attention, and a line for each key and value.

        Args:
            width: Limit of columns; by default, the terminal's width.

        Returns:
            Text without colours; `rich.print(audit)` prints it with colours.
        """
        return table.as_text(self, width)

    def to_json(self, *, indent: int | None = None) -> str:
        """The whole audit as JSON in the format of `hlotag/audits/schema.json`.

        Args:
            indent: As for `json.dumps`.

        Returns:
            The JSON text.
        """
        return as_json.dumps(self, indent=indent)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as one self-contained HTML page, with every tag.

        Args:
            path: The file to write.

        Raises:
            OSError: The file cannot be written.
        """
        write_atomically(path, self._page, private=False)

    @property
    def _page(self) -> str:
        return page.html(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What `rich.print` shows."""
        yield table.renderable(self, options.max_width)

    def __str__(self) -> str:
        """The summary."""
        return self.summary()

    def __repr__(self) -> str:
        """One line."""
        counts = ", ".join(f"{self.counts[state]} {state}" for state in sorted(self.counts, key=RANK.__getitem__))
        ops = len({tag.op.id for tag in self.tags})
        return f"<Audit of {printable(self.name)}: {len(self.tags)} tags on {ops} operations; {counts or 'none'}>"


def read_audit(path: str | os.PathLike[str]) -> Audit:
    """Reads an audit that `Audit.to_json` or `hlotag audit --json` wrote.

    Args:
        path: The file.

    Returns:
        The audit.

    Raises:
        ParseError: The file is no audit, is incomplete, or is of another version.
        OSError: The file cannot be read.

    Examples:
        >>> from pathlib import Path
        >>> audit = hlotag.audit(lambda x: x + 1, jnp.ones(4))
        >>> _ = Path("a.json").write_text(audit.to_json())
        >>> hlotag.read_audit("a.json").name == audit.name
        True
    """
    found = as_json.loads(Path(path).read_text(encoding="utf-8"), os.fspath(path))
    return Audit(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})
