# SPDX-License-Identifier: Apache-2.0
"""The audit of a program: of functions, lowered and compiled programs, and modules, which are compiled and read here."""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hlotag import _compat
from hlotag._util import interrupts
from hlotag._util.arguments import check_flag, check_keywords, show
from hlotag._util.collection import no_collection
from hlotag._util.groups import group
from hlotag._util.kill_switch import forbids_stages
from hlotag._util.progress import step, track
from hlotag._util.version import VERSION
from hlotag.audits import dumps, effects, program
from hlotag.audits.audit import Audit
from hlotag.audits.effects.schedule import Schedule
from hlotag.audits.joined import Joined, find_renamed
from hlotag.audits.memory import read_memory
from hlotag.audits.states import MERGER, TAKERS, Computing, History, States
from hlotag.audits.unknown import note_unknown_work
from hlotag.errors import ArgumentError, ParseError
from hlotag.hlo import HloModule
from hlotag.hlo.module import MemoryUse, memory_of, of_executable
from hlotag.hlo.opcodes import Kind, kind_of, opcode_of
from hlotag.hlo.origins import directly_in, walk
from hlotag.lowering import hlo_pass
from hlotag.lowering.staging import under
from hlotag.mlir.modules import BYTECODE_MAGIC, copy_of, parse_module, to_bytecode
from hlotag.passes.jax_artifacts import module_to_compile
from hlotag.passes.pipeline import kept_reports, pipeline_text, remove_keys, run_or_raise
from hlotag.results.tags import Effect, Tag, TagState
from hlotag.tagging import keys, state, tags
from hlotag.tagging.state import active, unique
from hlotag.tagging.tags import Dropped

if TYPE_CHECKING:
    import jax
    from jaxlib.mlir import ir

    from hlotag.errors import Diagnostic

_MAX_DEPTH = 128  # of operations in regions; at about 200 XLA's threads overflow their stacks
# Operations up to which XLA's modules after its passes are written and read by default: about sixty copies.
_MAX_OPS = 5_000

# The key of a memory space, and the custom call that has it.
_PLACEMENT, _PLACE = "_xla_buffer_placement", "annotate_device_placement"

_WITH_STAGE = "The module was compiled with hlotag's HLO pass, as hlotag.enable() does."
_WITHOUT_STAGE = "The module was compiled without hlotag's HLO pass, as JAX alone does."
_NOT_IN_TEXT = "StableHLO's text leaves out the tags of what a reduction applies; bytecode has them."
_SHORT_REDUCTION = re.compile(r"\bapplies stablehlo\.")

_NO_BASELINE = "XLA cannot compile the program without the tags, so effects are not compared: "
_NO_BUFFERS = "XLA wrote no assignment of buffers here, so its memory is unknown."
_NOT_DUMPED = "XLA wrote no modules here, so its passes are not named."


