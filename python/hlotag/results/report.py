# SPDX-License-Identifier: Apache-2.0
"""The summary of an audit: one sentence and the problems, heavy operations first.

Terminal, page, JSON and command show the same report.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlotag._text import count, in_work, list_some
from hlotag._util.groups import group
from hlotag.results.tags import CONVERSION, RANK, Effect, Op, Tag, TagState, Verdict
from hlotag.tagging import keys

if TYPE_CHECKING:
    from hlotag.audits.audit import Audit

_WELL = "on an instruction or went away with their operation"
OFF = "hlotag is off: without hlotag.enable(), gradients have no tags, and rules and grad= have no effect."
UNSCHEDULED = (
    "The module has no schedule, so XLA's passes have not run: XLA will drop, merge and fuse instructions, and the body of a "
    "loop counts once. Audit the module of after_optimizations, or the program."
)
_RESTORES = "Compile with hlotag's HLO pass, the default of hlotag.enable(): it restores what XLA drops."
_ONE_VALUE = "One instruction computes both operations and has one value for a key: use the same value, or different keys."
_UNRESTORED = "hlotag's HLO pass ran and did not correct the tag. Please report this with audit.to_json()."
_READ_BEFORE = "XLA reads this key before hlotag's HLO pass runs, so the pass cannot help. Try another shape or compiler option."
_TRIAL = "cpu"  # People try programs for accelerators here, so unread keys are no problem.


@dataclass(frozen=True)
class Problem:
    """Tags that share a source line, key and cause, or another problem.

    Attributes:
        kind: "lost", "refused", "no operation", "unmatched rule", "unread key", or
            "warning" of a pass.
        tag: The key with its values: `block=attention`; empty if the problem concerns no tag.
        on: The operations: `dot_general f32[32,64]`; empty if the problem concerns no operation.
        file: The user's file; empty if unknown.
        line: The line in the file; 0 if unknown.
        count: How many tags.
        why: What happened, in words.
        effect: The consequence, in words.
        advice: What to do; empty if `why` says it.
        by: The pass that caused the problem; empty if unknown.
        tags: Indexes of the tags in `audit.tags`.
        flops: Floating-point operations of the tagged operations.
        bytes: Bytes that the tagged operations read and write.
        scope: The common scope of the operations; empty if their scopes differ.
    """

    kind: str
    tag: str
    on: str
    file: str
    line: int
    count: int
    why: str
    effect: str
    advice: str
    by: str = ""
    tags: tuple[int, ...] = ()
    flops: int = 0
    bytes: int = 0
    scope: str = ""

    @property
    def source(self) -> str:
        """`file:line`, the file without its directory; the scope if the line is unknown."""
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else self.scope

    @property
    def title(self) -> str:
        """Count, kind, tags and operations: `4 x lost  block=mlp on dot_general f32[8,8]`."""
        about = " on ".join(filter(None, (self.tag, self.on)))
        return f"{f'{self.count} x ' if self.count > 1 else ''}{self.kind}{f'  {about}' if about else ''}"

    def __str__(self) -> str:
        """The problem in full, without its source line."""
        return " ".join(filter(None, (f"{self.title}:", self.why, self.effect, self.advice)))


@dataclass(frozen=True)
class Report:
    """The report of an audit.

    Attributes:
        sentence: The result in one sentence.
        problems: Lost tags first, those on heavy operations before others.
    """

    sentence: str
    problems: tuple[Problem, ...]


def make_report(audit: Audit) -> Report:
    """Makes the report of an audit."""
    needing = sorted(_find_needing_attention(audit), key=lambda problem: (-problem.flops, -problem.bytes))
    others = [
        *_find_refused(audit),
        *_find_dropped(audit),
        *_find_reported(audit),
        *_find_unread(audit),
    ]
    return Report(_sentence(audit, len(others)), (*needing, *others))


def _sentence(audit: Audit, others: int) -> str:
    total, needing = len(audit.tags), sum(tag.needs_attention for tag in audit.tags)
    unknown = audit.counts[TagState.UNKNOWN]
    left = [tag.key for tag in audit.lost if not tag.needs_attention]
    if not total:
        text = "No operation has a tag"
    elif needing:
        text = f"{needing} of {total} tags need{'s' if needing == 1 else ''} attention; all others are {_WELL}"
    elif unknown or left:
        text = f"{total - unknown - len(left)} of {total} tags are {_WELL}"
    else:
        text = (
            f"All {total} tags are {_WELL}" if total > 1 else "The only tag is on an instruction or went away with its operation"
        )
    but = [f"{unknown} that the modules do not tell of"] if unknown else []
    but += [f"{len(left)} that libraries wrote and XLA dropped ({list_some(sorted(set(left)))})"] if left else []
    text += f", but for {' and '.join(but)}" if but else ""
    off = f"{OFF} " if audit.is_off else ""
    return f"{off}{text}. {count(others, 'other problem')}." if others else f"{off}{text}."


# --- Lost tags -------------------------------------------------------------------------------------------------------------


def _find_needing_attention(audit: Audit) -> Iterator[Problem]:
    found: dict[tuple, list[int]] = {}
    for number, tag in enumerate(audit.tags):
        if tag.needs_attention:
            place = (tag.op.file, tag.op.line) if tag.op.file else (tag.op.function, tag.op.scope)
            found.setdefault((*place, tag.key, tag.by, _cause(tag)), []).append(number)
    for numbers in found.values():
        tags = [audit.tags[number] for number in numbers]
        first = tags[0]
        ops = list({tag.op.id: tag.op for tag in tags}.values())
        flops, size = sum(op.flops for op in ops), sum(op.bytes for op in ops)
        yield Problem(
            kind=str(first.state),
            tag=_values(first.key, [tag.value for tag in tags]),
            on=_operations(ops),
            file=first.op.file,
            line=first.op.line,
            count=len(tags),
            why=_why(audit, first),
            effect=_effect(audit, first.key, len(ops), in_work(flops, size)),
            advice=_advice(audit, first),
            by=first.by,
            tags=tuple(numbers),
            flops=flops,
            bytes=size,
            scope=first.op.scope if len({op.scope for op in ops}) == 1 else "",
        )


def _cause(tag: Tag) -> str:
    """What a lost tag's instructions have instead, without the names of instructions."""
    return "; ".join(filter(None, (tag.why, "an instruction that moves the result has the tag" if tag.carrier else "")))


