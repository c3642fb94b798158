# SPDX-License-Identifier: Apache-2.0
"""Which instructions hold a branch, or a loop of unknown trips, beside other work?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from hlotag._text import list_some
from hlotag.profiles.program import Part, Program
from hlotag.results import times

# XLA's CPU compiler makes one kernel of a small loop. With this flag, each instruction in it has events of its own.
_ON_CPU = (
    " With XLA_FLAGS=--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0, XLA's CPU compiler makes no kernels "
    "of whole loops, and each instruction in a loop has its own time."
)

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile


class Doubts:
    """The instructions whose time is undivided.

    Args:
        program: The program.
        groups: What the rows are grouped by, as of `Program.grouping`.
    """

    def __init__(self, program: Program, groups: Sequence[tuple[str, Callable[[Part], str]]]) -> None:
        self._program, self._groups = program, groups

    def row(self, name: str) -> str:
        """The row of an instruction without sure parts: it is undivided, or XLA added it."""
        return times.UNDIVIDED if self._program.parts(name) else times.ADDED

    def notes(self, profile: Profile) -> Iterator[str]:
        """Yields a note that names the branches and loops in undivided instructions, with their lines."""
        seconds = sum(row.seconds for row in profile.rest if row.value == times.UNDIVIDED)
        if not seconds:
            return
        found = [hot.name for hot in profile.instructions if not self._program.sure_parts(hot.name, self._groups)]
        listed = [self._describe(name) for name in found if self._program.parts(name)]
        on_cpu = _ON_CPU if profile.devices[0].startswith("CPU") else ""
        share = f"{seconds / profile.total_seconds:.0%}"
        yield f"{share} of the time is undivided: {list_some(listed)}. The trace has one event for all of it.{on_cpu}"

    def _describe(self, name: str) -> str:
        """`call.2 holds while.5 (model.py:12)`: the first branch or loop, and the line of an operation in it."""
        part = next(part for part in self._program.parts(name) if part.under)
        line = f" ({part.op.source})" if part.op.source else ""
        return f"{name} holds {part.under[-1]}{line}"
