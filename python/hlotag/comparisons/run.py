# SPDX-License-Identifier: Apache-2.0
"""`compare`: variants of a program are compiled, checked, and run in turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from hlotag._util.arguments import check_flag, check_keywords, show
from hlotag._util.progress import step
from hlotag.comparisons.amounts import compare_amounts, groupings_of, list_worse, order_of_row
from hlotag.comparisons.comparison import Comparison
from hlotag.comparisons.launches import confirm
from hlotag.comparisons.saved import compare_saved
from hlotag.comparisons.subjects import Here, Prepared, Subject, VariantError
from hlotag.comparisons.timing import Place
from hlotag.comparisons.turns import Times, Turns
from hlotag.comparisons.variants import Variant, make_variant
from hlotag.errors import ArgumentError, HlotagError
from hlotag.profiles.record import notes_of
from hlotag.results.compared import TIME, Difference, Outcome
from hlotag.results.grouping import Grouping

# How many variants run in turns with the first one: all are in memory.
_TOGETHER = 4
VISIBLE, SECONDS = 0.2, 60.0
# Fresh processes confirm what is slower or faster if the first variant was compiled within these seconds.
_READY = 30.0
_UNCONFIRMED = (
    "No fresh processes confirmed what is slower or faster, because compiling took more than 30 s. On a busy CPU, equal programs "
    "in separate processes can differ by more than the margins say."
)
_NOT_RUN = "The arguments are shapes, so nothing ran: there are no times, and results are not compared."


def compare(
    variants: Mapping[str, Any],
    fun: Callable[..., Any] | None = None,
    /,
    *args: Any,
    by: Grouping | None = None,
    visible: float = VISIBLE,
    seconds: float = SECONDS,
    effects: bool = True,
    kwargs: Mapping[str, Any] | None = None,
) -> Comparison:
    """Says whether tags help: compiles variants of a program, checks their results, and runs them in turns.

    Each variant is compared with the first one: what it computes, exchanges and holds in memory, which is counted, and how long
    it takes. Rounds go on until a growth of `visible` would be noticed in every row that has 5% of a step, or for `seconds`; a
    row of which it could have gone unnoticed is undecided. A stage is active for all variants, that of `hlotag.enable()` unless
    there is another one.

    All variants run in this process, which ends if XLA's compiler crashes. `hlotag compare` runs each in a process of its own.

    Args:
        variants: By name, what each variant changes: None for nothing; a `Rule`, rules, or the path of their file; a function; a
            `hlotag.comparisons.Variant`, which combines these with options of XLA's; or an `Audit` or `Profile` that was made
            before, which are compared without running.
        fun: The function of variants that name none, jitted or not.
        *args: Its arguments. With `jax.ShapeDtypeStruct`s, also for devices that are not there, programs are compiled and do not
            run.
        by: What rows are grouped by, as for `hlotag.profile`. By default, each key that both programs have, or "scope" if they
            have none in common.
        visible: The growth to look for: 0.2 for 20%.
        seconds: Limit of the time that rounds take, for the first variant and up to four others. One round is run at least.
        effects: Whether to compile each variant without its tags, too, and to say what these changed.
        kwargs: The function's keyword arguments: `kwargs={"training": True}`.

    Returns:
        The comparison.

    Raises:
        ArgumentError: There are fewer than two variants, or one is something else; `by` names a key that no operation has.
        HlotagError: The first variant cannot be compiled or run.

    Examples:
        >>> def f(x):
        ...     return jax.named_scope("mlp")(lambda x: jnp.tanh(x @ x))(x)
        >>> rule = hlotag.Rule({"layer": "1"}, scope="mlp")
        >>> found = hlotag.compare({"none": None, "layers": rule}, f, jnp.ones((64, 64)), seconds=0.1)
        >>> found["layers"].results
        'equal'
    """
    check_flag("effects=", effects)
    check_numbers(visible, seconds)
    keywords = check_keywords(kwargs)
    if not isinstance(variants, Mapping) or not all(isinstance(name, str) for name in variants):
        raise ArgumentError(f"variants must be a dictionary with what each changes, by name, got {show(variants)}")
    made = {name: make_variant(name, given) for name, given in variants.items()}
    if len(made) < 2:
        raise ArgumentError(
            f"a comparison needs two variants or more, got {len(made)}; the first one is what others are compared with"
        )
    saved = {name: each for name, each in made.items() if not isinstance(each, Variant)}
    if saved:
        if left := [name for name in made if name not in saved]:
            raise ArgumentError(
                f"variant {left[0]!r} would run, and {next(iter(saved))!r} has run; audits and profiles are compared alone"
            )
        return compare_saved(saved, by, visible)
    subjects = []
    for name, variant in made.items():
        if isinstance(variant, Variant):
            if fun is None and variant.fun is None:
                raise ArgumentError(f"variant {name!r} has no function: give one to hlotag.compare")
            subjects.append(Here(name, variant, fun, args, keywords))
    *_, found = compare_subjects(subjects, by=by, visible=visible, seconds=seconds, effects=effects)
    return found


def check_numbers(visible: float, seconds: float) -> None:
    """Raises ArgumentError unless there can be such a growth and such a time."""
    if not isinstance(visible, Real) or not 0 < visible < 10:
        raise ArgumentError(f"visible={visible!r}: give the growth to look for, 0.2 for 20%")
    if not isinstance(seconds, Real) or not seconds >= 0:
        raise ArgumentError(f"seconds={seconds!r}: give the limit of the time that rounds take, 0 or more")


def compare_subjects(
    subjects: Sequence[Subject],
    *,
    by: Grouping | None,
    visible: float,
    seconds: float,
    effects: bool,
    known: Mapping[str, Outcome] | None = None,
) -> Iterator[Comparison]:
    """Compares variants with the first one, four at a time. Yields the comparison as far as it is, after each four.

    `known` are outcomes of earlier runs, by name. Raises HlotagError if the first variant cannot be compiled or run.
    """
    base, *others = subjects
    known = known or {}
    left = [subject for subject in others if subject.name not in known]
    with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
        comparing = _Comparing(base, Path(folder) / "results.npz", by, visible, seconds, effects=effects)
        comparing.outcomes |= known
        try:
            comparing.prepare()
            for start in range(0, max(1, len(left)), _TOGETHER):
                comparing.run(left[start : start + _TOGETHER])
                yield comparing.result([each.name for each in others])
        except VariantError as error:
            raise HlotagError(f"{base.name}, the first variant: {error}") from error.__cause__
        finally:
            base.close()


class _Comparing:
    """The comparison of variants with the first one, as far as it is.

    Attributes:
        outcomes: The outcomes so far, by name.
    """

    def __init__(
        self, base: Subject, results: Path, by: Grouping | None, visible: float, seconds: float, *, effects: bool
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self._base, self._results, self._by = base, results, by
        self._visible, self._limit, self._effects = visible, seconds, effects
        self._rounds, self._seconds = 0, 0.0
        self._first: Prepared | None = None
        self._can_confirm = False

    def prepare(self) -> None:
        """Compiles the first variant. Raises VariantError."""
        start = time.monotonic()
        with step(f"compiling {self._base.name}"):
            self._first = self._base.prepare(self._results, effects=self._effects)
        self._can_confirm = self._base.has_own_process and time.monotonic() - start <= _READY

    def result(self, names: Sequence[str]) -> Comparison:
        """The comparison with those of some variants that are done."""
        first = self._prepared
        done = _beside_one_base([self.outcomes[name] for name in names if name in self.outcomes])
        program, _ = compare_amounts(first.audit, first.audit, [])
        return Comparison(
            Outcome(self._base.name, effects=tuple(first.audit.effects), program=program),
            done,
            by=tuple(dict.fromkeys(row.key for each in done for row in each.rows if row.key)),
            rounds=self._rounds,
            visible=self._visible,
            seconds=self._seconds,
            notes=self._notes(first),
        )

    def _notes(self, first: Prepared) -> tuple[str, ...]:
        if not first.seconds:
            return (_NOT_RUN,)
        can_vary = first.audit.platform == "cpu" and self._base.has_own_process and not self._can_confirm
        rows = (row for each in self.outcomes.values() for row in (each.program, *each.rows))
        is_doubted = can_vary and any(amount.measure == TIME and amount.differs for row in rows for amount in row.amounts)
        return (*notes_of(first.audit.platform), *([_UNCONFIRMED] if is_doubted else []))

    def run(self, others: Sequence[Subject]) -> None:
        """Compiles some variants, and runs them in turns. Their outcomes say what failed."""
        prepared: dict[str, Prepared] = {}
        try:
            for subject in others:
                try:
                    with step(f"compiling {subject.name}"):
                        prepared[subject.name] = subject.prepare(self._results, effects=self._effects)
                except VariantError as error:
                    self.outcomes[subject.name] = Outcome(subject.name, error=str(error))
            times = self._run_in_turns(others, prepared)
            for name, each in prepared.items():
                self.outcomes[name] = _outcome(name, each, self._prepared, self._groups(each), times.get(name))
        finally:
            for subject in others:
                subject.close()

    def _run_in_turns(self, others: Sequence[Subject], prepared: dict[str, Prepared]) -> dict[str, Times]:
        """The times of the variants that run, by name. One that fails leaves `prepared`, and the others run again."""
        can_run = bool(self._prepared.seconds)
        while running := [each for each in others if can_run and each.name in prepared and prepared[each.name].seconds]:
            self._base.forget()
            for each in running:
                each.forget()
            groups = [self._by or _whole(self._groups(prepared[each.name])) for each in running]
            turns, start = Turns([self._base, *running], groups, self._visible), time.monotonic()
            step_seconds = max(prepared[each.name].seconds for each in running)
            try:
                found = turns.run(step_seconds, self._limit)
                if self._can_confirm:
                    found = confirm(turns, found, step_seconds, self._limit)
            except VariantError as error:
                if error.name not in prepared:
                    raise
                del prepared[error.name]
                self.outcomes[error.name] = Outcome(error.name, error=str(error))
                continue
            self._rounds, self._seconds = max(self._rounds, turns.rounds), self._seconds + time.monotonic() - start
            return dict(zip([each.name for each in running], found, strict=True))
        return {}

    def _groups(self, each: Prepared) -> list[Grouping]:
        return groupings_of(each.audit, self._prepared.audit, self._by)

    @property
    def _prepared(self) -> Prepared:
        if self._first is None:
            raise TypeError("the first variant is not compiled")
        return self._first


def _beside_one_base(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Gives the first variant one time, that beside the first four of the others, and keeps how others differ from it."""
    times = [found for each in outcomes if (found := each.program.amount(TIME)) and found.before]
    return tuple(_scale_time(each, times[0].before) for each in outcomes) if times else tuple(outcomes)