def _why(audit: Audit, tag: Tag) -> str:
    done = "left the tag out" if tag.by == CONVERSION else "rewrote the operation without its tag"
    who = f"XLA's {tag.by}" if tag.by == CONVERSION else f"XLA's pass {tag.by}" if tag.by else "XLA"
    cause = _cause(tag)
    return f"{who} {done}{f'; {cause}' if cause else ''}.{'' if tag.by else f' {_hint(audit)}'}"


def _hint(audit: Audit) -> str:
    """How to learn which pass it was."""
    if audit.has_program:
        return "xla_passes=True, or --xla-passes, names the pass."
    return "A dump with --xla_dump_hlo_pass_re=.* names the pass."


def _advice(audit: Audit, tag: Tag) -> str:
    if not audit.hlo_pass:
        return _RESTORES
    if keys.is_taken(tag.key, audit.platform):
        return _READ_BEFORE
    return _ONE_VALUE if tag.why.startswith("the instruction has") else _UNRESTORED


def _effect(audit: Audit, name: str, number: int, work: str) -> str:
    operations = f"{count(number, 'operation')}{f' ({work})' if work else ''}"
    key = keys.lookup(name)
    if key is None or not _is_read(key, keys.backend_of(audit.platform)):
        return f"Profiles and dumps show {operations} without {name}."
    return f"XLA does not see {name} on {operations}: {_asks(key)}"


def _asks(key: keys.Key | None) -> str:
    """The first sentence of a key's documentation. The others are advice."""
    return re.split(r"(?<=\.) ", key.doc, maxsplit=1)[0] if key else ""


def _values(key: str, values: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(values))
    more = f" and {count(len(distinct) - 3, 'more value')}" if len(distinct) > 3 else ""
    return f"{key}={', '.join(distinct[:3])}{more}"


def _operations(ops: Sequence[Op]) -> str:
    return list_some(list(dict.fromkeys(op.title for op in ops)))


def facts_in_words(audit: Audit) -> str:
    """`3 tags on 2 of 9 operations; 4 instructions after XLA (cpu)`."""
    tagged = len({tag.op.id for tag in audit.tags})
    facts = f"{count(len(audit.tags), 'tag')} on {tagged} of {count(len(audit.ops), 'operation')}"
    if audit.instruction_count:
        when = "before XLA" if UNSCHEDULED in audit.notes else "after XLA"
        facts += f"; {count(audit.instruction_count, 'instruction')} {when}"
        facts += f" ({audit.platform})" if audit.platform else ""
    return facts


def effects_in_words(audit: Audit) -> list[tuple[Verdict, str, str]]:
    """The effects to show, each as verdict, key and values, and what shows it. Refused keys are problems.

    First comes each key and value with a verdict, then each key without one.
    """
    found = [effect for effect in audit.effects if effect.verdict in (Verdict.CHANGED, Verdict.SAME)]
    found.sort(key=lambda effect: effect.verdict)
    others = Counter((e.verdict, e.key, e.details) for e in audit.effects if e.verdict in (Verdict.UNREAD, Verdict.OPEN))
    rows = [(e.verdict, f"{e.key}={e.value} ({e.what})", e.details) for e in found]
    return rows + [(verdict, f"{key} ({count(number, 'value')})", why) for (verdict, key, why), number in others.items()]


TAG_COLUMNS = ("state", "tag", "phase", "operation", "source", "instruction", "work")


def tag_row(tag: Tag) -> tuple[str, ...]:
    """The cells of `TAG_COLUMNS`."""
    op, on = tag.op, ", ".join(tag.op.fusions or tag.op.instructions)
    return (
        str(tag.state), f"{tag.key}={tag.value}", op.phase, op.title, op.source or op.scope, on, in_work(op.flops, op.bytes)
    )  # fmt: skip


