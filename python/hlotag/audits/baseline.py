# SPDX-License-Identifier: Apache-2.0
"""The problems that are new since a baseline, the JSON of an earlier audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hlotag._text import list_some
from hlotag._util.files import read_document
from hlotag.audits.model import TagState
from hlotag.audits.render.as_json import SCHEMA, as_dict
from hlotag.audits.report import Problem, Reported
from hlotag.errors import ParseError


def read(text: str, filename: str) -> dict[str, Any]:
    """Reads the JSON of `Audit.to_json`. Raises ParseError if it is not a complete audit, or has another schema."""
    document = read_document(text, filename, "an audit", SCHEMA)
    try:
        hash((*_find_known(document), *(_identity(tag, document["ops"]) for tag in document["tags"])))
    except (LookupError, TypeError) as error:
        raise ParseError(f"{filename}: the audit is incomplete ({error!r}); write it again with --json") from None
    return document


def worse(audit: Reported, before: dict[str, Any]) -> list[Problem]:
    """The problems that are new or more frequent than in the document of a baseline, each with its new tags only.

    Key, value, operation, scope and phase identify a tag. Lines do not, because code moves. A key and value that covers less
    than in the baseline is a problem too.
    """
    now = as_dict(audit)
    return [*_grown(audit, now, Counter(_find_known(before))), *_fewer(now, before)]


def _grown(audit: Reported, document: dict[str, Any], left: Counter[Hashable]) -> Iterator[Problem]:
    for problem, written in zip(audit.report.problems, document["problems"], strict=True):
        new = []
        for number, known in enumerate(_identities(written, document)):
            if left[known]:
                left[known] -= 1
            else:
                new.append(number)
        if new:
            yield replace(problem, count=len(new), tags=tuple([problem.tags[n] for n in new]) if problem.tags else ())


def _find_known(document: dict[str, Any]) -> Iterator[Hashable]:
    for problem in document["problems"]:
        yield from _identities(problem, document)


def _identities(problem: dict[str, Any], document: dict[str, Any]) -> list[Hashable]:
    """Returns the identity of each tag of a problem; without tags, one identity for each that it counts."""
    kind = problem["kind"]
    if not problem["tags"]:
        return [(kind, problem["tag"] or problem["why"])] * problem["count"]
    tags, ops = document["tags"], document["ops"]
    return [(kind, *_identity(tags[number], ops)) for number in problem["tags"]]


def _identity(tag: dict[str, Any], ops: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    op = ops[tag["op"]]
    return tag["key"], tag["value"], op["name"], op["scope"], op["phase"]


def _fewer(document: dict[str, Any], before: dict[str, Any]) -> Iterator[Problem]:
    """Keys and values with fewer operations in a scope and phase, or fewer whose operation has an instruction."""
    had, now = _count(before), _count(document)
    missing: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for (key, value, phase, scope), (tagged, there) in had.items():
        tagged_now, there_now = now.get((key, value, phase, scope), (0, 0))
        if tagged_now < tagged or there_now < there:
            where = f"{phase} in {scope}" if scope else phase
            change = f"{tagged} to {tagged_now}" if tagged_now < tagged else f"{there} to {there_now} with an instruction"
            missing.setdefault((key, value), []).append((max(tagged - tagged_now, there - there_now), f"{where} {change}"))
    for (key, value), found in missing.items():
        why = f"Fewer tagged operations than in the baseline: {list_some([was for _, was in found])}."
        effect = f"{key}={value} covers less than before."
        advice = "Write a new baseline if the program is meant to be so."
        yield Problem("fewer", f"{key}={value}", "", "", 0, sum(number for number, _ in found), why, effect, advice)


def _count(document: dict[str, Any]) -> dict[tuple[str, ...], tuple[int, int]]:
    """By key, value, phase and scope: how many operations are tagged, and how many of them have an instruction."""
    counts: dict[tuple[str, ...], tuple[int, int]] = {}
    for tag in document["tags"]:
        op = document["ops"][tag["op"]]
        place = tag["key"], tag["value"], op["phase"], op["scope"]
        tagged, there = counts.get(place, (0, 0))
        counts[place] = tagged + 1, there + (tag["state"] != TagState.GONE)
    return counts