def _scale_time(outcome: Outcome, base: float) -> Outcome:
    amounts = tuple(
        replace(each, before=base, now=each.now / each.before * base) if each.measure == TIME and each.before else each
        for each in outcome.program.amounts
    )
    return replace(outcome, program=replace(outcome.program, amounts=amounts))


def _whole(groups: Sequence[Grouping]) -> Grouping | None:
    """What a profile is grouped by for some groupings: by each key of the program, or by scope."""
    return "scope" if list(groups) == ["scope"] else None


def _outcome(
    name: str,
    now: Prepared,
    before: Prepared,
    groups: Sequence[Grouping],
    times: Times | None,
) -> Outcome:
    program, counted = compare_amounts(now.audit, before.audit, groups)
    timed = []
    if times is not None:
        whole, timed = times
        program = replace(program, amounts=(*whole.amounts, *program.amounts))
    return Outcome(
        name,
        results=now.results,
        effects=tuple(now.audit.effects),
        problems=list_worse(now.audit, before.audit),
        program=program,
        rows=_join_rows(timed, counted),
    )


def _join_rows(timed: Sequence[Difference], counted: Sequence[Difference]) -> tuple[Difference, ...]:
    """One row for each place, with times and counted amounts: those that differ first, those with most time first."""
    keys = {row.key for row in counted}
    rows: dict[Place, Difference] = {(row.key, row.value, row.phase): row for row in counted}
    for row in timed:
        if not counted or row.key in keys:
            place = row.key, row.value, row.phase
            rows[place] = replace(row, amounts=(*row.amounts, *(rows[place].amounts if place in rows else ())))
    return tuple(sorted(rows.values(), key=order_of_row))
