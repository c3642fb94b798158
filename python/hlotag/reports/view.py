# SPDX-License-Identifier: Apache-2.0
"""How does a result show itself? As a page, which a notebook has in a frame, and as what rich renders."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Collection
from html import escape
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.jupyter import JupyterMixin

from hlotag._text import printable
from hlotag._util.files import write_atomically

# Jupyter's server stops an output of more bytes a second: iopub_data_rate_limit.
_MOST = 1_000_000
_FRAME = '<iframe sandbox="allow-scripts" title="{title}" srcdoc="{page}" style="width:100%;height:40rem;border:0"></iframe>'


class View(JupyterMixin):
    """A result with a page, and a text that rich renders. In a notebook, the page's scripts run in a frame without an origin."""

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the result as one self-contained HTML page, which needs no network.

        Args:
            path: The file to write.

        Raises:
            OSError: The file cannot be written.
        """
        write_atomically(path, self._page, private=False)

    @abstractmethod
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What rich renders."""

    @property
    @abstractmethod
    def _page(self) -> str:
        """The page."""

    def _repr_html_(self) -> str:
        """A frame with the page; what rich renders if the page is too large for an output."""
        return self._repr_mimebundle_(["text/html"])["text/html"]

    def _repr_mimebundle_(self, include: Collection[str] = (), exclude: Collection[str] = (), **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_([*(include or ())], [*(exclude or ())], **kwargs)
        if "text/html" not in bundle:
            return bundle
        frame = _FRAME.format(title=escape(repr(self)), page=escape(printable(self._page, keep="\n")))
        large = "<p>The page is too large for a notebook: <code>to_html(path)</code> writes it.</p>"
        return bundle | {"text/html": frame if len(frame) <= _MOST else bundle["text/html"] + large}
