# SPDX-License-Identifier: Apache-2.0
"""Text for people: lists and plurals."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str, keep: str = "") -> str:
    """Makes a user's text safe for a terminal: escapes control characters but for those to `keep`, as Python writes them."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def count(number: int, what: str) -> str:
    """`1 instruction`, `2 instructions`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def list_some(names: Sequence[str], limit: int = 3) -> str:
    """`a, b, c and 2 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def in_bytes(size: int) -> str:
    """Formats a size: `4.0 KiB`."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def in_work(flops: int, size: int) -> str:
    """Formats work: `2.1 Gflop`; `4.0 KiB` if `flops` is 0; empty if both are 0."""
    for prefix, factor in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if flops >= factor:
            return f"{flops / factor:.3g} {prefix}flop"
    return f"{flops} flop" if flops else in_bytes(size) if size else ""


def rate_in_words(rate: float) -> str:
    """Formats a number a second: `1.25 T`."""
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= 0.9995 * factor:  # What three digits round up.
            return f"{rate / factor:.3g} {prefix}"
    return f"{rate:.3g}"
