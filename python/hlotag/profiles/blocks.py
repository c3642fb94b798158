# SPDX-License-Identifier: Apache-2.0
"""The time by tag of all programs that run in a block, for steps that a library hides in a function of its own."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import jax
from rich import box
from rich.console import Group
from rich.jupyter import JupyterMixin
from rich.table import Table
from rich.text import Text

from hlotag._text import count, printable
from hlotag._util.progress import step
from hlotag.audits.audit import Audit
from hlotag.audits.blocks import observing
from hlotag.audits.compilations import Compilation, Compilations, Entry
from hlotag.errors import ArgumentError
from hlotag.profiles import embedded, trace
from hlotag.profiles.join import profile_of
from hlotag.profiles.limits import device_kind, find_limits
from hlotag.profiles.modules import split_name
from hlotag.profiles.profile import Profile
from hlotag.profiles.record import notes_of, options_of, tracing
from hlotag.profiles.trace import Trace
from hlotag.reports.audit_table import plain_text
from hlotag.reports.index import write_index
from hlotag.results.grouping import Grouping
from hlotag.results.times import in_words

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

# Limit of programs that are profiled: each takes a reading of the trace.
_PROFILED = 8
# Seconds between looks at whether the process is idle, how many at most, and which part of them an idle process may compute.
_WAIT, _MOST_WAITS, _IDLE = 0.02, 500, 0.2


@dataclass
class Profiles(JupyterMixin):
    """What ran in a block.

    Attributes:
        programs: The profiles of the programs that were compiled in the block and ran, that with most time first; eight at most.
            Their steps are the program's runs.
        smaller: The names of further programs that were compiled in the block and ran.
        not_compiled: The names of programs that ran and were compiled before the block, or in other threads.
    """

    programs: list[Profile] = field(default_factory=list)
    smaller: tuple[str, ...] = ()
    not_compiled: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        if not self.programs:
            return "No program that was compiled in the block ran."
        first, total = self.programs[0], sum(map(_seconds, self.programs))
        share = f"{_seconds(first) / total:.0%}" if total else "0%"
        programs, runs = count(len(self.programs), "program"), count(len(first.steps), "run")
        smaller = f" {count(len(self.smaller), 'program')} more took less." if self.smaller else ""
        return f"{programs} took {in_words(total)}; {first.name} took {share} of it, in {runs}.{smaller}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What `rich.print` and notebooks show: the programs, and the profile of the first."""
        yield Text(printable(self.sentence), "bold")
        if self.programs:
            yield Group(self._table(), self.programs[0])

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in ("program", "runs", "a run", "all runs"):
            table.add_column(column, justify="left" if column == "program" else "right", no_wrap=True)
        for each in self.programs:
            times = in_words(each.total_seconds), in_words(_seconds(each))
            table.add_row(Text(printable(each.name)), str(len(each.steps)), *times)
        return table

    def __str__(self) -> str:
        """What `rich.print` shows, without colours."""
        return plain_text(self)


def _seconds(profile: Profile) -> float:
    return sum(profile.steps)


@contextmanager
def profiling(by: Grouping | None = None, *, folder: str | os.PathLike[str] | None = None) -> Iterator[Profiles]:
    """Profiles every program that is compiled and runs in a block: what a library's own training loop runs, say.

    In the block, programs are traced and compiled anew, as for `hlotag.auditing`, and each runs as often as without it. A trace
    has an event for each instruction that runs: a few hundred steps of a program are enough, and quick to read.

    Args:
        by: As for `hlotag.profile`. A program without such a key has no rows of it.
        folder: Where to write `index.html`, as for `hlotag.auditing`, with how often and how long each program ran; and a page of
            each, with time for those that are profiled.

    Yields:
        The profiles, which are there when the block has ended.

    Raises:
        HlotagError: A trace is being made already.

    Examples:
        >>> def train(x):
        ...     step = jax.jit(lambda x: hlotag.tag(jnp.tanh(x @ x), {"layer": "1"}))
        ...     for _ in range(3):
        ...         x = step(x)
        ...     return x
        >>> with hlotag.profiling() as profiles:
        ...     _ = train(jnp.ones((64, 64)))
        >>> [len(each.steps) for each in profiles.programs if "layer" in {row.key for row in each.rows}]
        [3]
    """
    found, compilations = Profiles(), Compilations()
    with tempfile.TemporaryDirectory(prefix="hlotag-") as traced:
        with tracing(traced):
            with observing(compilations.add, options=options_of):
                yield found
            _wait_for_programs()
        with step("reading the trace"):
            read = Trace(trace.find(Path(traced)))
            names = dict.fromkeys(split_name(each)[0] for each in read.programs)
            ran = [name for name in names if name != f"jit_{_after_others.__name__}"]
            compiled = {each.audit.name: each.audit for each in compilations.found}
            known = [name for name in ran if name in compiled]
            found.programs = [_profile(compiled[name], read, by) for name in known[:_PROFILED]]
    found.programs.sort(key=lambda each: -_seconds(each))
    found.smaller = tuple(known[_PROFILED:])
    found.not_compiled = tuple(name for name in ran if name not in compiled)
    if folder is not None:
        _write_folder(Path(folder), compilations, {each.name: each for each in found.programs}, ran)


def _write_folder(folder: Path, compilations: Compilations, profiles: Mapping[str, Profile], ran: Sequence[str]) -> None:
    """Writes the index of a run, those with most time first, and a page of each program."""

    def entry(each: Compilation) -> Entry:
        profile = profiles.get(each.audit.name)
        if profile is not None:
            return Entry(each, len(profile.steps), _seconds(profile))
        return Entry(each, None if each.audit.name in ran else 0)

    def write_page(each: Entry, path: Path) -> None:
        name = each.compilation.audit.name
        (profiles.get(name) or each.compilation.audit).to_html(path)

    entries = sorted(map(entry, compilations.found), key=lambda each: (-(each.seconds or 0.0), -each.compilation.seconds))
    write_index(folder, entries, write_page)


def _after_others(x: jax.Array) -> jax.Array:
    return x + 1


def _wait_for_programs() -> None:
    """Waits until no program runs: the trace would lack what a program does after the block.

    Results that the user has dropped are not there to wait for. Accelerators run programs in order, so they have run if a later
    one has; CPU devices run several at once, and only the process's time shows it.
    """
    jax.effects_barrier()
    jax.block_until_ready(jax.live_arrays())
    jax.block_until_ready([jax.jit(_after_others)(jax.device_put(0, device)) for device in jax.local_devices()])
    for _ in range(_MOST_WAITS):
        before = time.process_time()
        time.sleep(_WAIT)
        if time.process_time() - before < _IDLE * _WAIT:
            return


def _profile(audit: Audit, traced: Trace, by: Grouping | None) -> Profile:
    program, notes = embedded.program_of(audit, traced)
    notes = [*notes, *notes_of(audit.platform)]
    devices = program.read(traced)
    try:
        program.grouping(by)
    except ArgumentError as error:
        by, notes = [], [str(error), *notes]
    limits = find_limits(device_kind(audit.platform))
    found = profile_of(program, devices, by, source_root=audit.source_root, limits=limits)
    return replace(found, notes=(*found.notes, *notes))
