# SPDX-License-Identifier: Apache-2.0
"""An audit in a terminal."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hlotag._util.text import printable
from hlotag.audit.model import HOW_IT_CAME, Audit, Stray, Tag, TagState, groups

# How many tags that need attention are listed one by one.
_LISTED = 12

_STYLES = {
    TagState.LOST: "bold red",
    TagState.MOVED: "bold yellow",
    TagState.KEPT: "green",
    TagState.RESTORED: "cyan",
    TagState.MERGED: "green",
    TagState.DUPLICATED: "green",
}

# Columns, and what they fall together to where there is no room for them.
_WIDE = tuple((state.label, (state,)) for state in TagState)
_NARROW = (
    ("there", (TagState.KEPT, TagState.DUPLICATED, TagState.MERGED, TagState.RESTORED, *HOW_IT_CAME)),
    ("gone", (TagState.CSED, TagState.FOLDED, TagState.DEAD)),
    ("moved", (TagState.MOVED,)),
    ("lost", (TagState.LOST,)),
    ("unknown", (TagState.UNKNOWN,)),
)
# Columns of a terminal.
_TAG = 24
_NUMBER = 7
_PADDING = 2


def as_text(audit: Audit, width: int | None = None) -> str:
    """The table without colours.

    Args:
        audit: What to show.
        width: Columns to fit in; the terminal's by default.

    Returns:
        Lines.
    """
    columns = width or shutil.get_terminal_size((120, 24)).columns
    buffer = io.StringIO()
    console = Console(file=buffer, width=columns, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(renderable(audit, columns), highlight=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())


def renderable(audit: Audit, width: int | None = None) -> RenderableType:
    """What rich can print.

    Args:
        audit: What to show.
        width: Columns to fit in; the terminal's by default.

    Returns:
        A title, a table, and a list of what needs attention.
    """
    columns = width or shutil.get_terminal_size((120, 24)).columns
    parts: list[RenderableType] = [_title(audit)]
    if audit.tags:
        parts.append(_table(audit, columns))
    parts += _attention(audit)
    parts += [Text(printable(f"note: {note}"), style="dim") for note in audit.notes]
    return Group(*parts)


def _title(audit: Audit) -> Text:
    tagged = len({tag.op.id for tag in audit.tags})
    title = Text.assemble(
        (printable(audit.name), "bold"),
        f": {_count(len(audit.tags), 'tag')} on {tagged} of {_count(len(audit.ops), 'operation')}",
    )
    if audit.instruction_count:
        title.append(f"; {_count(audit.instruction_count, 'instruction')} after XLA")
        title.append(printable(f" ({audit.platform})") if audit.platform else "")
    return title


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _table(audit: Audit, width: int) -> Table:
    rows = groups(audit.tags)
    shown = [(label, states) for label, states in _WIDE if any(audit.counts[state] for state in states)]
    if (
        _TAG + sum(max(_NUMBER, len(label) + _PADDING) for label in ("forward", "backward", *(label for label, _ in shown)))
        > width
    ):
        shown = [(label, states) for label, states in _NARROW if any(audit.counts[state] for state in states)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, show_footer=len(rows) > 1, expand=False)
    # A value may be long: it is the only column that gives way.
    table.add_column("tag", "all", ratio=1, no_wrap=True, overflow="ellipsis", min_width=12)
    for phase in ("forward", "backward"):
        total = sum(group.phases[phase] for group in rows)
        table.add_column(phase, str(total), justify="right", no_wrap=True, header_style="dim", style="dim")
    for label, states in shown:
        total = sum(audit.counts[state] for state in states)
        table.add_column(label, str(total), justify="right", no_wrap=True, style=_STYLES.get(states[0], ""))
    for group in rows:
        cells = [sum(group.states[state] for state in states) for _, states in shown]
        phases = [str(group.phases[phase]) for phase in ("forward", "backward")]
        table.add_row(Text(printable(f"{group.key}={group.value}")), *phases, *(str(n) if n else "·" for n in cells))
    return table


def _attention(audit: Audit) -> list[RenderableType]:
    lines: list[Text] = []
    urgent = [tag for tag in audit.by_attention() if tag.state.needs_attention]
    lines += [_tag_line(tag) for tag in urgent[:_LISTED]]
    if len(urgent) > _LISTED:
        lines.append(Text(f"  and {len(urgent) - _LISTED} more that are lost or moved", style="dim"))
    lines += [_stray_line(stray) for stray in audit.strays[:_LISTED]]
    if len(audit.strays) > _LISTED:
        lines.append(Text(f"  and {len(audit.strays) - _LISTED} more on a wrong instruction", style="dim"))
    for dropped in audit.dropped:
        tags = ", ".join(f"{key}={value}" for key, value in dropped.attrs)
        place = f"{dropped.file}:{dropped.line}" if dropped.file else "an unknown line"
        lines.append(
            Text.assemble(
                ("  no operation  ", "bold yellow"), printable(f"{tags} at {place}: its value is one that no operation made")
            )
        )
    if not lines:
        return [Text("Nothing needs attention.", style="green")] if audit.tags else []
    return [Text("Needs attention", style="bold"), *lines]


def _tag_line(tag: Tag) -> Text:
    last = tag.steps[-1]
    line = Text.assemble(
        ("  " + tag.state.label.ljust(14), _STYLES[tag.state]), printable(f"{tag.key}={tag.value} on {tag.op.name}")
    )
    line.append(printable(f" at {tag.op.source}") if tag.op.source else "")
    line.append(f": {printable(last.detail)}" if last.detail else "")
    line.append(printable(f" [{last.by}]") if last.by else "", style="dim")
    return line


def _stray_line(stray: Stray) -> Text:
    text = f"{stray.key}={stray.value} on {stray.opcode} {stray.instruction}, which does not have it in the program"
    return Text.assemble(("  wrong place   ", _STYLES[TagState.MOVED]), printable(text))


def plain_rows(tags: Sequence[Tag]) -> list[str]:
    """One line for each tag, for messages.

    Args:
        tags: Some.

    Returns:
        The lines.
    """
    return [printable(str(tag)) for tag in tags]
