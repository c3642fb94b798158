# SPDX-License-Identifier: Apache-2.0
"""The problems that are new since a baseline, an earlier audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace

from hlotag._text import list_some
from hlotag.audits.audit import Audit
from hlotag.results.report import Problem
from hlotag.results.tags import Tag, TagState

FEWER = "fewer"
"""The kind of a problem: fewer operations have a tag."""


def worse(now: Audit, before: Audit) -> list[Problem]:
    """The problems that are new or more frequent than in a baseline, each with its new tags only.

    Key, value, operation, scope and phase identify a tag. Lines do not, because code moves. A key and value that covers less
    than in the baseline is a problem too.
    """
    return [*_grown(now, before), *_fewer(now, before)]


def _grown(now: Audit, before: Audit) -> Iterator[Problem]:
    left = Counter(known for problem in before.report.problems for known in _identities(problem, before))
    for problem in now.report.problems:
        new = []
        for number, known in enumerate(_identities(problem, now)):
            if left[known]:
                left[known] -= 1
            else:
                new.append(number)
        if new:
            yield replace(problem, count=len(new), tags=tuple([problem.tags[n] for n in new]) if problem.tags else ())


def _identities(problem: Problem, audit: Audit) -> list[Hashable]:
    """The identity of each tag of a problem; without tags, one identity for each that it counts."""
    if not problem.tags:
        return [(problem.kind, problem.tag or problem.why)] * problem.count
    return [(problem.kind, *_identity(audit.tags[number])) for number in problem.tags]


def _identity(tag: Tag) -> tuple[str, ...]:
    return tag.key, tag.value, tag.op.name, tag.op.scope, tag.op.phase


def _fewer(now: Audit, before: Audit) -> Iterator[Problem]:
    """Keys and values with fewer operations in a scope and phase, or fewer whose operation has an instruction."""
    tagged, tagged_now = (Counter(map(_place, audit.tags)) for audit in (before, now))
    there, there_now = (Counter(_place(tag) for tag in audit.tags if tag.state != TagState.ELIMINATED) for audit in (before, now))
    missing: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for place, had in tagged.items():
        key, value, phase, scope = place
        fewer, without = had - tagged_now[place], there[place] - there_now[place]
        if fewer > 0 or without > 0:
            where = f"{phase} in {scope}" if scope else phase
            change = f"{had} to {tagged_now[place]}" if fewer > 0 else f"{there[place]} to {there_now[place]} with an instruction"
            missing.setdefault((key, value), []).append((max(fewer, without), f"{where} {change}"))
    lines = _lines(before) | _lines(now)
    for (key, value), found in missing.items():
        why = f"Fewer tagged operations than in the baseline: {list_some([was for _, was in found])}."
        effect = f"{key}={value} covers less than before."
        advice = "Write a new baseline if the program is meant to be so."
        file, line = lines.get((key, value), ("", 0))
        yield Problem(FEWER, f"{key}={value}", "", file, line, sum(number for number, _ in found), why, effect, advice)


def _lines(audit: Audit) -> dict[tuple[str, str], tuple[str, int]]:
    """The first line with each key and value."""
    return {(tag.key, tag.value): (tag.op.file, tag.op.line) for tag in reversed(audit.tags) if tag.op.file}


def _place(tag: Tag) -> tuple[str, str, str, str]:
    return tag.key, tag.value, tag.op.phase, tag.op.scope
