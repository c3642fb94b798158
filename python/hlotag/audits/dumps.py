# SPDX-License-Identifier: Apache-2.0
"""The audit of XLA's dumps (`--xla_dump_to`): the modules in a folder, and their tags from pass to pass."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from hlotag._text import count, list_some
from hlotag._util.collection import no_collection
from hlotag._util.progress import step, track
from hlotag.audits import effects
from hlotag.audits.audit import Audit
from hlotag.audits.effects.schedule import Schedule
from hlotag.audits.instructions import Instructions, Lineage
from hlotag.audits.joined import Joined, Named
from hlotag.audits.memory import BUFFERS, read_buffers
from hlotag.audits.states import History, States
from hlotag.audits.unknown import note_unknown_work
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.hlo.join import sources
from hlotag.hlo.opcodes import Kind, kind_of
from hlotag.hlo.restore import tags_of
from hlotag.results.buffers import Memory
from hlotag.results.report import UNSCHEDULED
from hlotag.results.tags import Instruction, Tag, TagState
from hlotag.tagging import keys

_FILE = re.compile(
    r"(?P<module>module_\d+\..+?)"
    # The GPU compiler adds the architecture: sm_9.0a_gpu_after_optimizations.
    r"\.(?P<what>before_optimizations|(?:(?:sm_|gfx)[\w.]+?_)?(?P<platform>[a-z]*)_?after_optimizations|(?P<number>\d{4})\..+)"
    r"\.(?P<form>hlo\.pb|txt)"
)
_PASS = re.compile(r"\.after_(?P<name>.+?)(?:\.before_.*)?$")
_PIPELINE = "pipeline-start"
_OF_TPU = ".tpu_comp_env.txt"
_MAY_BE_TAKEN = (
    "the compiler takes the key away when it reads it; dump the modules after its passes too, with --xla_dump_hlo_pass_re=.*"
)
_ONLY_OPTIMIZED = "Of an optimized module alone, an audit cannot find tags that XLA removed."


@dataclass
class Dump:
    """The files of one module.

    Attributes:
        name: The common prefix of the files: `module_0001.jit_step`.
        before: The file of XLA's input module.
        after: The file of the optimized module.
        passes: (name of the pass, file), in order.
    """

    name: str
    before: Path | None = None
    after: Path | None = None
    passes: list[tuple[str, Path]] = field(default_factory=list)

    @property
    def platform(self) -> str:
        """The compiler's: in a file's name for CPU and GPU, by a file that TPU's compiler adds; "" if neither says it."""
        after = self.ends[1]
        match = _FILE.fullmatch(after.name)
        named = match["platform"] if match else ""
        module = match["module"] if match else self.name
        return named or ("tpu" if (after.parent / f"{module}{_OF_TPU}").exists() else "")

    @property
    def ends(self) -> tuple[Path, Path]:
        """The files of the first and last module. Raises ValueError if one is missing; `find` returns complete dumps only."""
        if self.before is None or self.after is None:
            raise ValueError(f"{self.name}: the dump lacks the module before or after the optimizations")
        return self.before, self.after


def find(folder: Path) -> list[Dump]:
    """Lists the complete dumps in the folder of `--xla_dump_to`: modules before and after the optimizations.

    Raises ParseError if there are none.
    """
    if not os.path.isdir(folder):  # Path.is_dir raises if the name is too long.
        raise ParseError(f"{folder}: no such folder; pass the folder of XLA_FLAGS=--xla_dump_to=...")
    found: dict[str, Dump] = {}
    for file in sorted(folder.iterdir(), key=lambda file: (file.name, file.suffix)):
        match = _FILE.fullmatch(file.name)
        # Skip pipes, whose reading would block, and links out of the folder.
        if match is None or not file.is_file() or file.resolve().parent != folder.resolve():
            continue
        dump = found.setdefault(match["module"], Dump(match["module"]))
        # If XLA wrote both formats, take the first, `.hlo.pb`: it is quicker to read than `.txt`.
        if match["what"] == "before_optimizations":
            dump.before = dump.before or file
        elif match["number"] is None:
            dump.after = dump.after or file
        elif not dump.passes or dump.passes[-1][1].name.split(".hlo.pb")[0] != file.name.removesuffix(".txt"):
            dump.passes.append((pass_name(match["what"]), file))
    _join_clones(found.values())
    whole = [dump for dump in found.values() if dump.before and dump.after]
    if not whole:
        raise ParseError(
            f"{folder}: the folder has no module from before and after XLA's optimizations; XLA writes them with "
            "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'"
        )
    return whole


