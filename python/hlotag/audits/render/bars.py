# SPDX-License-Identifier: Apache-2.0
"""Bars of a page: a name, a bar in segments by phase, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

# The segment of what is in no phase.
NONE = "none"
_WIDTH = 1000  # of the longest bar


def legend(phases: Sequence[str]) -> str:
    """The colours of phases."""
    items = (f'<li><svg viewBox="0 0 1 1"><rect class="{p}" width="1" height="1"/></svg>{p}</li>' for p in phases)
    return f'<ul class="legend">{"".join(items)}</ul>'


def bar(
    name: str,
    segments: Sequence[tuple[str, float]],
    longest: float,
    share: float,
    in_words: Callable[[float], str],
    *,
    title: str = "",
) -> str:
    """An item of a list with the class "bars".

    Args:
        name: What the bar is of, as HTML.
        segments: The amount in each phase, or in `NONE`.
        longest: The amount of the longest bar.
        share: The amount relative to the whole.
        in_words: Formats an amount.
        title: What the name means, as HTML.
    """
    x, drawn = 0.0, []
    for phase, amount in segments:
        width = _WIDTH * amount / longest if longest else 0.0
        hint = f"<title>{phase}: {in_words(amount)}</title>" if phase != NONE else ""
        drawn.append(f'<rect class="{phase}" x="{x:.1f}" width="{width:.1f}" height="10">{hint}</rect>')
        x += width
    look = ' class="rest"' if segments[0][0] == NONE else ""
    about = f' title="{title}"' if title else ""
    svg = f'<svg viewBox="0 0 {_WIDTH} 10" preserveAspectRatio="none" role="img">{"".join(drawn)}</svg>'
    total = in_words(sum(amount for _, amount in segments))
    return (
        f'<li><span{look}{about}>{name}</span>{svg}<span class="amount">{total}</span><span class="share">{share:.1%}</span></li>'
    )
