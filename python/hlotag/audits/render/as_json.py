# SPDX-License-Identifier: Apache-2.0
"""An audit as JSON, in the format of `schema.json`. Incompatible changes raise the number in SCHEMA."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hlotag.audits.model import Tag
from hlotag.audits.report import Reported

SCHEMA = "hlotag.audit/7"


def dumps(audit: Reported, *, indent: int | None = None) -> str:
    """Writes an audit as JSON, which is equal for equal programs in every process. `indent` is that of `json.dumps`."""
    return json.dumps(as_dict(audit), indent=indent, ensure_ascii=False, allow_nan=False)


def as_dict(audit: Reported) -> dict[str, Any]:
    """Converts an audit to dictionaries, lists and scalars in the format of `schema.json`."""
    return {
        "schema": SCHEMA,
        "name": audit.name,
        "platform": audit.platform,
        "has_program": audit.has_program,
        "instruction_count": audit.instruction_count,
        "notes": list(audit.notes),
        "hlo_stage": audit.hlo_stage,
        "is_off": audit.is_off,
        "sentence": audit.report.sentence,
        "problems": [asdict(problem) for problem in audit.report.problems],
        "counts": {str(state): number for state, number in sorted(audit.counts.items())},
        "ops": [op._asdict() for op in audit.ops],
        "tags": [_tag(tag) for tag in audit.tags],
        "instructions": [instruction._asdict() for instruction in audit.instructions],
        "effects": [effect._asdict() for effect in audit.effects],
        "apart": [apart._asdict() for apart in audit.apart],
        "memory": audit.memory and {**vars(audit.memory), "buffers": [each._asdict() for each in audit.memory.buffers]},
        "dropped": [{"attrs": dict(d.attrs), "file": d.file or "", "line": d.line} for d in audit.dropped],
    }


def _tag(tag: Tag) -> dict[str, Any]:
    return tag._asdict() | {"op": tag.op.id, "origin": tag.origin and tag.origin._asdict()}
