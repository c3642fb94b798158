# SPDX-License-Identifier: Apache-2.0
"""The tags of HLO instructions, put right: the rules are in docs/hlo.md."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from hlotag import keys
from hlotag.hlo.module import HloModule, Instruction
from hlotag.hlo.origins import Origins


def tags_of(entries: Mapping[str, str], patterns: tuple[str, ...] = ("*",)) -> dict[str, str]:
    """The entries that are tags: whose keys nobody reserves, and match one of the patterns."""
    return {key: value for key, value in entries.items() if _is_tag(key) and any(fnmatchcase(key, p) for p in patterns)}


def restore(
    module: HloModule,
    ids: Mapping[Instruction, tuple[int, ...]],
    origins: Origins,
    patterns: tuple[str, ...] = ("*",),
) -> int:
    """Gives every instruction the tags of the operations that it came from.

    Args:
      module: changed in place.
      ids: as `join` gives them.
      origins: the operations.
      patterns: of the keys to put right; others stay as XLA left them.

    Returns:
      The number of instructions whose attributes changed.
    """
    tags = [tags_of(entries, patterns) for entries in origins.attributes]
    written = {(key, value) for entries in tags for key, value in entries.items()}
    num_changed = 0
    for instruction, numbers in ids.items():
        if not numbers:
            continue
        before = instruction.attributes
        # A value that the program does not have is XLA's own, for instance of a combined collective.
        after = {key: value for key, value in before.items() if (key, value) not in written}
        for number in reversed(numbers):
            after.update(
                {key: value for key, value in tags[number].items() if key not in before or (key, before[key]) in written}
            )
        if after != before:
            instruction.attributes = after
            num_changed += 1
    return num_changed


def _is_tag(key: str) -> bool:
    known = keys.lookup(key)
    return known is None or not known.reserved
