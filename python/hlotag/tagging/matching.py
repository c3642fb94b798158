# SPDX-License-Identifier: Apache-2.0
"""Which rules match an equation, by the path that leads to it.

A path begins at a program's outermost function. It goes through the name stacks and lines of calls and loops to that of the
equation. A `Path` holds how far the patterns of rules match it, so two callers of a function are told apart only if a rule does.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hlotag._core import ScopePattern, TextPattern
from hlotag._util.forks import free_in_children
from hlotag.tagging.matched import Report
from hlotag.tagging.phases import Phase
from hlotag.tagging.rules import Bindings, Rule, bind_names

# A frame of user code: file, line, column.
Frame = tuple[str, int, int]
# Where a pattern matched, counted from the start of the path, and the text of its names.
Met = tuple[int, Bindings]


@dataclass(frozen=True, slots=True)
class Path:
    """What the rules see of the path to an equation.

    Attributes:
        states: By pattern of a scope, the state of its automaton; only patterns that have begun.
        met: By pattern of a scope, function or caller, its deepest match.
        source: By pattern of a source, its match with the innermost line.
        scopes: The number of scopes.
        frames: The number of lines.
        calls: The number of functions.
        settled: The rules that matched before a backward rule of the user's was called.
    """

    states: tuple[tuple[int, int], ...] = ()
    met: tuple[tuple[int, Met], ...] = ()
    source: tuple[tuple[int, Met], ...] = ()
    scopes: int = 0
    frames: int = 0
    calls: int = 0
    settled: frozenset[int] = frozenset()

    def source_and_met(self) -> dict[int, Met]:
        """All matches, by pattern."""
        return dict(self.met) | dict(self.source)


@dataclass(frozen=True, eq=False)
class Applied:
    """What a rule gives to the operations of an equation.

    Attributes:
        index: The place of the rule, from 0.
        bindings: The texts of the names in its patterns.
        is_settled: Whether it matched before a backward rule of the user's was called.
        depth: How deep it matched. Among rules that give a key the deepest wins, then the last.
        rule: The rule.
        unless: Patterns of operations that are excluded.
        entries: By phase; None: the key is taken away.
    """

    index: int
    bindings: Bindings
    is_settled: bool
    depth: tuple[int, ...]
    rule: Rule
    unless: tuple[str, ...]
    entries: Mapping[Phase, Mapping[str, str | None]]

    def depends_on_op(self) -> bool:
        """Whether the rule selects among the operations of an equation."""
        return self.rule.op is not None or bool(self.unless)

    def key(self) -> tuple[Any, ...]:
        """What the same results of this rule have in common, wherever it matched."""
        return self.index, self.bindings, self.is_settled, self.unless


@dataclass(frozen=True)
class _Pattern:
    """A pattern of a rule, or of a clause of its `unless`."""

    rule: int
    clause: int | None
    field: str
    text: str


class RuleSet:
    """The rules of a stage, prepared for matching. Equal rules share one, because JAX's caches compare it by identity.

    Args:
        rules: The rules, in the order in which later ones win.

    Attributes:
        rules: Those for the operations of the program.
        names: Their names in messages.
        inserted: Those for collectives that XLA inserts, by name.
        has_ops: Whether a rule has patterns of operations.
        has_frames: Whether a rule has patterns of lines.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        named = [(rule, rule.name(index)) for index, rule in enumerate(rules)]
        self.inserted = {name: rule for rule, name in named if rule.inserted}
        self.rules = rules = tuple(rule for rule, _ in named if not rule.inserted)
        self.names = tuple(name for rule, name in named if not rule.inserted)
        self._reports: list[Report] = []
        self._matched = set[str]()  # The names of the rules that ever matched.
        self._patterns = tuple(_patterns_of(rules))
        self._scopes = {n: ScopePattern(each.text) for n, each in self._of_field("scope")}
        self._texts = {n: TextPattern(each.text) for n, each in enumerate(self._patterns)}
        self.has_ops = any(self._of_field("op"))
        self.has_frames = any(self._of_field("source")) or any(self._of_field("caller"))
        # By rule: the patterns of its fields and of each clause, those of operations apart.
        self._needs = [self._of_clause(index, None) for index in range(len(rules))]
        self._clauses = [
            [(self._of_clause(index, number), clause.get("op")) for number, clause in enumerate(rule.clauses())]
            for index, rule in enumerate(rules)
        ]
        self._applied: dict[Path, tuple[Applied, ...]] = {}
        self._by_frame: dict[tuple[str, Frame], tuple[tuple[int, Bindings], ...]] = {}

    def __repr__(self) -> str:
        """The rules, as their text."""
        return f"[{', '.join(rule.text for rule in (*self.rules, *self.inserted.values()))}]"

    def _of_field(self, field: str) -> Iterator[tuple[int, _Pattern]]:
        return ((number, each) for number, each in enumerate(self._patterns) if each.field == field)

    def _of_clause(self, rule: int, clause: int | None) -> frozenset[int]:
        return frozenset(
            n for n, each in enumerate(self._patterns) if (each.rule, each.clause) == (rule, clause) and each.field != "op"
        )

    def extend_scope(self, path: Path, scope: str) -> Path:
        """The path within a scope."""
        before, met, states = dict(path.states), dict(path.met), {}
        depth = path.scopes + 1
        for number, pattern in self._scopes.items():
            states[number], bindings = pattern.advance(before.get(number, 0), scope)
            if bindings is not None:
                met[number] = depth, bindings
        after = tuple((number, state) for number, state in states.items() if state)
        return dataclasses.replace(path, states=after, met=tuple(sorted(met.items())), scopes=depth)

    def enter_function(self, path: Path, *names: str) -> Path:
        """The path within a jitted function."""
        met, depth = dict(path.met), path.calls + 1
        for number, _ in self._of_field("function"):
            if found := [bindings for name in names if (bindings := self._texts[number].match(name)) is not None]:
                met[number] = depth, found[0]
        return dataclasses.replace(path, met=tuple(sorted(met.items())), calls=depth)

    def enter_line(self, path: Path, frames: Iterable[Frame]) -> Path:
        """The path with the lines of an equation, innermost first. An equation without one has those of its caller."""
        frames = tuple(frames)
        if not frames:
            return path
        met = dict(path.met)
        for depth, frame in enumerate(reversed(frames), path.frames + 1):
            met |= {number: (depth, bindings) for number, bindings in self._at_frame("caller", frame)}
        source = tuple(
            (number, (path.frames + len(frames), bindings)) for number, bindings in self._at_frame("source", frames[0])
        )
        return dataclasses.replace(path, met=tuple(sorted(met.items())), source=source, frames=path.frames + len(frames))

    def _at_frame(self, field: str, frame: Frame) -> tuple[tuple[int, Bindings], ...]:
        """The patterns of a field that stand for a line, with the text of their names."""
        if (field, frame) not in self._by_frame:
            found = ((number, self._texts[number].match_source(*frame)) for number, _ in self._of_field(field))
            self._by_frame[field, frame] = tuple((number, bindings) for number, bindings in found if bindings is not None)
        return self._by_frame[field, frame]

    def enter_backward_rule(self, path: Path) -> Path:
        """The path within a backward rule of the user's: its operations are derived from those that rules matched so far."""
        met = path.source_and_met().keys()
        settled = path.settled | {index for index, needs in enumerate(self._needs) if needs and needs <= met}
        return dataclasses.replace(path, settled=settled)

    def find_applied(self, path: Path) -> tuple[Applied, ...]:
        """What the rules give to an equation at the end of a path, in the order in which later ones win."""
        if path not in self._applied:
            met = path.source_and_met()
            found = (self._apply(index, met, index in path.settled) for index in range(len(self.rules)))
            self._applied[path] = tuple(sorted((each for each in found if each is not None), key=lambda each: each.depth))
        return self._applied[path]

    def _apply(self, index: int, met: Mapping[int, Met], is_settled: bool) -> Applied | None:
        rule, needs = self.rules[index], self._needs[index]
        excluding = [op for patterns, op in self._clauses[index] if patterns <= met.keys()]
        if not needs <= met.keys() or None in excluding:
            return None
        name = self.names[index]
        bindings = tuple(each for number in sorted(needs) for each in met[number][1])
        forward, derived, rematted = (bind_names(name, entries, bindings) for entries in rule.entries())
        custom = {} if rule.phase == "forward" else bind_names(name, rule.texts(), bindings)
        if is_settled:
            forward = custom = derived
        entries = {Phase.FORWARD: forward, Phase.CUSTOM: custom, Phase.DERIVED: derived, Phase.REMATTED: rematted}
        depths = {self._patterns[number].field: met[number][0] for number in needs}
        depth = tuple(depths.get(field, 0) for field in ("source", "scope", "caller", "function"))
        excluded = tuple(op for op in excluding if op is not None)
        return Applied(index, bindings, is_settled, depth, rule, excluded, entries)

    def open_report(self) -> Report:
        """Begins a report, which notes what matches until it is closed. Several may be open, in any thread."""
        report = Report(self.names, self.rules, self.inserted, frozenset(self._matched))
        self._reports.append(report)
        return report

    def close_report(self, report: Report) -> None:
        """Ends a report, and warns of each rule that matched nothing."""
        self._reports.remove(report)
        report.warn()

    def note(self, remarks: Iterable[str]) -> None:
        """Notes which rules matched an operation of a program, by what `hlotag-resolve` said: `rule 2 matched nothing: ...`."""
        said = tuple(remarks)
        matched = {name for name in self.names if not any(remark.startswith(f"{name} matched nothing") for remark in said)}
        self._matched |= matched
        for report in tuple(self._reports):
            report.note(matched)

    def note_inserted(self, matched: Iterable[str]) -> None:
        """Notes the names of the rules that matched a collective that XLA inserted into a program."""
        names = set(matched)
        self._matched |= names
        for report in tuple(self._reports):
            report.note_inserted(names)

    def note_scope(self, names: Iterable[str]) -> None:
        """Notes a path of scopes of a program, for messages."""
        for report in tuple(self._reports):
            report.note_scope("/".join(names))


def _patterns_of(rules: Iterable[Rule]) -> Iterator[_Pattern]:
    for index, rule in enumerate(rules):
        for clause, patterns in ((None, rule.patterns()), *enumerate(rule.clauses())):
            yield from (_Pattern(index, clause, field, text) for field, text in patterns.items())


_sets: weakref.WeakValueDictionary[tuple[str, ...], RuleSet] = weakref.WeakValueDictionary()
_lock = free_in_children(threading.Lock())


def rule_set(rules: tuple[Rule, ...]) -> RuleSet | None:
    """Returns one object for equal rules of one place; None if there are none."""
    if not rules:
        return None
    with _lock:
        return _sets.setdefault(tuple(rule.as_attribute() for rule in rules), RuleSet(rules))
