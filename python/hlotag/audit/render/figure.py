# SPDX-License-Identifier: Apache-2.0
"""How is an audit drawn as a figure for papers and issues? By matplotlib, which writes PNG, SVG and PDF."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hlotag._text import printable
from hlotag.audit.model import RANK, Findings, Group, TagState, groups
from hlotag.errors import HlotagError

# The palette of Okabe and Ito, which colour-blind people can tell apart. Hatches help in print.
_COLOURS = {
    TagState.KEPT: "#009e73",
    TagState.DUPLICATED: "#56b4a0",
    TagState.MERGED: "#11705a",
    TagState.RESTORED: "#0072b2",
    TagState.USED: "#003f66",
    TagState.ATTACHED: "#56b4e9",
    TagState.COMPLETED: "#88bbdd",
    TagState.PROPAGATED: "#6699cc",
    TagState.FOLDED: "#c3c8ce",
    TagState.CSED: "#9aa0a6",
    TagState.DEAD: "#6e757c",
    TagState.UNKNOWN: "#cc79a7",
    TagState.MOVED: "#e69f00",
    TagState.LOST: "#d55e00",
}
_HATCHES = {TagState.DUPLICATED: "//", TagState.MERGED: "xx", TagState.MOVED: "\\\\", TagState.LOST: "xxx", TagState.CSED: ".."}
_INK, _PAPER = "#1b1f24", "#ffffff"
_FORMATS = (".png", ".svg", ".pdf")
_ROWS = 24
_LABEL = 40


def write(audit: Findings, path: str | os.PathLike[str]) -> None:
    """Draws a bar of final states for each key, value and phase.

    Args:
        audit: The audit.
        path: The file to write; its suffix selects the format.

    Raises:
        HlotagError: matplotlib is not installed, or the suffix is unknown.
        OSError: The file cannot be written.
    """
    if Path(path).suffix.lower() not in _FORMATS:
        raise HlotagError(f"{os.fspath(path)}: unknown format; a figure's name must end in one of {', '.join(_FORMATS)}")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise HlotagError("a figure needs matplotlib; install it: pip install 'hlotag[plot]'") from None
    # Keeps text as text in an SVG, and files independent of time and process.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hlotag", "font.family": "sans-serif", "hatch.linewidth": 0.6}):
        rows = [
            (group, phase) for group in groups(audit.tags)[:_ROWS] for phase in ("forward", "backward") if group.phases[phase]
        ]
        figure = Figure(figsize=(7.2, 1.3 + 0.3 * max(1, len(rows))), facecolor=_PAPER, layout="constrained")
        axes = figure.add_subplot(facecolor=_PAPER)
        _bars(axes, rows)
        _frame(axes, audit, rows)
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(Path(path).suffix.lower(), {"Software": None})
        figure.savefig(path, dpi=200, metadata=metadata, facecolor=_PAPER)


def _bars(axes: Any, rows: list[tuple[Group, str]]) -> None:
    for place, (group, phase) in enumerate(rows):
        left = 0
        counts = {state: sum(tag.state == state and tag.op.phase == phase for tag in group.tags) for state in _COLOURS}
        for state, count in counts.items():
            if not count:
                continue
            style = {"color": _COLOURS[state], "hatch": _HATCHES.get(state), "edgecolor": _PAPER, "linewidth": 0.6}
            axes.barh(place, count, left=left, height=0.72, label=state.label, **style)
            left += count
        axes.text(left, place, f" {left}", va="center", ha="left", fontsize=8, color=_INK)


def _frame(axes: Any, audit: Findings, rows: list[tuple[Group, str]]) -> None:
    labels = [printable(f"{group.key}={group.value}") for group, _ in rows]
    short = [label if len(label) <= _LABEL else label[: _LABEL - 1] + "\u2026" for label in labels]
    # A dollar in the user's text would start a formula in matplotlib.
    names = [f"{label}  {phase}".replace("$", r"\$") for label, (_, phase) in zip(short, rows, strict=True)]
    axes.set_yticks(range(len(rows)), names, fontsize=8, color=_INK)
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.tick_params(colors=_INK, labelsize=8, left=False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_INK)
    title = f"{printable(audit.name)}: {len(audit.tags)} tags" + (f" after XLA ({audit.platform})" if audit.platform else "")
    axes.set_title(title.replace("$", r"\$"), fontsize=10, color=_INK, loc="left")
    handles, names = axes.get_legend_handles_labels()
    by_state = {name: handle for handle, name in zip(handles, names, strict=True)}
    order = [state.label for state in sorted(TagState, key=RANK.__getitem__, reverse=True) if state.label in by_state]
    if order:
        legend = axes.legend(
            [by_state[name] for name in order],
            order,
            fontsize=8,
            ncols=min(6, len(order)),
            frameon=False,
            loc="upper center",
            bbox_to_anchor=(0.4, -0.12),
        )
        for entry in legend.get_texts():
            entry.set_color(_INK)
