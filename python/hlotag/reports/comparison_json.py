# SPDX-License-Identifier: Apache-2.0
"""A comparison as JSON, written and read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hlotag._util.files import read_document
from hlotag.errors import ParseError
from hlotag.results.compared import Amount, Difference, Outcome, Trend
from hlotag.results.tags import Effect, Verdict

if TYPE_CHECKING:
    from hlotag.comparisons.comparison import Comparison


SCHEMA = "hlotag.comparison/1"
_FIELDS = ("by", "rounds", "visible", "seconds", "notes")


def dumps(found: Comparison, *, indent: int | None = None) -> str:
    """Writes a comparison as JSON."""
    document: dict[str, Any] = {"schema": SCHEMA, "sentence": found.sentence}
    document |= {name: getattr(found, name) for name in _FIELDS}
    document["variants"] = [_outcome(each) for each in (found.base, *found.outcomes)]
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    made = {name: getattr(outcome, name) for name in ("name", "verdict", "error", "results", "problems")}
    made["effects"] = [each._asdict() for each in outcome.effects]
    return made | {"program": _row(outcome.program), "rows": list(map(_row, outcome.rows))}


def _row(row: Difference) -> dict[str, Any]:
    return {"key": row.key, "value": row.value, "phase": row.phase, "amounts": [dict(vars(each)) for each in row.amounts]}


def loads(text: str, filename: str) -> dict[str, Any]:
    """Reads the fields of a comparison from JSON. Raises ParseError, with the name of the file, for anything else."""
    document = read_document(text, filename, "a comparison", SCHEMA)
    try:
        base, *outcomes = map(_read_outcome, document["variants"])
        fields: dict[str, Any] = {name: document[name] for name in _FIELDS}
        fields |= {name: tuple(fields[name]) for name in ("by", "notes")}
        return {"base": base, "outcomes": tuple(outcomes), **fields}
    except (LookupError, TypeError, ValueError) as error:
        raise ParseError(f"{filename}: the comparison is incomplete ({error!r}); write it again with --json") from None


def _read_outcome(made: dict[str, Any]) -> Outcome:
    return Outcome(
        *(made[name] for name in ("name", "error", "results")),
        effects=tuple(Effect(**each | {"verdict": Verdict(each["verdict"])}) for each in made["effects"]),
        problems=tuple(made["problems"]),
        program=_read_row(made["program"]),
        rows=tuple(map(_read_row, made["rows"])),
    )


def _read_row(made: dict[str, Any]) -> Difference:
    amounts = tuple(Amount(**each | {"trend": Trend(each["trend"])}) for each in made["amounts"])
    return Difference(made["key"], made["value"], made["phase"], amounts)