def _join_clones(dumps: Iterable[Dump]) -> None:
    """Joins the dumps of a module and its clone: the TPU compiler finishes a clone with the same name and a new number."""
    begun: dict[str, Dump] = {}
    for dump in dumps:
        name = dump.name.partition(".")[2]
        if dump.before and not dump.after:
            begun[name] = dump
        elif dump.after and not dump.before and name in begun:
            original = begun.pop(name)
            original.after = dump.after
            original.passes += dump.passes


def largest(found: Sequence[Dump]) -> Dump:
    """The dump of the program: with the largest first module. Smaller modules are helpers that XLA compiled."""
    return max(found, key=lambda dump: dump.ends[0].stat().st_size)


def pass_name(what: str) -> str:
    """Reads the pass from the name of a dump.

    It is `algsimp` for `0006.simplification.after_algsimp.before_simplify-sorts`, the pipeline at the start of a pipeline.
    """
    found = _PASS.search(what)
    if found is None:
        return what
    return what.split(".")[1] if found["name"] == _PIPELINE else found["name"]


def read(file: Path) -> HloModule:
    """Reads a dump: a serialized `HloProto`, or HLO text. Raises ParseError if it is neither."""
    if not file.stat().st_size:
        raise ParseError(f"{file}: the file is empty; XLA was interrupted while it wrote it")
    if file.name.endswith(".pb"):
        from hlotag.hlo import proto

        data = proto.module_of_dump(file.read_bytes(), f"{file}")
        try:
            return HloModule(data)
        except ParseError:
            raise ParseError(f"{file}: a damaged HloProto; dump the module again with --xla_dump_hlo_as_proto") from None
    from hlotag import _compat

    try:
        return HloModule(_compat.runtime.hlo_from_text(file.read_text(encoding="utf-8")))
    except (RuntimeError, ValueError, UnicodeDecodeError) as error:
        raise ParseError(f"{file}: not HLO text: {error}") from None


def audit_dumps(path: Path, module: str | None = None, *, memory: bool = False) -> Audit:
    """Audits HLO: a file with a module; or the module in the folder of `--xla_dump_to` whose name has `module` in it.

    By default, the module of a folder is the largest. Instructions are followed by name and `op_name`. If these are ambiguous,
    the state of a tag is unknown. `memory` says whether to read the assignment of buffers that XLA dumped with the module, and
    to note if there is none. Raises ParseError if there is no such module, or a file cannot be read.
    """
    if os.path.isfile(path):  # `Path.is_file` raises if the name is too long.
        return audit_optimized(read(path), buffers=buffers_beside(path) if memory else None)
    folder = path
    dumps = find(folder)
    chosen = [dump for dump in dumps if module is None or module in dump.name]
    if not chosen:
        raise ParseError(f"{folder}: no module's name contains {module!r}; modules: {', '.join(d.name for d in dumps)}")
    dump = largest(chosen)
    with step("reading dumps"):
        first, last = map(read, dump.ends)
    passes = ((name, read(file)) for name, file in track(dump.passes, "reading passes"))
    return of_modules(first, last, passes, dump.platform, buffers=buffers_beside(dump.ends[1]) if memory else None)


def buffers_beside(file: Path) -> Path:
    """The file in which XLA dumps the assignment of buffers of the optimized module in `file`."""
    return file.with_name(re.sub(r"\.(hlo\.pb|hlo|txt)$", "", file.name) + BUFFERS)


def audit_optimized(module: HloModule, *, buffers: Path | None = None, source_root: str | None = None) -> Audit:
    """Audits an optimized module of which nothing else is known. Arguments are as for `of_modules`."""
    note = _ONLY_OPTIMIZED if module.proto.HasField("schedule") else UNSCHEDULED
    return of_modules(module, module, buffers=buffers, notes=[note], source_root=source_root)