def order_of_tags(audit: Audit) -> list[int]:
    """The indexes of the tags, those on instructions first."""
    return sorted(range(len(audit.tags)), key=lambda number: -RANK[audit.tags[number].state])


UNTAGGED_COLUMNS = ("source", "operations", "work", "scopes")


def list_untagged_lines(audit: Audit) -> list[tuple[str, ...]]:
    """The cells of `UNTAGGED_COLUMNS` for each source line whose operations compute something and have no tag, by work."""
    tagged = {tag.op.id for tag in audit.tags}
    lines = group(((op.file, op.line), op) for op in audit.ops if op.id not in tagged and (op.flops or op.bytes))
    rows = [(sum(op.flops for op in ops), sum(op.bytes for op in ops), ops) for ops in lines.values()]
    rows.sort(key=lambda row: row[:2], reverse=True)
    return [(ops[0].source or "unknown", f"{len(ops)}", in_work(flops, size), _scopes(ops)) for flops, size, ops in rows]


def _scopes(ops: Sequence[Op]) -> str:
    return list_some(list(dict.fromkeys(op.scope for op in ops if op.scope)))


# --- Other problems --------------------------------------------------------------------------------------------------------


def _find_refused(audit: Audit) -> Iterator[Problem]:
    """Keys that the compiler read and did not follow: one problem for each line, key and cause."""
    tags = group(((tag.key, tag.value), number) for number, tag in enumerate(audit.tags))
    found: dict[tuple, list[Effect]] = {}
    for effect in audit.effects:
        if effect.verdict == Verdict.REFUSED:
            first = audit.tags[tags[effect.key, effect.value][0]].op
            cause = re.sub(r"[.\d]+", "", effect.reason)  # Names of instructions differ by their numbers.
            found.setdefault((first.file, first.line, effect.key, cause), []).append(effect)
    for (file, line, name, _), effects in found.items():
        numbers = [number for effect in effects for number in tags[name, effect.value]]
        example = f"Of {effects[0].value}: " if len(effects) > 1 else ""
        yield Problem(
            kind="refused",
            tag=_values(name, [effect.value for effect in effects]),
            on=_operations(list({audit.tags[n].op.id: audit.tags[n].op for n in numbers}.values())),
            file=file,
            line=line,
            count=len(numbers),
            why=f"{example}{effects[0].details}.",
            effect=f"The compiler did not do what the key asks for: {_asks(keys.lookup(name)) or name}",
            advice='The page "Compile for a GPU or TPU without one" says what each compiler does.',
            tags=tuple(numbers),
        )


def _find_dropped(audit: Audit) -> Iterator[Problem]:
    for dropped in audit.dropped:
        tag = ", ".join(f"{key}={value}" for key, value in dropped.attrs)
        why = "No operation made the tagged value: it is an argument, say."
        advice = "Tag a value that an operation computes, or the operations themselves in a block: with hlotag.tagged(...)."
        yield Problem(
            "no operation", tag, "", dropped.file or "", dropped.line, len(dropped.attrs), why, "The tag is nowhere.", advice
        )


def _find_reported(audit: Audit) -> Iterator[Problem]:
    for report in audit.reports:
        if report.severity == "remark":
            kind, effect = "unmatched rule", "The rule has no effect."
            advice = "Compare its op, scope, source and function with the operations of the program."
            if "source = " in report.message:
                files = dict.fromkeys(op.file for op in audit.ops if op.file)
                advice += f" Their lines are in {list_some(list(files))}." if files else ""
        else:  # The message has the advice.
            kind, effect, advice = "warning", "The compiler may not do what the tags ask for.", ""
        yield Problem(kind, "", "", report.file, report.line, 1, f"{report.message}.", effect, advice)


def _find_unread(audit: Audit) -> Iterator[Problem]:
    """Keys of the catalogue that an accelerator's compiler does not read, and keys that look like misspelt ones."""
    for name, found in group((tag.key, number) for number, tag in enumerate(audit.tags)).items():
        first = audit.tags[found[0]].op
        key = keys.lookup(name)
        if meant := keys.meant(name):
            why, advice = "The key is not known to hlotag.", f"Did you mean {meant}?"
        elif key is not None and audit.platform != _TRIAL and not _is_read(key, keys.backend_of(audit.platform)):
            why = f"XLA for {audit.platform} does not read this key; read by: {', '.join(key.readers)}."
            advice = "To see its effect, audit the program as compiled for a backend that reads it."
        else:
            continue
        effect = f"It has no effect{f' on {audit.platform}' if audit.platform else ''}."
        yield Problem("unread key", name, "", first.file, first.line, len(found), why, effect, advice, tags=tuple(found))


def _is_read(key: keys.Key, backend: str) -> bool:
    """Whether the compiler of a backend may read a key, by the catalogue. `backend` is empty if unknown."""
    return key.reserved or key.consumer == "registered" or not backend or backend in key.readers