def audit(
    fun: Callable[..., Any] | Any,
    /,
    *args: Any,
    xla_passes: bool = False,
    effects: bool = True,
    memory: bool = False,
    kwargs: Mapping[str, Any] | None = None,
) -> Audit:
    """Finds out where every tag of a program went: through autodiff, hlotag's passes and XLA's passes.

    Lowers the program in the active stage (by JAX alone without one) and compiles it outside JAX's caches, with locations that
    name each operation. Does not run the program.

    Args:
        fun: A function, jitted or not; a `jax.stages.Lowered` or `jax.stages.Compiled`; or the path of a folder with modules that
            XLA dumped, or of a file of HLO.
        *args: The function's arguments: arrays, or `jax.ShapeDtypeStruct`s.
        xla_passes: Whether to name the XLA pass behind every state, for programs of any size. By default, passes are named for
            lost tags, if the program has at most 5,000 operations. Ignored for a folder or file of HLO, which is only read.
        effects: Whether to compile a second time, without the tags that the compiler reads, and to compare.
            Without the comparison, effects have no verdict. Programs without such tags are compiled once.
        memory: Whether to find what is in memory at the program's peak, `Audit.memory`. XLA's passes are then named only with
            `xla_passes`. For HLO, the assignment of buffers that XLA dumped with the module says it.
        kwargs: The function's keyword arguments: `hlotag.audit(step, x, kwargs={"training": True})`.

    Returns:
        The audit.

    Raises:
        ArgumentError: `fun` is something else, or arguments are given for a `Lowered`, a `Compiled` or a folder.
        ParseError: The folder has no modules that XLA dumped.

    Examples:
        >>> def f(x):
        ...     return hlotag.tag(x @ x, {"layer": "1"})
        >>> with hlotag.stage():
        ...     audit = hlotag.audit(f, jnp.ones((4, 4)))
        >>> [str(tag.state) for tag in audit.tags]
        ['kept']
    """
    import jax.stages

    for name, value in {"xla_passes": xla_passes, "effects": effects, "memory": memory}.items():
        check_flag(f"{name}=", value)
    if isinstance(fun, (str, os.PathLike, jax.stages.Lowered, jax.stages.Compiled)) and (args or kwargs):
        raise ArgumentError(f"a {type(fun).__name__} is audited without arguments; pass arguments only with a function")
    if isinstance(fun, (str, os.PathLike)):
        return dumps.audit_dumps(Path(fun), memory=memory)
    if not callable(fun) and not isinstance(fun, jax.stages.Lowered):
        raise ArgumentError(f"hlotag.audit needs a function, a Lowered, a Compiled or a folder, not {type(fun).__name__}")
    keywords = check_keywords(kwargs)
    return audit_and_compile(fun, args, keywords, xla_passes=xla_passes, compare=effects, memory=memory).audit


@dataclasses.dataclass(frozen=True)
class Audited:
    """A program with its audit.

    Attributes:
        audit: The audit.
        args_info: What JAX knows of its arguments: types, and which are donated.
        compiled: The `jax.stages.Compiled` whose instructions the audit names.
    """

    audit: Audit
    args_info: Any
    compiled: jax.stages.Compiled


def audit_and_compile(
    fun: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: Callable[[str], Mapping[str, Any]] = lambda _: {},
    **asked: bool,
) -> Audited:
    """Audits a function, a `Lowered` or a `Compiled`, and keeps what it was compiled to.

    `options` returns further options of the compiler for JAX's name of a platform; others are those of `compile_and_audit`.
    Raises ArgumentError if `fun.lower` makes no `jax.stages.Lowered`.
    """
    import jax.stages

    if isinstance(fun, jax.stages.Compiled):
        return Audited(audit_compiled(fun), fun.args_info, fun)
    if isinstance(fun, jax.stages.Lowered):
        return _audit_and_compile_lowered(fun, options, asked)
    with recording() as stage:
        with step("lowering"):
            lowered, reports = _lower(fun, args, kwargs)
        return _audit_and_compile_lowered(lowered, options, asked, reports, is_off=stage is None)


def _lower(fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, list[Diagnostic]]:
    """Lowers a function, jitted or not. Returns what passes reported of the program, too.

    Raises ArgumentError if its `lower` makes no `jax.stages.Lowered`.
    """
    import jax.stages

    jitted = fun if hasattr(fun, "lower") else jax.jit(fun)
    if isinstance(jitted, type(jax.jit(show))):  # A trace may evaluate, and so lower, other programs.
        jitted, args, kwargs = jitted.trace(*args, **kwargs), (), {}
    with kept_reports() as reports:
        lowered = jitted.lower(*args, **kwargs)
    if not isinstance(lowered, jax.stages.Lowered):
        lowered = getattr(lowered, "lowered", lowered)  # equinox.filter_jit wraps the Lowered.
    if not isinstance(lowered, jax.stages.Lowered):
        made = f"{type(lowered).__module__}.{type(lowered).__qualname__}"
        raise ArgumentError(f"hlotag.audit needs a jax.stages.Lowered, and {show(fun)}.lower made a {made}; pass jax.jit of it")
    return lowered, reports


