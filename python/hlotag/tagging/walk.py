# SPDX-License-Identifier: Apache-2.0
"""Which tags has each equation of a program? One walk over its jaxpr, when JAX lowers it.

JAX attaches the metadata of an equation's context only to the ops that own the equation's results. The equation's name stack is
in the location of every op that the equation lowers to: helper ops, bodies of loops and branches, calls of cached lowerings. So
JAX lowers a copy of the jaxpr. The context of a tagged equation has no metadata in it, and its name stack a *mark*.

Tags come from contexts (blocks, value tags) and from rules, which read the path to an equation: the name stacks, lines and
functions of its callers and its own. Callers that give a function the same tags share a copy of it. The jaxprs of the trace,
which JAX's caches share, stay as they are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hlotag import _compat
from hlotag.tagging.entries import VALUE, Entries, entries_in, inherit_within
from hlotag.tagging.marks import Row
from hlotag.tagging.matching import Applied, Path, RuleSet
from hlotag.tagging.phases import BACKWARD_RULE, Derivation, Phase, is_turn

# Text in scopes that reads like a mark, a transformation, or the separator of a mark.
_AMBIGUOUS = re.compile(r"[\x01()]|^/")
# The scope of a jitted function.
_CALL = re.compile(r"(p?jit\()(.*)(\))", re.DOTALL)
# Names of scopes that JAX opens itself.
_OF_JAX = frozenset(["checkpoint", "rematted_computation"])


@functools.lru_cache(maxsize=4096)
def escape(scope: str) -> str:
    r"""A scope's text with each ambiguous character written as `\x01%28`; `hlotag-finalize` replaces them."""
    call = _CALL.fullmatch(scope)
    head, text, tail = call.groups() if call else ("", scope, "")
    return head + _AMBIGUOUS.sub(lambda found: f"\x01%{ord(found[0]):02x}", text) + tail


@dataclass(frozen=True, eq=False)
class _Around:
    """The tags of a call or a loop, for the equations in it. `Walk` makes equal ones one object.

    Attributes:
        metadata: The metadata of its context.
        phase: Its phase.
    """

    metadata: Mapping[str, Any]
    phase: Phase


@dataclass(frozen=True, eq=False)
class _Place:
    """What the tags of an equation depend on besides its context. `Walk` makes equal places one object.

    Attributes:
        path: What rules see.
        primal: The operation that the equations there were made for; None if each is its own.
        withheld: Keys that a rule gives to the call or loop around the place, with the rule.
        derivation: How autodiff came to the equations there.
        around: The tags of the calls and loops around the place, innermost first.
    """

    path: Path
    primal: Any
    withheld: tuple[tuple[str, int], ...]
    derivation: Derivation
    around: tuple[_Around, ...]


@dataclass(frozen=True)
class _Decision:
    """What becomes of an equation.

    Attributes:
        mark: Its mark; "" for none.
        context: Its context, without metadata.
        elements: The elements of its name stack.
        inner: The copies of its jaxprs, by the ids of these.
        is_silent: Whether it is a value tag of hlotag's, which JAX must not attach.
    """

    mark: str
    context: Any
    elements: tuple[Any, ...]
    inner: Mapping[int, Any]
    is_silent: bool

    def apply(self, equation: Any) -> Any:
        """The copy of the equation."""
        elements = tuple(each for each in self.elements if each.__class__ is not _compat.jaxprs.Primal)
        if self.mark:
            elements += (_compat.jaxprs.Mark(self.mark),)
        params = equation.params
        if self.inner:
            params = _compat.jaxprs.with_inner(equation, lambda jaxpr: self.inner[id(jaxpr)])
        if self.is_silent:
            params = _compat.tracing.params_of_value_tag({})
        return _compat.jaxprs.replace(equation, self.context, elements, params)


