# SPDX-License-Identifier: Apache-2.0
"""The tags that an HLO instruction gets, by the rules of docs/how_it_works.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from hlotag import _core
from hlotag.errors import ParseError
from hlotag.tagging import keys

Entries = Mapping[str, str]

# Separators of a name's components and of merged names, and line breaks.
_NOT_IN_NAMES = re.compile(r"[/;\s\x00-\x1f]")


def tags_of(entries: Entries) -> dict[str, str]:
    """The entries whose keys are not reserved."""
    return {key: value for key, value in entries.items() if not _is_reserved(key)}


def restorable(entries: Entries, patterns: tuple[str, ...] = ("*",)) -> dict[str, str]:
    """The tags whose keys match one of the patterns, without those that the stage leaves to XLA."""
    return {key: value for key, value in entries.items() if _is_restorable(key, patterns)}


def hidden_keys(entries: Iterable[Entries], patterns: tuple[str, ...], fingerprint: str) -> frozenset[str]:
    """The keys of tags that match a pattern and that XLA does not see, by the `keys.fingerprint` of the stage."""
    present = {key for found in entries for key in restorable(found, patterns)}
    return frozenset(key for key in present if keys.is_hidden(key, fingerprint))


def restore(module: bytes, program: _core.Program, rules: Rules, *, keeps_numbers: bool = False) -> bytes:
    """Gives every instruction of a serialized module, after XLA's passes, the tags of the operations that it came from.

    `rules` decides about the entries of instructions, and is called once for equal arguments. With `keeps_numbers`, names keep
    their numbers for a later call. Raises ParseError if the bytes are not a valid HLO module.
    """
    try:
        return program.restore(module, rules, keeps_numbers=keeps_numbers)
    except ValueError as error:
        raise ParseError(f"{len(module)} bytes are not a valid HLO module: {error}") from None


class Rules:
    """Decides about the entries of instructions.

    Args:
        entries: The distinct entries of operations.
        patterns: Patterns of the keys to restore; other keys stay unchanged.
        labels: Patterns of the keys that are written into names.
        fingerprint: The registered keys (`keys.fingerprint`) when the stage was made.
        platform: The compiler's. Keys that this compiler has read and removed are not restored.
        repeats: Whether instructions in a fusion repeat the tags of the fusion.
    """

    def __init__(
        self,
        entries: Sequence[Entries],
        patterns: tuple[str, ...],
        labels: tuple[str, ...] = (),
        fingerprint: str = "",
        platform: str = "",
        *,
        repeats: bool = True,
    ):
        self._tags = [restorable(found, patterns) for found in entries]
        self._written = {entry for tags in self._tags for entry in tags.items()}
        self.keys = {key for key, _ in self._written}
        """The keys of the tags that are restored."""
        self._labels = labels
        self._taken = {key for tags in self._tags for key in tags if platform and keys.is_taken(key, platform)}
        # Keys of one place in a schedule, a stream or a memory: helpers must not get them.
        registered = keys.find_dropped_in(fingerprint)
        self._platform = platform
        self._repeats = repeats
        self._of_one_place = {key for tags in self._tags for key in tags if key in registered or keys.is_of_one_place(key)}

    def entries_for(
        self,
        before: Entries,
        own: Sequence[int],
        callers: Sequence[int],
        is_operation: bool,
        is_combined: bool,
        *,
        inside: Entries | None = None,
    ) -> Entries:
        """The entries of an instruction that had the entries `before` after XLA's passes.

        `own` are the indices of the entries of the operations that it came from, its own first; `callers` those of inlined calls.
        `is_operation` says whether it computes its operation's result, rather than an intermediate value; `is_combined` whether
        it replaces several collectives. `inside` has for a fusion, by key, the value on most of the work in it. Keys that the
        compiler reads are commands to an operation, and do not depend on work.
        """
        if inside is None and all(self._tags[index] == before for index in own):
            return before
        merged = self._merge(own, is_combined)
        if inside is not None:
            of_work = {key: value for key, value in inside.items() if key in self.keys and not self._is_command(key)}
            merged = {key: value for key, value in merged.items() if self._is_command(key)} | of_work
        # XLA copies some entries of a call to the inlined operations.
        from_callers = {entry for index in callers for entry in self._tags[index].items()}
        # XLA wrote the values that the program does not have.
        after = {k: v for k, v in before.items() if (k, v) in from_callers or not self._is_written(k, v, is_combined)}
        for key, value in merged.items():
            is_xlas = key in before and not self._is_written(key, before[key], is_combined)
            is_taken = key in self._taken and key not in before
            if not is_xlas and not is_taken and (is_operation or key not in self._of_one_place):
                after[key] = value
        return after

    def _is_command(self, key: str) -> bool:
        return key in self._of_one_place or keys.is_read(key, self._platform)

    def is_repeated(self, key: str) -> bool:
        """Whether instructions in a fusion have a tag that the fusion has, too.

        A tag that differs from layer to layer would keep a compiler from making one kernel of the layers' equal fusions. A key
        that the compiler is known to read stays where it is read.
        """
        return self._repeats or keys.is_read(key, self._platform) or not _is_restorable(key, ("*",))

    def _is_written(self, key: str, value: str, is_combined: bool) -> bool:
        parts = value.split(",") if is_combined else ()
        return (key, value) in self._written or (bool(parts) and all((key, part) in self._written for part in parts))

    def _merge(self, own: Sequence[int], is_combined: bool) -> Entries:
        """The entries of several operations. The first operation wins; values of combined collectives are joined as XLA does."""
        merged = {key: value for index in reversed(own) for key, value in self._tags[index].items()}
        if not is_combined:
            return merged
        values = {key: {self._tags[index][key] for index in own if key in self._tags[index]} for key in merged}
        return {key: value if key in self._of_one_place else ",".join(sorted(values[key])) for key, value in merged.items()}

    def label_for(self, entries: Entries) -> str:
        """The path component of names that shows the entries. Profilers that group by scope group by it."""
        tags = restorable(entries, self._labels) if self._labels else {}
        written = ",".join(f"{key}={value}" for key, value in sorted(tags.items()))
        return f"{{{_NOT_IN_NAMES.sub('_', written)}}}" if tags else ""


@functools.lru_cache(maxsize=256)
def _is_restorable(key: str, patterns: tuple[str, ...]) -> bool:
    # No registration changes whether a key is reserved or left.
    return not _is_reserved(key) and not keys.is_left(key) and any(fnmatchcase(key, pattern) for pattern in patterns)


@functools.lru_cache(maxsize=256)
def _is_reserved(key: str) -> bool:
    known = keys.lookup(key)
    return known is not None and known.reserved