def recording() -> AbstractContextManager[Any]:
    """Makes a block trace and lower programs anew in the active stage, with the origins of tags recorded in operations."""
    stage = active()
    # Not `unique`: passes report only if the program is lowered anew.
    return under(stage and dataclasses.replace(stage, debug_origins=True))


def _audit_and_compile_lowered(
    lowered: jax.stages.Lowered,
    options: Callable[[str], Mapping[str, Any]],
    asked: Mapping[str, bool],
    reports: Sequence[Diagnostic] = (),
    *,
    is_off: bool = False,
) -> Audited:
    original: Any = lowered.compiler_ir("stablehlo")
    module = _compat.modules.read_bytecode(to_bytecode(original))
    platform = _compat.modules.platform_of(lowered)
    further = options(platform)
    with step("reading the module"):
        read = program.read(module)

    def compiled(module: ir.Module, own: dict[str, Any]) -> Any:
        with _compat.modules.without_disk_cache(), hlo_pass.observed_by(None):
            return _compat.modules.with_module(lowered, module).compile({**own, **further})

    about = About(tags.find_dropped(original), list(dict.fromkeys(reports)), is_off=is_off, source_root="/")
    with prepared(module, hlo_pass.stage_of(original)):
        found, executable = compile_and_audit(read, compiled, platform, about, **asked)
    return Audited(found, lowered.args_info, executable)


def audit_module(
    source: bytes,
    filename: str,
    pipeline: str = "",
    *,
    hlo: bool = False,
    sizes: Mapping[str, int] | None = None,
    **asked: bool,
) -> Audit:
    """Audits a module without a program: compiles it for JAX's default backend, after the passes of `pipeline`.

    `source` is text, bytecode or the bytes of `Exported.serialize()`, with `sizes` of its symbolic dimensions. `hlo` says whether
    to compile with hlotag's HLO pass; other options are those of `compile_and_audit`. Raises ParseError if the module cannot be
    parsed or compiled; PassError or ArgumentError for a pass that fails or a wrong pipeline.
    """
    import jax
    from jaxlib.mlir import ir

    source = module_to_compile(source, filename, sizes or {})
    text = source if source.startswith(BYTECODE_MAGIC) else source.decode(errors="replace")
    with _compat.runtime.ir_context():
        module = parse_module(text, filename)
        if (depth := _depth(module)) > _MAX_DEPTH:
            raise ParseError(
                f"{filename}: operations are nested {depth} deep; the limit is {_MAX_DEPTH}, because XLA crashes at about 200"
            )
        with kept_reports() as reports:
            if pipeline:
                run_or_raise(module, pipeline_text(pipeline), source=filename, debug_origins=True)
        if "sym_name" not in module.operation.attributes:
            module.operation.attributes["sym_name"] = ir.StringAttr.get("module")
    read = program.read(module, filename)
    hlo = hlo and not forbids_stages()

    def compiled(module: ir.Module, options: dict[str, Any]) -> Any:
        try:
            with hlo_pass.errors_explained(read.origins), module.context:
                return _compat.runtime.compile_module(module, options)
        except RuntimeError as error:
            raise ParseError(f"{filename}: XLA cannot compile the module: {error}") from None

    notes = [_WITH_STAGE if hlo else _WITHOUT_STAGE]
    if isinstance(text, str) and _SHORT_REDUCTION.search(text):
        notes.append(_NOT_IN_TEXT)
    about = About(reports=list(dict.fromkeys(reports)), notes=notes)
    with prepared(module, unique(state.Stage("", VERSION)) if hlo else None):
        found, _ = compile_and_audit(read, compiled, jax.default_backend(), about, **{"compare": True, **asked})
    return found


@contextmanager
def prepared(module: ir.Module, stage: state.Stage | None) -> Iterator[None]:
    """A block in which a module is compiled with the HLO pass of `stage`. `hlotag.disable` elsewhere does not end it."""
    with nullcontext() if stage is None else under(stage):
        if stage is not None:
            hlo_pass.prepare(module, stage)
        yield


class About(NamedTuple):
    """What an audit says of a program besides what its module says: fields of `Audit`, whose last `notes` these are."""

    dropped: Sequence[Dropped] = ()
    reports: Sequence[Diagnostic] = ()
    is_off: bool = False
    source_root: str | None = None
    notes: Sequence[str] = ()


