# SPDX-License-Identifier: Apache-2.0
"""Rules while JAX traces: a rule is a block that hlotag opens where its patterns match.

What matches is metadata of the thread, as a block's entries are. JAX makes it part of the context of each equation, which it
carries through autodiff, batching and rematerialization, and part of the keys of its caches: a function that two scopes call is
traced once for each set of rules that can still tell them apart.

- `scope` is matched when a name stack is extended, `function` when a function is jitted.
- `source` is matched when an equation is recorded. A jitted function is traced under the rules of the line that calls it.
- `op` is matched when the program is lowered. An operation that a rule with an `op` may match is bound under its *primal*, which
  JAX hands on: an equation whose primal is another one was derived from that one.
"""

from __future__ import annotations

import difflib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hlotag import _compat
from hlotag._util.forks import free_in_children
from hlotag.errors import TagIgnored
from hlotag.tagging.rules import PATTERNS, Rule, bind_names
from hlotag.tagging.scope_patterns import Bindings, ScopePattern, Thread, matches, matches_source
from hlotag.tagging.warning import warn_at

# Entries of an equation context, besides those of `marks`. `RULE + index` has a `Match`, PRIMAL a `Primal`, SCOPES a `Progress`.
# OF_LOWERING is in equations that JAX traces while it lowers another one, to which they belong.
RULE = "hlotag.rule."
PRIMAL = "hlotag.primal"
SCOPES = "hlotag.scopes"
OF_LOWERING = "hlotag.lowering"

T = TypeVar("T")


class OwnValue:
    """A value that only hlotag puts into equation contexts. It equals no value of a user's.

    Without hlotag's patches, JAX lowers an entry with `str(value)`: to text that says nothing and is the same in every process.
    """

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, eq=False)
class Primal(OwnValue):
    """The equation of the program that equations were made for.

    Attributes:
        primitive: The equation's primitive.
        params: Its parameters.
        avals: The types of its operands.
        within: By a thread's metadata, the metadata under which the operation is bound.
    """

    primitive: Any
    params: Mapping[str, Any]
    avals: tuple[Any, ...]
    within: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Progress(OwnValue):
    """How far the scopes of this path match the patterns of rules. `RuleSet` makes equal ones one object.

    Attributes:
        threads: By pattern, as numbered by `RuleSet`; only patterns that have any.
    """

    threads: tuple[tuple[int, tuple[Thread, ...]], ...]


@dataclass(frozen=True, eq=False)
class Match(OwnValue):
    """The patterns of one rule that match. `RuleSet` makes equal ones one object.

    Attributes:
        met: The fields of the rule that match, `op` apart.
        unless: The same for each clause of `unless`.
        bindings: The text of the names in the scope's pattern.
        is_settled: Whether the match is complete, and a backward rule of the user's was called since.
    """

    met: frozenset[str]
    unless: tuple[frozenset[str], ...]
    bindings: Bindings
    is_settled: bool


@dataclass(frozen=True, eq=False)
class Applied:
    """What a rule gives to the operations of an equation.

    Attributes:
        index: The place of the rule, from 0.
        op: The pattern of operations, or None for all.
        unless: Patterns of operations that are excluded.
        forward: Entries of forward operations.
        custom: Entries of operations that a backward rule of the user's binds.
        derived: Entries of derived operations; None: the key is taken away.
        rematted: Entries of recomputed operations.
    """

    index: int
    op: str | None
    unless: tuple[str, ...]
    forward: Mapping[str, str | None]
    custom: Mapping[str, str | None]
    derived: Mapping[str, str | None]
    rematted: Mapping[str, str | None]

    def depends_on_op(self) -> bool:
        """Whether the rule selects among the operations of an equation."""
        return self.op is not None or bool(self.unless)