def of_modules(
    first: HloModule,
    last: HloModule,
    passes: Iterable[tuple[str, HloModule]] = (),
    platform: str = "",
    *,
    buffers: Path | None = None,
    notes: Sequence[str] = (),
    source_root: str | None = None,
) -> Audit:
    """Audits HLO modules without their program.

    Args:
        first: The module before XLA's passes; `last` if there is only the optimized one.
        last: The module after XLA's passes.
        passes: The names of passes, each with the module after it, in order.
        platform: JAX's name of the platform; empty if unknown.
        buffers: The file of XLA's assignment of buffers, if memory is asked for.
        notes: Further notes.
        source_root: As `Audit.source_root`.
    """
    with no_collection():
        program = Instructions(first)
        lineage = Lineage(first, program)
    history = History(program.ops, program.tags)
    for number, (name, module) in enumerate(passes):
        if not number:
            history.add("", _rows(lineage.named))
        history.add(name, _rows(lineage.follow(module)))
    # The HLO pass was on.
    is_numbered = any("\x01" in i.op_name for i in first.instructions())
    with step("following tags"), no_collection():
        named = lineage.named if first is last else lineage.follow(last)
        if history.is_known:
            history.add("", _rows(named))
        joined = named if first is last else sources(last, program.program, map(named.__getitem__, last.instructions()))
        joined = {i: () if i in lineage.ambiguous else found for i, found in joined.items()}
        found = Joined(last, named, joined, program.place_in, fusions=last.fusions)
        states = States(program.ops, program.tags, found)
        states.history = history
        tags_found = [_unknown_if_ambiguous(tag, lineage) for tag in states.find()]
        if not history.is_known:
            tags_found = [_unknown_if_taken(tag, platform) for tag in tags_found]
        judged = effects.keys_to_judge({tag.key for tag in tags_found}, platform)
        schedule = Schedule(last, states.computing.by_op()) if judged else None
        memory, why = _memory(buffers, last, states.instructions) if buffers else (None, [])
        known = _notes(last, tags_found, {key for found in program.tags.values() for key, _ in found} if is_numbered else None)
        return Audit(
            name=first.name,
            ops=states.ops,
            tags=tags_found,
            instructions=states.instructions,
            effects=effects.find(tags_found, states.ops, schedule, None, platform),
            platform=platform,
            has_program=False,
            hlo_pass=is_numbered or None,
            memory=memory,
            notes=[*known, *note_unknown_work(last), *notes, *why],
            instruction_count=len(last),
            source_root=source_root,
        )


def _memory(file: Path, module: HloModule, instructions: Sequence[Instruction]) -> tuple[Memory | None, list[str]]:
    """What XLA dumped of the buffers of a module; or None, and a note that says so."""
    if file.is_file() and file.resolve().parent == file.parent.resolve():
        return read_buffers(file, module, instructions), []
    return None, [f"Its memory is unknown: its folder has no {file.name}, which XLA writes with --xla_dump_hlo_as_text."]


def _unknown_if_taken(tag: Tag, platform: str) -> Tag:
    """The tag; its state is "unknown" if the compiler may have taken it, and there are no modules after passes to tell."""
    if tag.state != TagState.LOST or not (platform and keys.is_taken(tag.key, platform)):
        return tag
    return Tag(tag.key, tag.value, tag.op, TagState.UNKNOWN, why=_MAY_BE_TAKEN)


def _rows(named: Named) -> Iterator[tuple[str, Sequence[int], Mapping[str, str]]]:
    return ((i.opcode, numbers, i.entries) for i, numbers in named.items() if numbers)


def _notes(last: HloModule, tags: Sequence[Tag], shown: Set[str] | None) -> list[str]:
    """The limits of an audit without the program. `shown` has the keys that XLA saw, if hlotag's HLO pass was on."""
    notes = []
    if taken := sum(tag.why == _MAY_BE_TAKEN for tag in tags):
        notes.append(f"{count(taken, 'tag')} may be lost or consumed: {_MAY_BE_TAKEN}.")
    if unknown := sum(tag.state == TagState.UNKNOWN and tag.why != _MAY_BE_TAKEN for tag in tags):
        tagged = sum(bool(tags_of(i.entries)) for i in last.instructions())
        notes.append(
            f"The modules do not say where {unknown} of {len(tags)} tags went, because several operations have one name. "
            f"{count(tagged, 'instruction')} of the optimized module {'has' if tagged == 1 else 'have'} tags. To follow "
            "each tag, audit the program: hlotag.audit(function, ...)."
        )
    written = dict.fromkeys(key for i in last.instructions() for key in tags_of(i.entries))
    if hidden := [key for key in written if shown is not None and key not in shown]:
        notes.append(
            f"XLA did not see the keys {list_some(hidden)}, so the folder does not say which operations have them. To dump them, "
            f"call hlotag.register_key({hidden[0]!r}, compiler=True) before the program is compiled."
        )
    return notes


def _unknown_if_ambiguous(tag: Tag, lineage: Lineage) -> Tag:
    """The tag; its state is "unknown" if the dump does not determine it."""
    # XLA merges consecutive layout operations into one instruction with the name of any of them.
    may_be_carried = tag.op.id in lineage.unsure_if_gone or (lineage.ambiguous and kind_of(tag.op.name) == Kind.LAYOUT)
    if tag.op.id in lineage.unsure or (tag.state == TagState.ELIMINATED and may_be_carried):
        why = "the operation shares its name with others, and instructions have that name"
        return Tag(tag.key, tag.value, tag.op, TagState.UNKNOWN, by=tag.by, why=why)
    return tag