def compile_and_audit(
    read: program.Program,
    compiled: _Compile,
    platform: str,
    about: About,
    *,
    xla_passes: bool = False,
    compare: bool = False,
    memory: bool = False,
) -> tuple[Audit, Any]:
    """Compiles a program, joins what XLA made of it, and judges its tags.

    Args:
        read: The program.
        compiled: Compiles a module with options of XLA.
        platform: JAX's name of the platform.
        about: What else the audit says of the program.
        xla_passes: Whether to name XLA's passes, for programs of any size.
        compare: Whether to compare it with the program without its tags.
        memory: Whether to find what is in memory at the peak.

    Returns:
        The audit and the executable.
    """

    def explained(module: ir.Module, options: dict[str, Any]) -> Any:
        with hlo_pass.errors_explained(read.origins):
            return compiled(module, options)

    every_pass = xla_passes or len(read.ops) <= _MAX_OPS
    # With texts of buffers XLA writes a text of each module, too.
    wanted = "" if memory and not xla_passes else _passes_to_dump(read, every_pass=every_pass)
    with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
        made = _compile(read.origins.module, explained, _dump_options(folder, wanted, memory=memory))
        with step("following tags"), no_collection():
            states = States(read.ops, read.tags, _join(read, made.module, made.record))
            tags_found = states.find()
        notes = []
        if wanted and (xla_passes or any(map(_is_open, tags_found))):
            states.history.is_whole = every_pass
            notes = _read_passes(Path(folder), read, states.history)
            tags_found = states.find()
        in_memory = read_memory(Path(folder), made.module, states.instructions) if memory else None
    notes += note_unknown_work(made.module)
    notes += [_NO_BUFFERS] if memory and in_memory is None else []
    found, why = _judge(tags_found, states, read, made, explained if compare else None, platform=platform)
    audit = Audit(
        name=read.name,
        ops=states.ops,
        tags=effects.without_lost(tags_found, found),
        effects=found,
        instructions=states.instructions,
        platform=platform,
        instruction_count=len(made.module),
        hlo_pass=made.record is not None,
        memory=in_memory,
        dropped=about.dropped,
        reports=about.reports,
        is_off=about.is_off,
        source_root=about.source_root,
        notes=[*notes, *why, *about.notes],
    )
    return audit, made.executable


_Compile = Callable[[Any, dict[str, Any]], Any]


class _Made(NamedTuple):
    """What a program was compiled to.

    Attributes:
        executable: The executable.
        module: The module after XLA's passes.
        memory: What it reserves in memory; None if that is unknown.
        record: What the HLO pass did; None if it had no work.
    """

    executable: Any
    module: HloModule
    memory: MemoryUse | None
    record: hlo_pass.Record | None


def _compile(module: ir.Module, compiled: _Compile, options: dict[str, Any], what: str = "compiling") -> _Made:
    with step(what), interrupts.hold(), hlo_pass.recorded() as records:
        executable = compiled(module, options)
    (last,) = of_executable(executable)[:1]
    return _Made(executable, last, memory_of(executable), records[-1] if records else None)


def _is_open(tag: Tag) -> bool:
    """Whether XLA's passes may say more of a tag than its state: a pass lost or read it, or made one product of several."""
    is_gone = tag.state == TagState.ELIMINATED
    return tag.needs_attention or (is_gone and (keys.is_taken(tag.key) or opcode_of(tag.op.name) == "dot"))


def _passes_to_dump(read: program.Program, *, every_pass: bool) -> str:
    """A pattern of the passes after which XLA is to write its module; empty for none."""
    if not read.tags or every_pass:
        return ".*" if read.tags else ""
    is_any_taken = any(keys.is_taken(key) for found in read.tags.values() for key, _ in found)
    passes = (MERGER, *TAKERS) if is_any_taken else (MERGER,)
    return f"^({'|'.join(passes)})$"


