# SPDX-License-Identifier: Apache-2.0
"""How do audits, or profiles, that were made before differ? A baseline, a trace of another machine, last week's run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hlotag.audits.audit import Audit
from hlotag.comparisons.amounts import compare_amounts, groupings_of, list_worse, order_of_row
from hlotag.comparisons.comparison import Comparison
from hlotag.comparisons.timing import compare_runs, without_light
from hlotag.errors import ArgumentError
from hlotag.profiles.profile import Profile
from hlotag.results.compared import Difference, Outcome, Trend
from hlotag.results.grouping import Grouping

_WHOLE = ("", "", "")
_AT_TWO_TIMES = (
    "The profiles were made at two times. A busy machine slows all rows alike, so a row counts by what it changed more than the "
    "others. hlotag compare runs programs in turns."
)


def compare_saved(saved: Mapping[str, Audit | Profile], by: Grouping | None, visible: float) -> Comparison:
    """Compares audits with the first audit, or profiles with the first profile.

    Raises ArgumentError if some are audits and some are profiles, or `by` names a key that none has.
    """
    (name, base), *others = saved.items()
    outcomes: list[Outcome] = []
    notes: tuple[str, ...] = ()
    for other, each in others:
        if isinstance(each, Audit) and isinstance(base, Audit):
            program, rows = compare_amounts(each, base, groupings_of(each, base, by))
            found = {"effects": tuple(each.effects), "problems": list_worse(each, base), "program": program}
            outcomes.append(Outcome(other, **found, rows=tuple(sorted(rows, key=order_of_row))))
        elif isinstance(each, Profile) and isinstance(base, Profile):
            outcomes.append(compare_profiles(other, each, base, visible))
            notes = (_AT_TWO_TIMES,)
        else:
            raise ArgumentError(f"{name!r} is {_kind(base)} and {other!r} is {_kind(each)}: compare two audits or two profiles")
    if isinstance(base, Profile):
        first = replace(compare_profiles(name, base, base, visible), rows=())
    else:
        first = Outcome(name, effects=tuple(base.effects), program=compare_amounts(base, base, [])[0])
    keys = tuple(dict.fromkeys(row.key for each in outcomes for row in each.rows if row.key))
    return Comparison(first, tuple(outcomes), by=keys, visible=visible, notes=notes)


def compare_profiles(name: str, now: Profile, before: Profile, visible: float) -> Outcome:
    """Compares a profile with an earlier one: the rows of keys that both have, and the step."""
    keys = {row.key for row in now.rows if row.key} & {row.key for row in before.rows}
    was, is_now = ({(r.key, r.value, r.phase): r.steps for r in p.rows if r.key in keys} for p in (before, now))
    found = compare_runs(was, is_now, visible)
    step = compare_runs({_WHOLE: before.steps}, {_WHOLE: now.steps}, visible)[_WHOLE]
    longest = max(step.before, step.now)
    rows = [Difference(*place, (without_light(each, longest),)) for place, each in found.items() if each.before or each.now]
    if step.differs and not any(row.has(step.trend) for row in rows) and rows:
        step = replace(step, trend=Trend.UNDECIDED)  # All rows changed alike.
    return Outcome(name, program=Difference(*_WHOLE, (step,)), rows=tuple(sorted(rows, key=order_of_row)))


def _kind(each: Audit | Profile) -> str:
    return "an audit" if isinstance(each, Audit) else "a profile"
