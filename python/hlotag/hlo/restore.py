# SPDX-License-Identifier: Apache-2.0
"""The tags of HLO instructions, put right: docs/hlo.md has the rules."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from hlotag import keys
from hlotag.hlo.join import Joined
from hlotag.hlo.module import HloModule, set_attributes
from hlotag.hlo.opcodes import may_be
from hlotag.hlo.origins import Origins

Entries = dict[str, str]

# What separates the components of a name, and merged names; and what would break a line.
_NOT_IN_NAMES = re.compile(r"[/;\s\x00-\x1f]")


def tags_of(entries: Mapping[str, str], patterns: tuple[str, ...] = ("*",)) -> Entries:
    """The entries that are tags: whose keys nobody reserves, and match one of the patterns."""
    return {key: value for key, value in entries.items() if _is_tag(key, patterns)}


def with_tags(op_name: str, tags: Mapping[str, str]) -> str:
    """`op_name` with tags in front of its last component, so that profilers that group by scope group by them."""
    if not tags:
        return op_name
    scope, slash, last = op_name.rpartition("/")
    written = ",".join(f"{key}={value}" for key, value in sorted(tags.items()))
    return f"{scope}{slash}{{{_NOT_IN_NAMES.sub('_', written)}}}/{last}"


def restore(module: HloModule, joined: Joined, origins: Origins, patterns: tuple[str, ...] = ("*",)) -> int:
    """Gives every instruction the tags of the operations that it came from.

    Args:
      module: changed in place.
      joined: what its instructions came from.
      origins: the operations.
      patterns: of the keys to put right; others stay as XLA left them.

    Returns:
      The number of instructions whose attributes changed.
    """
    restorer = _Restorer(origins, patterns)
    num_changed = 0
    for instruction, numbers, op_name, before in zip(
        module.messages(), joined.ids, joined.op_names, joined.attributes, strict=True
    ):
        if not numbers:
            continue
        tags = restorer.tags_for(numbers)
        if before == tags and (len(numbers) == 1 or not restorer.names_places):
            continue
        # XLA left the right ones, or none, of most.
        is_simple = not before and not restorer.names_places
        after = tags if is_simple else restorer.entries_for(instruction.opcode, op_name, numbers, before)
        if after != before:
            set_attributes(instruction, after)
            num_changed += 1
    return num_changed


class _Restorer:
    def __init__(self, origins: Origins, patterns: tuple[str, ...]):
        self._origins = origins
        # Most operations share the entries of few.
        shared = dict(zip(map(id, origins.attributes), origins.attributes, strict=True))
        distinct = {key: tags_of(entries, patterns) for key, entries in shared.items()}
        self._tags = list(map(distinct.__getitem__, map(id, origins.attributes)))
        self._written = {entry for entries in distinct.values() for entry in entries.items()}
        self.names_places = any(_names_one_place(key) for key, _ in self._written)
        self._merged: dict[tuple[int, ...], Entries] = {}

    def tags_for(self, numbers: tuple[int, ...]) -> Entries:
        """The tags of all operations that an instruction came from; where they differ, the first one's."""
        if len(numbers) == 1:
            return self._tags[numbers[0]]
        if (merged := self._merged.get(numbers)) is None:
            merged = {key: value for number in reversed(numbers) for key, value in self._tags[number].items()}
            self._merged[numbers] = merged
        return merged

    def entries_for(self, opcode: str, op_name: str, numbers: tuple[int, ...], before: Mapping[str, str]) -> Mapping[str, str]:
        """What an instruction that came from `numbers` and that XLA left with `before` is to have."""
        # XLA copies some of a call's entries to what it inlines.
        callers = self._origins.callers_of(op_name)
        from_callers = {entry for number in callers for entry in self._tags[number].items()}
        # A value that the program does not have is XLA's own, for instance of a combined collective.
        after = {k: v for k, v in before.items() if (k, v) not in self._written or (k, v) in from_callers}
        is_operation = self._is_operation(opcode, op_name, numbers)
        for number in reversed(numbers):
            for key, value in self._tags[number].items():
                is_xlas = key in before and (key, before[key]) not in self._written
                if not is_xlas and (is_operation or not _names_one_place(key)):
                    after[key] = value
        return after

    def _is_operation(self, opcode: str, op_name: str, numbers: tuple[int, ...]) -> bool:
        """Whether an instruction is what its operation computes, and not one that helps."""
        if opcode == "constant":
            return False
        return numbers[0] in self._origins.ids_of(op_name) or may_be(self._origins.names[numbers[0]], opcode)


@functools.lru_cache(maxsize=256)
def _is_tag(key: str, patterns: tuple[str, ...]) -> bool:
    known = keys.lookup(key)
    return not (known is not None and known.reserved) and any(fnmatchcase(key, pattern) for pattern in patterns)


@functools.lru_cache(maxsize=256)
def _names_one_place(key: str) -> bool:
    """Whether a key says where in a schedule, a stream or a memory something is, which its helpers need not and may not share."""
    known = keys.lookup(key)
    return known is not None and known.derived == "drop"
