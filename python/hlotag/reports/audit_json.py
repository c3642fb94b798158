# SPDX-License-Identifier: Apache-2.0
"""An audit as JSON, written and read, in the format of `audit_schema.json`. Incompatible changes raise the number in SCHEMA."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hlotag._util.files import read_document
from hlotag.errors import Diagnostic, ParseError
from hlotag.results.buffers import Buffer, Life, Memory
from hlotag.results.tags import Effect, Instruction, Op, Origin, Tag, TagState, Verdict
from hlotag.tagging.tags import Dropped

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

SCHEMA = "hlotag.audit/9"
# The fields of a `Diagnostic` that a report of an audit needs.
_OF_REPORTS = ("severity", "message", "file", "line")


def dumps(audit: Audit, *, indent: int | None = None) -> str:
    """Writes an audit as JSON, which is equal for equal programs in every process. `indent` is that of `json.dumps`."""
    return json.dumps(as_dict(audit), indent=indent, ensure_ascii=False, allow_nan=False)


def as_dict(audit: Audit) -> dict[str, Any]:
    """Converts an audit to dictionaries, lists and scalars in the format of `audit_schema.json`."""
    return {
        "schema": SCHEMA,
        "name": audit.name,
        "platform": audit.platform,
        "has_program": audit.has_program,
        "instruction_count": audit.instruction_count,
        "notes": list(audit.notes),
        "hlo_pass": audit.hlo_pass,
        "is_off": audit.is_off,
        "sentence": audit.report.sentence,
        "problems": [asdict(problem) for problem in audit.report.problems],
        "counts": {str(state): number for state, number in sorted(audit.counts.items())},
        "ops": [op._asdict() for op in audit.ops],
        "tags": [_tag(tag) for tag in audit.tags],
        "instructions": [instruction._asdict() for instruction in audit.instructions],
        "effects": [effect._asdict() for effect in audit.effects],
        "memory": audit.memory and _memory(audit.memory),
        "savings": [asdict(each) for each in audit.savings],
        "dropped": [{"attrs": dict(d.attrs), "file": d.file or "", "line": d.line} for d in audit.dropped],
        "reports": [{name: getattr(each, name) for name in _OF_REPORTS} for each in audit.reports],
    }


def _memory(memory: Memory) -> dict[str, Any]:
    lives = [{"buffer": life.buffer._asdict(), "start": life.start, "end": life.end} for life in memory.lives]
    return {**vars(memory), "buffers": [each._asdict() for each in memory.buffers], "lives": lives}


def _tag(tag: Tag) -> dict[str, Any]:
    return tag._asdict() | {"op": tag.op.id, "origin": tag.origin and tag.origin._asdict()}


def loads(text: str, filename: str) -> dict[str, Any]:
    """Reads the fields of an audit. Raises ParseError if the text is no audit, is incomplete, or has another schema."""
    document = read_document(text, filename, "an audit", SCHEMA)
    try:
        ops = [Op(**_with_tuples(op)) for op in document["ops"]]
        same = ("name", "platform", "notes", "instruction_count", "has_program", "hlo_pass", "is_off")
        return dict(
            ops=ops,
            tags=[_read_tag(tag, ops) for tag in document["tags"]],
            instructions=[Instruction(**_with_tuples(each)) for each in document["instructions"]],
            effects=[Effect(**effect | {"verdict": Verdict(effect["verdict"])}) for effect in document["effects"]],
            memory=document["memory"] and _read_memory(document["memory"]),
            dropped=[Dropped(tuple(d["attrs"].items()), d["file"] or None, d["line"]) for d in document["dropped"]],
            reports=[Diagnostic(**each) for each in document["reports"]],
            **{name: document[name] for name in same},
        )
    except (LookupError, TypeError, ValueError) as error:
        raise ParseError(f"{filename}: the audit is incomplete ({error!r}); write it again with --json") from None


def _read_tag(tag: dict[str, Any], ops: list[Op]) -> Tag:
    origin = tag["origin"] and Origin(**tag["origin"])
    return Tag(**_with_tuples(tag) | {"op": ops[tag["op"]], "state": TagState(tag["state"]), "origin": origin})


def _read_memory(memory: dict[str, Any]) -> Memory:
    lives = tuple([Life(_buffer(each["buffer"]), each["start"], each["end"]) for each in memory["lives"]])
    fields: dict[str, Any] = memory | {"buffers": tuple(map(_buffer, memory["buffers"])), "lives": lives}
    return Memory(**fields)


def _buffer(buffer: dict[str, Any]) -> Buffer:
    return Buffer(**_with_tuples(buffer))


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
