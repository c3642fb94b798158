# SPDX-License-Identifier: Apache-2.0
"""A profile as JSON, written and read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hlotag._util.files import read_document
from hlotag.errors import ParseError
from hlotag.results.times import Hot, Limits, Row, Transfer

if TYPE_CHECKING:
    from hlotag.profiles.profile import Profile

SCHEMA = "hlotag.profile/3"
_TABLES = {"rows": Row, "instructions": Hot, "transfers": Transfer}
_FIELDS = ("name", "devices", "steps", "untagged", "split", "busy", "untraced_seconds", "products_at_limit", "notes")


def dumps(profile: Profile, *, indent: int | None = None) -> str:
    """Writes a profile as JSON, without its timeline."""
    document: dict[str, Any] = {"schema": SCHEMA, "total_seconds": profile.total_seconds, "sentence": profile.sentence}
    document |= {name: getattr(profile, name) for name in _FIELDS}
    document |= {"mfu": profile.mfu, "limits": profile.limits and asdict(profile.limits)}
    document |= {name: list(map(asdict, getattr(profile, name))) for name in _TABLES}
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)


def loads(text: str, filename: str) -> dict[str, Any]:
    """Reads the fields of a profile from its JSON, which has no timeline. Raises ParseError, with the file, for anything else."""
    document = read_document(text, filename, "a profile", SCHEMA)
    try:
        fields = {name: _frozen(document[name]) for name in _FIELDS}
        for table, kind in _TABLES.items():
            fields[table] = tuple(kind(**{name: _frozen(value) for name, value in each.items()}) for each in document[table])
        fields["limits"] = Limits(**limits) if (limits := document["limits"]) else None
        _ = fields["devices"][0], sum(fields["steps"]), sum(sum(row.steps) for row in fields["rows"])
    except (LookupError, TypeError, ArithmeticError) as error:
        raise ParseError(f"{filename}: the profile is incomplete ({error!r}); write it again with --json") from None
    return fields


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