class Walk:
    """Marks the tagged equations of one program.

    Args:
        rules: The rules of the stage.
        blank: Remove tags instead of marking them.

    Attributes:
        table: The rows by mark, in the order of the walk, so that the same program gives the same table in every process.
        has_marks: Whether names have marks.
        has_escapes: Whether a scope had ambiguous characters, which were escaped.
        has_value_tags: Whether the program has JAX's own value tags, set while hlotag was off.
    """

    def __init__(self, *, rules: RuleSet | None = None, blank: bool = False) -> None:
        self.table: list[Row] = []
        self.has_marks = self.has_escapes = self.has_value_tags = False
        self.rules = rules
        self._blank = blank
        self._index: dict[Any, int] = {}
        self._places: dict[Any, _Place] = {}
        self._arounds: dict[Any, _Around] = {}
        self._primals: dict[Any, Any] = {}
        # By jaxpr and place, its copy; by jaxpr and what becomes of its equations, the same.
        self._copies: dict[Any, Any] = {}
        self._shared: dict[Any, Any] = {}
        self._plain: dict[int, Any] = {}  # by context
        self._applied: dict[int, tuple[Applied, ...]] = {}  # by place
        self._ends: dict[Any, _Place] = {}  # by place and name stack, the place of its equations
        self._turns: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # by name stack, the elements that change the phase
        self._marks: dict[Any, str] = {}
        self._kept: list[Any] = []  # objects whose ids are keys

    def rewrite(self, jaxpr: Any) -> Any:
        """A copy of the jaxpr of a program with marks; the same object if no equation has a tag."""
        path = Path()
        if self.rules is not None:
            path = self.rules.enter_function(path, _compat.jaxprs.name_of(jaxpr), "main")
        return self._copy(jaxpr, self._place(path, None, (), Derivation(), ()))

    def _place(self, *fields: Any) -> _Place:
        return self._places.setdefault(fields, _Place(*fields))

    def _copy(self, jaxpr: Any, place: _Place) -> Any:
        key = id(jaxpr), id(place)
        if key not in self._copies:
            self._kept.append(jaxpr)
            self._copies[key] = self._made(jaxpr, place)
        return self._copies[key]

    def _made(self, jaxpr: Any, place: _Place) -> Any:
        equations = _compat.jaxprs.equations_of(jaxpr)
        decisions = [self._decide(equation, place) for equation in equations]
        if not any(decisions):
            return jaxpr
        key = id(jaxpr), tuple(each and (each.mark, tuple(map(id, each.inner.values()))) for each in decisions)
        if key not in self._shared:
            pairs = zip(equations, decisions, strict=True)
            made = [equation if decision is None else decision.apply(equation) for equation, decision in pairs]
            self._shared[key] = _compat.tracing.with_equations(jaxpr, made)
        return self._shared[key]

    def _decide(self, equation: Any, place: _Place) -> _Decision | None:
        """What becomes of an equation; None if it stays."""
        context = equation.ctx
        own = self._end(place, equation)
        mark = self._mark_of(equation, own)
        plain = self._plain_context(context)
        elements = self._elements(equation)
        inner = self._inner(equation, own)
        is_silent = False
        if _compat.jaxprs.is_value_tag(equation):
            is_silent = VALUE in _compat.tracing.entries_of_value_tag(equation.params)
            self.has_value_tags |= not is_silent
        is_same = plain is context and elements is _compat.jaxprs.elements_of(equation)
        if is_same and not mark and not inner and not is_silent:
            return None
        self.has_marks |= bool(mark)
        return _Decision(mark, plain, elements, inner, is_silent)

    def _inner(self, equation: Any, place: _Place) -> dict[int, Any]:
        """The copies of the jaxprs in an equation, by the ids of these; only those that differ."""
        inner = [*_compat.jaxprs.inner_jaxprs(equation)]
        if not inner or _compat.jaxprs.has_kernel(equation):
            return {}
        path, withheld = place.path, ()
        if self.rules is not None:
            name = _compat.jaxprs.function_of(equation)
            if name is not None:
                path = self.rules.enter_function(path, name)
            withheld = self._given_by_rules(equation, place)
        around = place.around
        if metadata := self._metadata_of(equation, place):
            around = (self._around(metadata, place.derivation.phase), *around)
        place = self._place(path, place.primal, withheld, place.derivation, around)
        copies = {id(jaxpr): self._copy(jaxpr, place) for jaxpr in inner}
        return copies if any(copies[id(jaxpr)] is not jaxpr for jaxpr in inner) else {}

    def _given_by_rules(self, equation: Any, place: _Place) -> tuple[tuple[str, int], ...]:
        """The keys that rules, and no tag of the program, give to a call or a loop, with the rules."""
        own = entries_in(_compat.tracing.metadata_of(equation.ctx), Phase.FORWARD)
        given = {
            key: applied.index
            for applied in self._find_applied(place)
            if applied.rule.op is None and (applied.rule.source or applied.rule.unless)
            for entries in applied.entries.values()
            for key in entries
            if key not in own
        }
        return tuple(sorted(given.items()))

    def _mark_of(self, equation: Any, place: _Place) -> str:
        metadata = _compat.tracing.metadata_of(equation.ctx)
        if self._blank or (not metadata and self.rules is None and not place.around):
            return ""
        applied = self._find_applied(place)
        primal, by_op = None, any(each.depends_on_op() for each in applied)
        if by_op and not _compat.jaxprs.is_open(equation.primitive):
            primal = self._unique(place.primal or _compat.jaxprs.primal_of_equation(equation))
        is_primal = primal is not None and primal.primitive is equation.primitive
        key = id(equation.ctx), id(place), id(primal), is_primal
        if key not in self._marks:
            self._kept.append(equation.ctx)
            phase = place.derivation.phase
            row = Row(entries_in(self._metadata_of(equation, place), phase), applied, phase, place.withheld, primal, is_primal)
            self._marks[key] = "".join(f"\x01hlotag#{self._number(each)}\x01" for each in (self._row_around(place), row) if each)
        return self._marks[key]

    def _metadata_of(self, equation: Any, place: _Place) -> Mapping[str, Any]:
        """The metadata of an equation's context, as that of the equations around it says."""
        metadata = _compat.tracing.metadata_of(equation.ctx)
        for around in place.around:
            metadata = inherit_within(metadata, around.metadata)
        return metadata

    def _row_around(self, place: _Place) -> Row | None:
        """The tags of the calls and loops around a place, if what autodiff derives in one has other entries than itself."""
        phase = place.derivation.phase
        if phase in (Phase.FORWARD, Phase.CUSTOM):
            return None
        tags = [(entries_in(each.metadata, phase), entries_in(each.metadata, each.phase)) for each in place.around]
        if all(here == its_own for here, its_own in tags):
            return None
        entries: Entries = {}
        for here, _ in tags:
            entries = here | entries
        return Row(entries)

    def _around(self, metadata: Mapping[str, Any], phase: Phase) -> _Around:
        return self._arounds.setdefault((frozenset(metadata.items()), phase), _Around(metadata, phase))

    def _find_applied(self, place: _Place) -> tuple[Applied, ...]:
        if self.rules is None:
            return ()
        if id(place) not in self._applied:
            self._applied[id(place)] = self.rules.find_applied(place.path)
        return self._applied[id(place)]

    def _number(self, row: Row) -> int:
        index = self._index.setdefault(row.key(), len(self.table))
        if index == len(self.table):
            self.table.append(row)
        return index

    def _unique(self, primal: Any) -> Any:
        """One object for equal operations."""
        self._kept.append(primal)
        return primal if primal.key is None else self._primals.setdefault(primal.key, primal)

    def _plain_context(self, context: Any) -> Any:
        if not context.xla_metadata:
            return context
        if id(context) not in self._plain:
            self._kept.append(context)
            self._plain[id(context)] = _compat.tracing.with_metadata(context, {})
        return self._plain[id(context)]

    def _elements(self, equation: Any) -> tuple[Any, ...]:
        """The elements of an equation's name stack as they are lowered; the same object if nothing changes."""
        elements = _compat.jaxprs.elements_of(equation)
        if self._blank:
            return elements
        lowered = tuple(map(self._element, elements))
        return lowered if lowered != elements else elements

    def _element(self, element: Any) -> Any:
        scope = _compat.jaxprs.scope_of(element)
        if scope is not None:
            if (text := escape(scope)) == scope:
                return element
            self.has_escapes = True
            return _compat.jaxprs.Scope(text)
        return element

    def _end(self, place: _Place, equation: Any) -> _Place:
        """The place of an equation in a jaxpr that begins at a place."""
        elements = _compat.jaxprs.elements_of(equation)
        turns = self._turns.get(elements)
        if turns is None:
            turns = self._turns[elements] = tuple(filter(is_turn, elements))
        if self.rules is None:
            if not turns:
                return place
            key: Any = id(place), turns
            if key not in self._ends:
                derivation = place.derivation.enter(turns)
                self._ends[key] = self._place(place.path, None, place.withheld, derivation, place.around)
            return self._ends[key]
        primal = place.primal
        if self.rules.has_ops and primal is None:
            primal = next((each for each in elements if each.__class__ is _compat.jaxprs.Primal), None)
        names = tuple(each for each in elements if each is BACKWARD_RULE or _compat.jaxprs.scope_of(each) is not None)
        frames = tuple(_compat.jaxprs.frames_of(equation)) if self.rules.has_frames else ()
        key = id(place), id(primal), names, turns, frames
        if key not in self._ends:
            self._kept.append(primal)
            path = self.rules.enter_line(place.path, frames)
            for name in names:
                path = self._enter(path, name)
            if names:
                self.rules.note_scope(_compat.jaxprs.scope_of(each) or "" for each in names)
            self._ends[key] = self._place(path, primal, place.withheld, place.derivation.enter(turns), place.around)
        return self._ends[key]

    def _enter(self, path: Path, element: Any) -> Path:
        assert self.rules is not None
        if element is BACKWARD_RULE:
            return self.rules.enter_backward_rule(path)
        name = _compat.jaxprs.scope_of(element) or ""
        return path if name in _OF_JAX else self.rules.extend_scope(path, name)
