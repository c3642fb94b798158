# SPDX-License-Identifier: Apache-2.0
"""Which problems are new since a baseline, the JSON of an earlier audit?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hlotag.audit.render.as_json import SCHEMA, as_dict
from hlotag.audit.report import Problem, Reported
from hlotag.errors import ParseError


def read(text: str, filename: str) -> dict[str, Any]:
    """Reads the JSON of `Audit.to_json`.

    Args:
        text: The JSON.
        filename: The name in messages.

    Returns:
        The document.

    Raises:
        ParseError: `text` is not a complete audit, or has another schema.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ParseError(f"{filename}: not JSON: {error}") from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise ParseError(f"{filename}: expected an audit with schema {SCHEMA!r}, found {found!r}; write it with --json")
    try:
        hash((*_known(document), *(_identity(tag, document["ops"]) for tag in document["tags"])))
    except (LookupError, TypeError) as error:
        raise ParseError(f"{filename}: the audit is incomplete ({error!r}); write it again with --json") from None
    return document


def worse(audit: Reported, before: dict[str, Any]) -> list[Problem]:
    """Finds the problems that are new or more frequent than in the baseline, each with its new tags only.

    Key, value, operation, scope and phase identify a tag. Lines do not, because code moves.

    Args:
        audit: The new audit.
        before: The document of the baseline.

    Returns:
        Problems of the report, and one for each key and value of the baseline that no operation has now.
    """
    left = Counter(_known(before))
    return [*_grown(audit, left), *_absent(audit, before)]


def _grown(audit: Reported, left: Counter[Hashable]) -> Iterator[Problem]:
    document = as_dict(audit)
    for problem, written in zip(audit.report.problems, document["problems"], strict=True):
        new = []
        for number, known in enumerate(_identities(written, document)):
            if left[known]:
                left[known] -= 1
            else:
                new.append(number)
        if new:
            yield replace(problem, count=len(new), tags=tuple([problem.tags[n] for n in new]) if problem.tags else ())


def _known(document: dict[str, Any]) -> Iterator[Hashable]:
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


def _absent(audit: Reported, before: dict[str, Any]) -> Iterator[Problem]:
    now = {(tag.key, tag.value) for tag in audit.tags}
    gone = Counter((tag["key"], tag["value"]) for tag in before["tags"] if (tag["key"], tag["value"]) not in now)
    for (key, value), count in gone.items():
        why = f"The baseline has {'the tag' if count == 1 else f'{count} such tags'}, and no operation has one now."
        advice = "Write a new baseline if the program is meant to be without."
        yield Problem("absent", f"{key}={value}", "", "", 0, count, why, f"Nothing is tagged {key}={value}.", advice)
