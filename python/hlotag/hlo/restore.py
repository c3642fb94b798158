# SPDX-License-Identifier: Apache-2.0
"""The tags of HLO instructions, put right: docs/hlo.md has the rules."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from hlotag import _core
from hlotag.errors import ParseError
from hlotag.hlo import opcodes
from hlotag.tagging import keys

Entries = Mapping[str, str]

# What separates the components of a name, and merged names; and what would break a line.
_NOT_IN_NAMES = re.compile(r"[/;\s\x00-\x1f]")


def tags_of(entries: Entries, patterns: tuple[str, ...] = ("*",)) -> dict[str, str]:
    """The entries that are tags: whose keys nobody reserves, and match one of the patterns."""
    return {key: value for key, value in entries.items() if _is_tag(key, patterns)}


def restored(module: bytes, program: _core.Program, rules: Rules, *, keeps_frames: bool) -> bytes:
    """Gives every instruction the tags of the operations that it came from, and takes the numbers out of names.

    Args:
      module: a serialized `HloModuleProto`, as XLA's passes made it.
      program: the numbered operations.
      rules: asked once for instructions that are equal to them.
      keeps_frames: makes XLA keep the ids of stack frames when it reads the module back into the one that it is from.

    Returns:
      The module, in which all else is as it was, byte for byte.

    Raises:
      ParseError: it is no sound HLO module.
    """
    try:
        return program.restore(module, opcodes, rules, keeps_frames=keeps_frames)
    except ValueError as error:
        raise ParseError(f"{len(module)} bytes are no sound HLO module: {error}") from None


class Rules:
    """What entries instructions are to have.

    Args:
      entries: those of the program's operations.
      patterns: of the keys to put right; others stay as XLA left them.
      labels: patterns of the keys that names show.
      fingerprint: of the registered keys (`keys.fingerprint`) when the stage was made; later registrations do not count.
      platform: whose compiler it is. The keys that it has read and taken away stay away.
    """

    def __init__(
        self,
        entries: Sequence[Entries],
        patterns: tuple[str, ...],
        labels: tuple[str, ...] = (),
        fingerprint: str = "",
        platform: str = "",
    ):
        self._tags = [tags_of(found, patterns) for found in entries]
        self._written = {entry for tags in self._tags for entry in tags.items()}
        self._labels = labels
        self._taken = {key for tags in self._tags for key in tags if platform and keys.is_taken(key, platform)}
        # Keys that say where in a schedule, a stream or a memory something is: helpers need not and may not share them.
        registered = keys.registered_in(fingerprint)
        self._of_one_place = {key for tags in self._tags for key in tags if key in registered or keys.is_of_one_place(key)}

    def entries_for(
        self, before: Entries, own: Sequence[int], callers: Sequence[int], is_operation: bool, is_combined: bool
    ) -> Entries:
        """Those of an instruction.

        Args:
          before: that XLA left.
          own: which entries the operations have that it came from; its own first.
          callers: which entries the calls have that XLA inlined.
          is_operation: whether it is what its operation computes, and not one that helps.
          is_combined: whether it does what several collectives were to do.
        """
        if all(self._tags[index] == before for index in own):
            return before
        # XLA copies some of a call's entries to what it inlines.
        from_callers = {entry for index in callers for entry in self._tags[index].items()}
        # A value that the program does not have is XLA's own.
        after = {k: v for k, v in before.items() if (k, v) in from_callers or not self._is_written(k, v, is_combined)}
        for key, value in self._merged(own, is_combined).items():
            is_xlas = key in before and not self._is_written(key, before[key], is_combined)
            is_taken = key in self._taken and key not in before
            if not is_xlas and not is_taken and (is_operation or key not in self._of_one_place):
                after[key] = value
        return after

    def _is_written(self, key: str, value: str, is_combined: bool) -> bool:
        parts = value.split(",") if is_combined else ()
        return (key, value) in self._written or (bool(parts) and all((key, part) in self._written for part in parts))

    def _merged(self, own: Sequence[int], is_combined: bool) -> Entries:
        """The entries of several operations: the first one's where they differ, and joined as XLA joins those of collectives."""
        merged = {key: value for index in reversed(own) for key, value in self._tags[index].items()}
        if not is_combined:
            return merged
        values = {key: {self._tags[index][key] for index in own if key in self._tags[index]} for key in merged}
        return {key: value if key in self._of_one_place else ",".join(sorted(values[key])) for key, value in merged.items()}

    def label_for(self, entries: Entries) -> str:
        """What names show of entries: profilers that group by scope group by it."""
        tags = tags_of(entries, self._labels) if self._labels else {}
        written = ",".join(f"{key}={value}" for key, value in sorted(tags.items()))
        return f"{{{_NOT_IN_NAMES.sub('_', written)}}}" if tags else ""


@functools.lru_cache(maxsize=256)
def _is_tag(key: str, patterns: tuple[str, ...]) -> bool:  # No registration makes a key reserved.
    known = keys.lookup(key)
    return not (known is not None and known.reserved) and any(fnmatchcase(key, pattern) for pattern in patterns)
