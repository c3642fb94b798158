# SPDX-License-Identifier: Apache-2.0
"""How is text written for people?"""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, what: str) -> str:
    """`1 instruction`, `2 instructions`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def listed(names: Sequence[str], limit: int = 3) -> str:
    """`a, b, c and 2 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
