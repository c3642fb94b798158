# SPDX-License-Identifier: Apache-2.0
"""The conditions of `hlotag audit --fail-if`."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from hlotag._text import printable
from hlotag.audits.audit import Audit
from hlotag.errors import HlotagError
from hlotag.results.tags import Tag, TagState, Verdict

# By condition, the verdict that it looks for.
_VERDICTS = {"effect": Verdict.REFUSED, "no-difference": Verdict.SAME}


@dataclass(frozen=True)
class Condition:
    """A condition that makes `hlotag audit` fail.

    Attributes:
        text: The condition as written.
        counted: States of tags, or "attention", "dropped", "effect", "no-difference" or "absent".
        key: A pattern of keys.
        value: A pattern of values.
    """

    text: str
    counted: frozenset[str]
    key: str = "*"
    value: str = "*"

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Reads a condition such as `lost:_scheduling_group_id`. Raises HlotagError if it is malformed."""
        states, colon, tag = text.partition(":")
        key, equals, value = tag.partition("=")
        if not states or (colon and not key) or (equals and not value):
            raise HlotagError(f"--fail-if {text!r}: expected STATES[:KEY[=VALUE]], for example lost:_scheduling_group_id")
        named = [name.strip() for name in states.split(",")]
        known = (*TagState, "attention", "dropped", *_VERDICTS, "absent")
        if unknown := [repr(name) for name in named if name not in known]:
            raise HlotagError(f"--fail-if {text!r}: no such state: {', '.join(unknown)}; there are: {', '.join(known)}")
        return cls(text, frozenset(named), key or "*", value or "*")

    def violations(self, audit: Audit) -> list[str]:
        """One line for each tag and effect for which the condition holds."""
        lines = [str(tag) for tag in audit.tags if self._counts(tag)]
        if "absent" in self.counted and not any(self._matches(tag.key, tag.value) for tag in audit.tags):
            lines.append("no operation has such a tag")
        if "dropped" in self.counted:
            dropped = [(d, key, value) for d in audit.dropped for key, value in d.attrs if self._matches(key, value)]
            lines += [f"{key}={value} at {d.file}:{d.line}" for d, key, value in dropped]
        verdicts = {_VERDICTS[name] for name in self.counted & _VERDICTS.keys()}
        found = [effect for effect in audit.effects if effect.verdict in verdicts and self._matches(effect.key, effect.value)]
        return list(map(printable, [*lines, *map(str, found)]))

    def _counts(self, tag: Tag) -> bool:
        is_counted = tag.state in self.counted or ("attention" in self.counted and tag.needs_attention)
        return is_counted and self._matches(tag.key, tag.value)

    def _matches(self, key: str, value: str) -> bool:
        return fnmatchcase(key, self.key) and fnmatchcase(value, self.value)
