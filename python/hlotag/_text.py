# SPDX-License-Identifier: Apache-2.0
"""How is text of others made safe for a terminal?"""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """Makes a user's text safe for a terminal: escapes control characters, and with them escape sequences.

    Args:
        text: The text.
        keep: Control characters that stay.

    Returns:
        The text, with unprintable characters as Python writes them.
    """
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