def _dump_options(folder: str, passes: str, *, memory: bool) -> dict[str, Any]:
    if not passes and not memory:
        return {}
    options = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True, "xla_dump_hlo_pass_re": passes}
    return options | ({"xla_dump_hlo_as_text": True} if memory else {})


def _read_passes(folder: Path, read: program.Program, history: History) -> list[str]:
    """Adds to `history` the modules that XLA wrote. Returns notes."""
    try:
        dump = dumps.largest(dumps.find(folder))
    except ParseError:
        return [_NOT_DUMPED]
    first, last = dump.ends
    before = first
    for name, file in track([("", first), *dump.passes, ("", last)], "reading passes"):
        module = dumps.read(file)
        history.add(name, read.read_names(module))
        if name == MERGER:
            history.merged = read.find_merged(dumps.read(before), module)
        before = file
    return []


def _depth(module: ir.Module) -> int:
    """The nesting depth of operations in regions."""
    depth, level = 0, [module.operation]
    while level:
        depth += 1
        level = [inner for operation in level for inner in directly_in(operation)]
    return depth


def audit_compiled(compiled: jax.stages.Compiled) -> Audit:
    """Audits a `jax.stages.Compiled`, which has only its optimized module: lost tags are not found."""
    return dumps.audit_optimized(of_executable(compiled)[0], source_root="/")


def _join(read: program.Program, module: HloModule, record: hlo_pass.Record | None) -> Joined:
    """The compiled module, joined. With the HLO pass, the module is that before it, which has the numbers."""
    if record is None:
        return read.join(module)
    found = read.join(record.before, record.inserted)
    equal = {
        i: more
        for i in found.named
        if len(all_ids := read.ids_of(record.ids[i.name])) > len(found.joined[i])
        and (more := tuple([n for n in all_ids if n not in found.joined[i]]))
    }
    after = {i.name: i.entries for i in record.after.instructions()}
    left = {i.name for i in module.instructions()}
    # XLA removes barriers and the glue around them after the stage.
    joined = {i: numbers for i, numbers in found.joined.items() if i.name in left or kind_of(i.opcode) != Kind.GLUE}
    renamed = find_renamed(found.named, read.follow(module))
    return dataclasses.replace(
        found, joined=joined, equal=equal, restored=after, hidden=record.hidden, last=module, renamed=renamed
    )


def _judge(
    tags_found: Sequence[Tag], states: States, read: program.Program, made: _Made, compiled: _Compile | None, *, platform: str
) -> tuple[tuple[Effect, ...], list[str]]:
    """Finds the effects of tags, and notes why there is no comparison.

    `compiled` compiles the program without the tags, as that of `made` was compiled; None for no comparison.
    """
    names = effects.keys_to_judge({tag.key for tag in tags_found}, platform)
    merged, untagged, notes = states.history.merged, None, []
    if names and compiled:
        try:
            without = _compile(_copy_without(names, read.origins.module), compiled, {}, "compiling without the tags")
            untagged = _schedule(without, read, merged)
        except (RuntimeError, ParseError) as error:
            notes = [f"{_NO_BASELINE}{str(error).splitlines()[0]}"]
    tagged = _schedule(made, read, merged) if names else None
    return effects.find(tags_found, states.ops, tagged, untagged, platform), notes


def _copy_without(names: AbstractSet[str], module: ir.Module) -> ir.Module:
    """A copy of a module without some keys. XLA cannot compile a placement that names no memory."""
    copy = copy_of(module)
    remove_keys(copy, names)
    if _PLACEMENT in names:
        for operation in [op for op in walk(copy.operation) if op.name == "stablehlo.custom_call"]:
            if operation.attributes["call_target_name"].value == _PLACE:
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()
    return copy


def _schedule(made: _Made, read: program.Program, merged: Mapping[int, set[int]]) -> Schedule:
    found = read.join(made.module)
    computing = Computing(read.ops, read.tags, found)
    computing.add_merged(merged)
    inlined = group((call, i) for i, calls in found.callers.items() for call in calls)
    return Schedule(made.module, computing.by_op(), inlined, made.memory)
