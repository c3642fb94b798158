# SPDX-License-Identifier: Apache-2.0
"""`Audit`: what became of every tag of a program, what the program costs, and views of both."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hlotag._text import printable
from hlotag.errors import Diagnostic
from hlotag.reports import audit_json, audit_page, audit_table
from hlotag.reports.view import View
from hlotag.results.buffers import Memory
from hlotag.results.costs import Cost, sum_costs
from hlotag.results.grouping import Grouping, list_keys, make_reader, read_values, title_of
from hlotag.results.report import Report, make_report
from hlotag.results.savings import Saving, find_savings
from hlotag.results.tags import RANK, Effect, Instruction, Op, Tag, TagState
from hlotag.tagging.tags import Dropped

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


@dataclass(frozen=True)
class Audit(View):
    """What became of every tag of a program, and what the program costs.

    Attributes:
        name: The module's name.
        platform: The platform that the module was compiled for; empty if it was not compiled.
        ops: The operations of the module that XLA compiles.
        tags: Every tag on every operation, in the order of the operations.
        instructions: The instructions of the last module that came from operations, and what else runs, in the order in which
            they first run. What is in a fusion or a loop follows it.
        dropped: Tags of the program on values that no operation made.
        effects: By key and value, what the tags changed.
        notes: The limits of this audit, in words.
        instruction_count: How many instructions the last module has, those inside fusions included.
        reports: Warnings and remarks of hlotag's passes, such as a rule that matched nothing.
        has_program: Whether the audit knows the program; else only HLO modules.
        hlo_pass: Whether hlotag's HLO pass ran; None if unknown.
        memory: What is in memory at the program's peak; None if it was not asked for, or is unknown.
        is_off: Whether hlotag was off when the program was traced: then the tags are JAX's own.
        source_root: The folder of the files whose lines views may quote: `/` for a program of this process. None for a module or
            a dump, because these may name any file.
    """

    name: str
    ops: Sequence[Op]
    tags: Sequence[Tag]
    dropped: Sequence[Dropped] = ()
    effects: Sequence[Effect] = ()
    instructions: Sequence[Instruction] = ()
    platform: str = ""
    notes: Sequence[str] = ()
    instruction_count: int = 0
    reports: Sequence[Diagnostic] = ()
    has_program: bool = True
    hlo_pass: bool | None = None
    memory: Memory | None = None
    is_off: bool = False
    source_root: str | None = None

    @cached_property
    def lost(self) -> list[Tag]:
        """The tags that are missing although their operation still has an instruction."""
        return self.in_state(TagState.LOST)

    @cached_property
    def counts(self) -> Counter[TagState]:
        """How many tags ended in each state."""
        return Counter(tag.state for tag in self.tags)

    def in_state(self, *states: TagState) -> list[Tag]:
        """The tags that ended in one of these states.

        Args:
            *states: The states.

        Returns:
            The tags, in the order of their operations.
        """
        return [tag for tag in self.tags if tag.state in states]

    @cached_property
    def keys(self) -> list[str]:
        """The keys of the tags, without entries that a library wrote for one operation."""
        return list_keys(read_values(self))

    @cached_property
    def savings(self) -> list[Saving]:
        """What `jax.checkpoint` on the operations of a tag would free at the peak of memory, most first."""
        return find_savings(self)

    def costs_by(self, by: Grouping) -> list[Cost]:
        """Sums flops, bytes, exchanged bytes and memory at the peak, by tag, scope, line or operation.

        Args:
            by: A key; `source`; `scope`, or `scope:2` for the first two names of a scope; `operation`; or several of them,
                whose values are combined.

        Returns:
            The rows, most flops first, what is of no operation last. They sum to the work of all instructions, and to
            `Audit.memory.bytes`.

        Raises:
            ArgumentError: No tag has the key.

        Examples:
            >>> f = jax.named_scope("layer")(lambda x: jnp.tanh(x @ x))
            >>> audit = hlotag.audit(f, jnp.ones((64, 64)), memory=True)
            >>> rows = audit.costs_by("scope")
            >>> [(row.value, row.flops) for row in rows if row.flops]
            [('layer', 528384)]
            >>> sum(row.memory for row in rows) == audit.memory.bytes
            True
        """
        return sum_costs(self, title_of(by), make_reader(by, read_values(self), self.name))

    @cached_property
    def report(self) -> Report:
        """The report: a sentence and the problems."""
        return make_report(self)

    def summary(self, width: int | None = None) -> str:
        """The report for a terminal: a sentence, what needs attention, and a line for each key and value.

        Args:
            width: Limit of columns; by default, the terminal's width.

        Returns:
            Text without colours; `rich.print(audit)` prints it with colours.
        """
        return audit_table.as_text(self, width)

    def to_json(self, *, indent: int | None = None) -> str:
        """The whole audit as JSON in the format of `hlotag/reports/audit_schema.json`.

        Args:
            indent: As for `json.dumps`.

        Returns:
            The JSON text.
        """
        return audit_json.dumps(self, indent=indent)

    @classmethod
    def from_json(cls, text: str, filename: str = "the audit") -> Audit:
        """Reads what `to_json` returned; `hlotag.read_audit` reads a file.

        Args:
            text: The JSON text.
            filename: The file, for errors.

        Returns:
            The audit.

        Raises:
            ParseError: The text is something else.
        """
        return cls(**audit_json.loads(text, filename))

    @property
    def _page(self) -> str:
        return audit_page.html(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What `rich.print` shows."""
        yield audit_table.renderable(self, options.max_width)

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
    return Audit.from_json(Path(path).read_text(encoding="utf-8"), os.fspath(path))
