# SPDX-License-Identifier: Apache-2.0
"""`Profile`: where the time of a program's steps went, and views: a table, JSON, a page, and tracks of a timeline."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hlotag._text import printable
from hlotag._util.files import write_atomically
from hlotag._util.groups import group
from hlotag.errors import ArgumentError
from hlotag.reports import profile_json, profile_page, profile_table, timeline
from hlotag.reports.view import View
from hlotag.results.breakdown import Breakdown, break_down
from hlotag.results.times import ADDED, GRAPHS, NOTHING, OTHERS, UNDIVIDED, UNNAMED, Hot, Rates, Row, Transfer, in_words

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from hlotag.profiles.program import Program
    from hlotag.profiles.trace import Device
    from hlotag.results.times import Limits


@dataclass(frozen=True)
class Profile(View):
    """Where the time of a program's steps went.

    Attributes:
        name: The name of the module.
        devices: The devices; times are means over them.
        steps: The length of each step in seconds.
        rows: By key, value and phase.
        instructions: Those that took most time, most first.
        transfers: The collectives, the most exposed first.
        untagged: Seconds of a step in operations without any tag.
        split: Seconds of a step in instructions that compute operations of several values.
        busy: Seconds of a step that instructions ran, those that ran at once each counted.
        untraced_seconds: The length of a step without the profiler; None if it was not measured.
        limits: The most that the device can do; None if unknown.
        products_at_limit: The least seconds for the step's products at the limits of their types, without those that are computed
            again; None if unknown.
        notes: What else to know, in words.
        source_root: The folder of the files whose lines views may quote; None for none.
        program: The operations and tags; None in a profile that was read from JSON.
        timeline: The events on each device.
        seconds: By name, the seconds of a step of each instruction that ran; empty in a profile that was read from JSON.
    """

    name: str
    devices: tuple[str, ...]
    steps: tuple[float, ...]
    rows: tuple[Row, ...]
    instructions: tuple[Hot, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    untagged: float = 0.0
    split: float = 0.0
    busy: float = 0.0
    untraced_seconds: float | None = None
    limits: Limits | None = None
    products_at_limit: float | None = None
    notes: tuple[str, ...] = ()
    source_root: str | None = None
    program: Program | None = field(default=None, repr=False, compare=False)
    timeline: Sequence[Device] = field(default=(), repr=False, compare=False)
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def total_seconds(self) -> float:
        """The length of a step."""
        return sum(self.steps) / len(self.steps) if self.steps else 0.0

    @property
    def mfu(self) -> float | None:
        """Model flops utilization: `products_at_limit` relative to a step without the profiler, if that was measured.

        None if the device's limits are unknown, or if the program has no products.
        """
        seconds = self.untraced_seconds or self.total_seconds
        return self.products_at_limit / seconds if self.products_at_limit and seconds else None

    @property
    def rest(self) -> list[Row]:
        """The rows of time in no operation."""
        return [row for row in self.rows if not row.key]

    @property
    def exposed(self) -> float:
        """Seconds of a step in which the device only ran collectives."""
        return sum(transfer.exposed for transfer in self.transfers)

    @property
    def overlaps(self) -> list[str]:
        """Of the collectives that are exposed for at least a hundredth of a step, what could hide each."""
        return [each.overlap for each in self.transfers if each.overlap and each.exposed >= 0.01 * self.total_seconds]

    @property
    def waiting(self) -> float:
        """Seconds of `exposed` in which the device waited for others; bytes move in the rest."""
        return sum(transfer.exposed_waiting for transfer in self.transfers)

    @property
    def in_operations(self) -> float:
        """Seconds of a step in operations of the program."""
        return self.total_seconds - sum(row.seconds for row in self.rest)

    @property
    def keys(self) -> list[str]:
        """What the rows are grouped by."""
        return list(dict.fromkeys(row.key for row in self.rows if row.key))

    @property
    def telling_key(self) -> str | None:
        """The key, or other grouping, with most values; None if the profile has no rows of operations."""
        return max(self.keys, key=lambda key: len({row.value for row in self.rows if row.key == key}), default=None)

    def rates(self, key: str) -> dict[str, Rates]:
        """By value of a key, the rates of its operations in all phases. Values that take no time have none."""
        by_value = group((row.value, row) for row in self.rows if row.key == key)
        return {value: _rates(rows) for value, rows in by_value.items() if any(row.seconds for row in rows)}

    def break_down(self) -> Iterator[Breakdown]:
        """Yields the seconds of a step by value and phase, for each key."""
        return (break_down(key, ((r.key, r.value, r.phase, r.seconds) for r in self.rows)) for key in self.keys)

    @property
    def groupings(self) -> list[list[str]]:
        """What memory is grouped by: as time, or by scopes if no operation has a tag."""
        return [key.split(", ") for key in self.keys] or [["scope"]]

    @property
    def _waiting_in_words(self) -> str:
        """How much of `exposed` is waiting, and for which device most; empty for less than half a percent of a step."""
        if self.waiting < 0.005 * self.total_seconds or not self.transfers:
            return ""
        waited = group((each.slowest, each.exposed_waiting) for each in self.transfers if each.slowest)
        slowest = max(waited, key=lambda device: sum(waited[device]))
        return f", {self.waiting / self.exposed:.0%} of that waiting for other devices, most for {slowest}"

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        total = self.total_seconds
        parts = [
            (self.in_operations - self.untagged, "in tagged operations"),
            (self.untagged, "in operations without a tag"),
            *((row.seconds, _SENTENCES[row.value]) for row in self.rest),
        ]
        shown = ", ".join(f"{seconds / total:.0%} {where}" for seconds, where in parts if total and seconds / total >= 0.005)
        device = self.devices[0] + (f" and {len(self.devices) - 1} more" if len(self.devices) > 1 else "")
        has_exposed = bool(self.transfers and total)
        exposed = f" {self.exposed / total:.0%} of it is exposed communication{self._waiting_in_words}." if has_exposed else ""
        untraced = self.untraced_seconds or total
        slowed = f" under the profiler, and {in_words(untraced)} without it" if total > _SLOWED * untraced else ""
        mfu = f" MFU {self.mfu:.0%}." if self.mfu else ""
        return f"A step of {self.name} takes {in_words(total)}{slowed} on {device}: {shown}.{mfu}{exposed}"

    def to_json(self, *, indent: int | None = None) -> str:
        """The profile as JSON, without its timeline.

        Args:
            indent: As for `json.dumps`.

        Returns:
            The JSON text, which `hlotag profile --baseline` reads.
        """
        return profile_json.dumps(self, indent=indent)

    @classmethod
    def from_json(cls, text: str, filename: str = "the profile") -> Profile:
        """Reads what `to_json` returned; `hlotag.read_profile` reads a file.

        Args:
            text: The JSON text.
            filename: The file, for errors.

        Returns:
            The profile, without its timeline.

        Raises:
            ParseError: The text is something else.
        """
        return cls(**profile_json.loads(text, filename))

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Writes a timeline with a track for each key, for https://ui.perfetto.dev.

        Args:
            path: The file to write: JSON, compressed if its name ends in `.gz`.

        Raises:
            ArgumentError: The profile was read from JSON, which has no timeline.
            OSError: The file cannot be written.
        """
        if self.program is None:
            raise ArgumentError("a profile that was read from JSON has no timeline; make it from the trace")
        write_atomically(path, timeline.dumps(self.program, self.timeline, compressed=str(path).endswith(".gz")), private=False)

    @property
    def _page(self) -> str:
        return profile_page.html(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """What `rich.print` shows."""
        yield profile_table.renderable(self, options.max_width)

    def __str__(self) -> str:
        """The sentence and the tables, without colours."""
        return profile_table.as_text(self)

    def __repr__(self) -> str:
        """One line."""
        return f"<Profile of {printable(self.name)}: {in_words(self.total_seconds)} a step, {len(self.steps)} steps>"


def _rates(rows: Sequence[Row]) -> Rates:
    seconds = sum(row.seconds for row in rows)

    def share(shares: list[float | None]) -> float | None:
        known = [each * row.seconds for each, row in zip(shares, rows, strict=True) if each is not None]
        return sum(known) / seconds if len(known) == len(rows) else None

    return Rates(
        sum(row.flops for row in rows) / seconds,
        sum(row.bytes for row in rows) / seconds,
        share([row.of_flops for row in rows]),
        share([row.of_bandwidth for row in rows]),
    )


# How much longer a step takes under the profiler, from which the sentence says so.
_SLOWED = 1.5
_SENTENCES = {
    UNDIVIDED: "in branches and loops that cannot be divided",
    ADDED: "in what XLA added",
    OTHERS: "in other programs",
    GRAPHS: "in command buffers",
    UNNAMED: "in kernels without a name",
    NOTHING: "idle",
}
