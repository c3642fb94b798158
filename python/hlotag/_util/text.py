# SPDX-License-Identifier: Apache-2.0
"""Text for terminals."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """Text of the user's as a terminal may be given it: without control characters, escape sequences among them.

    Args:
        text: Anything.
        keep: Control characters that stay.

    Returns:
        The text, what cannot be printed as escapes.
    """
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