class RuleSet:
    """The rules of a stage, prepared for matching.

    Args:
        rules: The rules, in the order in which later ones win.

    Attributes:
        rules: Those for the operations of the program.
        names: Their names in messages.
        inserted: Those for collectives that XLA inserts, by name.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        named = [(rule, rule.name(index)) for index, rule in enumerate(rules)]
        self.inserted = {name: rule for rule, name in named if rule.inserted}
        self.rules = rules = tuple(rule for rule, _ in named if not rule.inserted)
        self.names = tuple(name for rule, name in named if not rule.inserted)
        self.seen: dict[str, None] = {}
        """Paths of scopes that were entered, for messages; at most a few thousand."""
        self._programs = 0
        self._partitioned = 0
        self._unmatched = dict(zip(self.names, rules, strict=True))
        self._unmatched_inserted = dict(self.inserted)
        self._clauses = [rule.clauses() for rule in rules]
        self._needs = [frozenset(name for name in PATTERNS[1:] if getattr(rule, name) is not None) for rule in rules]
        # By pattern: the rule, the clause of `unless` or None, and the automaton.
        self._scopes = [
            (index, clause, ScopePattern(pattern))
            for index, rule in enumerate(rules)
            for clause, pattern in self._patterns(index, "scope")
        ]
        self.has_scopes = bool(self._scopes)
        self.has_calls = any(any(self._patterns(index, name)) for index in range(len(rules)) for name in ("function", "source"))
        self.has_sources = any(any(self._patterns(index, "source")) for index in range(len(rules)))
        self._with_op = [i for i, rule in enumerate(rules) if rule.op is not None or any("op" in c for c in self._clauses[i])]
        self.has_ops = bool(self._with_op)
        self._known: dict[Any, Any] = {}
        self._objects: dict[Any, Any] = {}
        self._by_place: dict[Any, tuple[tuple[int, int | None], ...]] = {}
        self._applied: dict[Any, Applied | None] = {}

    def note(self, remarks: Iterable[str]) -> None:
        """Notes which rules matched an operation of a program, by what `hlotag-resolve` said: `rule 2 matched nothing: ...`."""
        self._programs += 1
        remarks = tuple(remarks)
        for name in tuple(self._unmatched):
            if not any(remark.startswith(f"{name} matched nothing") for remark in remarks):
                self._unmatched.pop(name, None)

    def note_inserted(self, matched: Iterable[str]) -> None:
        """Notes the names of the rules that matched a collective that XLA inserted into a program."""
        self._partitioned += 1
        for name in matched:
            self._unmatched_inserted.pop(name, None)

    def report(self) -> None:
        """Warns, once, of each rule that matched nothing in the programs that were lowered and compiled so far."""
        self._report(self._unmatched, "matched no operation of", self._programs)
        self._report(self._unmatched_inserted, "matched no collective that XLA inserted in", self._partitioned)

    def _report(self, unmatched: dict[str, Rule], what: str, programs: int) -> None:
        if not programs:
            return
        for name in tuple(unmatched):
            if (rule := unmatched.pop(name, None)) is None:
                continue
            near = difflib.get_close_matches(rule.scope, self._scopes_seen(), 1, 0.3) if rule.scope else ()
            nearest = f"; the nearest scope is {near[0]!r}" if near else ""
            where = "the program" if programs == 1 else f"{programs} programs"
            text = f"hlotag: {name} {what} {where}: {rule.text}{nearest}"
            file, line = rule.place()
            warn_at(text, TagIgnored, file, line)

    def _scopes_seen(self) -> list[str]:
        """The paths of scopes that were entered, and their elements."""
        paths = tuple(self.seen)
        return [*dict.fromkeys([*paths, *(element for path in paths for element in path.split("/"))])]

    def _patterns(self, index: int, name: str) -> Iterator[tuple[int | None, str]]:
        """The patterns of a rule for one field: (None or the clause of `unless`, pattern)."""
        if (pattern := getattr(self.rules[index], name)) is not None:
            yield None, pattern
        for number, clause in enumerate(self._clauses[index]):
            if name in clause:
                yield number, clause[name]

    def extend_scope(self, ambient: Any, scope: str) -> Any:
        """The thread's metadata within a scope. `ambient` is that outside, as `_compat.recording.ambient` has it."""
        return self._remember((ambient, scope), lambda: self._metadata_within(ambient, scope))

    def _remember(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._known:
            if len(self._known) > 4096:
                self._known.clear()
            self._known[key] = compute()
        return self._known[key]

    def _metadata_within(self, ambient: Any, scope: str) -> Any:
        metadata = _compat.recording.metadata_in(ambient)
        before = dict(metadata[SCOPES].threads) if SCOPES in metadata else {}
        threads: list[tuple[int, tuple[Thread, ...]]] = []
        found: list[tuple[int, int | None, Bindings]] = []
        for number, (index, clause, pattern) in enumerate(self._scopes):
            if not pattern.has_captures and self._has(metadata, index, clause, "scope"):
                continue
            after, bindings = pattern.advance(before.get(number, ()), scope)
            if bindings is not None:
                found.append((index, clause, bindings))
            if after and (bindings is None or pattern.has_captures):
                threads.append((number, after))
        changed = dict(metadata)
        changed.pop(SCOPES, None)
        if threads:
            changed[SCOPES] = self._one(Progress, tuple(threads))
        for index, clause, bindings in found:
            self._meet(changed, index, clause, "scope", bindings)
        return ambient if changed == metadata else _compat.recording.as_ambient(changed)

    def enter_call(self, ambient: Any, name: str, is_outermost: bool) -> Any:
        """The thread's metadata within a jitted function. The outermost one is a program's `main`, too."""
        met = self._at_source(_compat.recording.find_calling_place()) if self.has_sources else ()
        names = (name, "main") if is_outermost else (name,)
        of_function = [
            (index, clause)
            for index in range(len(self.rules))
            for clause, pattern in self._patterns(index, "function")
            if any(matches(pattern, each) for each in names)
        ]
        metadata = _compat.recording.metadata_in(ambient)
        changed = dict(metadata)
        for index, clause in met:
            self._meet(changed, index, clause, "source")
        for index, clause in of_function:
            self._meet(changed, index, clause, "function")
        return ambient if changed == metadata else _compat.recording.as_ambient(changed)

    def _at_source(self, place: Any) -> tuple[tuple[int, int | None], ...]:
        """The rules and clauses whose pattern of a source is the place, a code object and the offset of an instruction."""
        if place is None:
            return ()
        if place not in self._by_place:
            file, line, column = _compat.recording.line_of(place)
            self._by_place[place] = tuple(
                (index, clause)
                for index in range(len(self.rules))
                for clause, pattern in self._patterns(index, "source")
                if matches_source(pattern, file, line, column)
            )
        return self._by_place[place]

    def recording(self, ambient: Any, traceback: Any) -> Any:
        """The metadata of an equation, by that of the thread and the traceback of the equation's source."""
        found = self._at_source(_compat.recording.place_of(traceback))
        return self._remember((ambient, found), lambda: self._mark_met(ambient, found)) if found else ambient

    def _mark_met(self, ambient: Any, found: tuple[tuple[int, int | None], ...]) -> Any:
        metadata = _compat.recording.metadata_in(ambient)
        changed = dict(metadata)
        for index, clause in found:
            if not self._has(changed, index, clause, "source"):
                self._meet(changed, index, clause, "source")
        return ambient if changed == metadata else _compat.recording.as_ambient(changed)

    def enter_bind(self, ambient: Any, primitive: Any, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """The metadata under which an operation is bound: with its primal, unless there is one or no rule needs it."""
        metadata = _compat.recording.metadata_in(ambient)
        if PRIMAL in metadata or not self._remember(ambient, lambda: self.needs_primal(metadata)):
            return ambient
        own = primal_of(primitive, _compat.recording.avals_of(args), params)
        if own is None:
            return ambient
        if ambient not in own.within:
            own.within[ambient] = _compat.recording.as_ambient({**metadata, PRIMAL: own})
        return own.within[ambient]

    def needs_primal(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a rule with an `op` may match an operation that is bound under this metadata."""
        for index in self._with_op:
            match: Match | None = metadata.get(f"{RULE}{index}")
            if self._needs[index] - {"source"} <= (match.met if match is not None else frozenset()):
                return True
        return False

    def _one(self, kind: type[T], *fields: Any) -> T:
        """One object for equal values: JAX compares metadata often, and compares identical objects fast."""
        return self._objects.setdefault((kind, *fields), kind(*fields))

    def _nothing(self, index: int) -> Match:
        return self._one(Match, frozenset(), (frozenset(),) * len(self._clauses[index]), (), False)

    def _has(self, metadata: Mapping[str, Any], index: int, clause: int | None, name: str) -> bool:
        match: Match | None = metadata.get(f"{RULE}{index}")
        return match is not None and name in (match.met if clause is None else match.unless[clause])

    def _meet(
        self, metadata: dict[str, Any], index: int, clause: int | None, name: str, bindings: Bindings | None = None
    ) -> None:
        """Notes in `metadata` that a pattern of a rule matches."""
        match = metadata.get(f"{RULE}{index}") or self._nothing(index)
        met, unless = match.met, list(match.unless)
        if clause is None:
            met |= {name}
        else:
            unless[clause] |= {name}
        bound = match.bindings if clause is not None or bindings is None else bindings
        metadata[f"{RULE}{index}"] = self._one(Match, met, tuple(unless), bound, match.is_settled)

    def settle(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """The metadata within a backward rule of the user's: its operations are derived from those that rules matched so far."""
        settled = dict(metadata)
        for index, needs in enumerate(self._needs):
            match: Match | None = metadata.get(f"{RULE}{index}")
            if match is not None and match.met == needs:
                settled[f"{RULE}{index}"] = self._one(Match, match.met, match.unless, match.bindings, True)
        return settled

    def find_applied(self, metadata: Mapping[str, Any]) -> tuple[Applied, ...]:
        """What the rules give to the operations of an equation with this metadata."""
        if OF_LOWERING in metadata:
            return ()
        found = []
        for index in range(len(self.rules)):
            match: Match = metadata.get(f"{RULE}{index}") or self._nothing(index)
            key = index, match
            if key not in self._applied:
                self._applied[key] = self._apply(index, match)
            if (applied := self._applied[key]) is not None:
                found.append(applied)
        return tuple(found)

    def _apply(self, index: int, match: Match) -> Applied | None:
        if match.met != self._needs[index]:
            return None
        met = [
            clause for clause, names in zip(self._clauses[index], match.unless, strict=True) if clause.keys() - {"op"} == names
        ]
        if any("op" not in clause for clause in met):
            return None
        rule = self.rules[index]
        name = self.names[index]
        forward, derived, rematted = (bind_names(name, entries, match.bindings) for entries in rule.entries())
        custom = {} if rule.phase == "forward" else bind_names(name, rule.texts(), match.bindings)
        if match.is_settled:
            forward = custom = derived
        return Applied(index, rule.op, tuple(clause["op"] for clause in met), forward, custom, derived, rematted)


_sets: weakref.WeakValueDictionary[tuple[str, ...], RuleSet] = weakref.WeakValueDictionary()
_lock = free_in_children(threading.Lock())


def rule_set(rules: tuple[Rule, ...]) -> RuleSet | None:
    """Returns one object for equal rules of one place; None if there are none."""
    if not rules:
        return None
    with _lock:
        return _sets.setdefault(tuple(rule.as_attribute() for rule in rules), RuleSet(rules))


_primals: weakref.WeakValueDictionary[Any, Primal] = weakref.WeakValueDictionary()


def primal_of(primitive: Any, avals: Iterable[Any], params: Mapping[str, Any]) -> Primal | None:
    """Returns one object for equal operations, so that equal contexts are equal.

    None if equations within one are the program's.
    """
    if _compat.recording.is_open(primitive):
        return None
    avals = tuple(avals)
    try:
        key = primitive, tuple(params.items()), avals
        known = _primals.get(key)
        return known or _primals.setdefault(key, Primal(primitive, params, avals))
    except TypeError:  # A parameter has no hash.
        return Primal(primitive, params, avals)
