# SPDX-License-Identifier: Apache-2.0
"""Which rules matched nothing in the programs that were lowered and compiled in a block?"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from hlotag.errors import TagIgnoredWarning
from hlotag.tagging.rules import Rule
from hlotag.tagging.warning import warn_at

_MOST_SCOPES = 4096


class Report:
    """What the rules of a stage matched since it was turned on.

    Args:
        names: The names of the rules for operations of the program.
        rules: These rules.
        inserted: The rules for collectives that XLA inserts, by name.
        earlier: The names of the rules that matched something in an earlier block, whose programs may be in JAX's caches.
    """

    def __init__(
        self, names: Sequence[str], rules: Sequence[Rule], inserted: Mapping[str, Rule], earlier: AbstractSet[str]
    ) -> None:
        self._unmatched = dict(zip(names, rules, strict=True))
        self._unmatched_inserted = dict(inserted)
        self._earlier = earlier
        self._scopes: dict[str, None] = {}
        self._programs = 0
        self._partitioned = 0

    def note(self, matched: AbstractSet[str]) -> None:
        """Notes the names of the rules that matched an operation of a program."""
        self._programs += 1
        for name in matched:
            self._unmatched.pop(name, None)

    def note_inserted(self, matched: AbstractSet[str]) -> None:
        """Notes the names of the rules that matched a collective that XLA inserted into a program."""
        self._partitioned += 1
        for name in matched:
            self._unmatched_inserted.pop(name, None)

    def note_scope(self, path: str) -> None:
        """Notes a path of scopes, to suggest it."""
        if len(self._scopes) < _MOST_SCOPES:
            self._scopes[path] = None

    def warn(self) -> None:
        """Warns of each rule that matched nothing."""
        self._warn(self._unmatched, "matched no operation of", self._programs)
        self._warn(self._unmatched_inserted, "matched no collective that XLA inserted in", self._partitioned)

    def _warn(self, unmatched: Mapping[str, Rule], what: str, programs: int) -> None:
        if not programs:
            return
        for name, rule in unmatched.items():
            near = difflib.get_close_matches(rule.scope, self._list_scopes(), 1, 0.3) if rule.scope else ()
            nearest = f"; the nearest scope is {near[0]!r}" if near else ""
            where = "the program" if programs == 1 else f"{programs} programs"
            before = ", but one of an earlier block" if name in self._earlier else ""
            file, line = rule.place()
            warn_at(f"hlotag: {name} {what} {where}{before}: {rule.text}{nearest}", TagIgnoredWarning, file, line)

    def _list_scopes(self) -> list[str]:
        """The paths of scopes of programs, and their elements."""
        return [*dict.fromkeys([*self._scopes, *(element for path in self._scopes for element in path.split("/"))])]
