# SPDX-License-Identifier: Apache-2.0
"""The audit of a program: of functions, lowered and compiled programs, and modules, which are compiled and read here."""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotag import _compat
from hlotag._text import list_some
from hlotag._util import interrupts
from hlotag._util.arguments import show
from hlotag._util.deep import with_room
from hlotag._util.groups import group
from hlotag._util.progress import step, track
from hlotag._util.version import VERSION
from hlotag.audits import classify, dumps, effects, liveness, program
from hlotag.audits.classify import Capture, no_collection
from hlotag.audits.effects.schedule import Schedule
from hlotag.audits.evidence import PASSES, Evidence, Named, Passes
from hlotag.audits.matching import Matching
from hlotag.audits.model import Form, Op, with_work
from hlotag.audits.views import Audit
from hlotag.errors import ArgumentError, ParseError
from hlotag.hlo import HloModule
from hlotag.hlo.inserted import InsertedRules
from hlotag.hlo.join import sources
from hlotag.hlo.module import Instruction, of_executable
from hlotag.hlo.opcodes import Kind, kind_of
from hlotag.hlo.origins import directly_in, walk
from hlotag.lowering import hlo_stage
from hlotag.lowering.staging import under
from hlotag.mlir.modules import BYTECODE_MAGIC, copy_of, nesting_depth, parse_module, to_bytecode
from hlotag.passes.jax_artifacts import module_in
from hlotag.passes.pipeline import kept_reports, pipeline_text, quote, run_or_raise
from hlotag.tagging import state, tags
from hlotag.tagging.state import active, unique

if TYPE_CHECKING:
    import jax
    from jaxlib.mlir import ir

_MAX_DEPTH = 128  # of operations in regions; at about 200 XLA's threads overflow their stacks
# Bytes of a module, constants included, up to which XLA dumps it after every pass by default: about sixty copies.
_MAX_DUMPED = 4 << 20

# The key of a memory space, and the custom call that has it.
_PLACEMENT, _PLACE = "_xla_buffer_placement", "annotate_device_placement"

_WITH_STAGE = "The module was compiled with hlotag's HLO stage, as hlotag.enable() does."
_WITHOUT_STAGE = "The module was compiled without hlotag's HLO stage, as JAX alone does."
_NOT_IN_TEXT = "StableHLO's text leaves out the tags of what a reduction applies; bytecode has them."
_SHORT_REDUCTION = re.compile(r"\bapplies stablehlo\.")

_NO_BASELINE = "XLA cannot compile the program without the tags, so effects are not compared: "
_NOT_DUMPED = "XLA dumped no modules here: operations that CSE removed are counted as folded away."


def audit(fun: Callable[..., Any] | Any, /, *args: Any, xla_passes: bool = False, effects: bool = True, **kwargs: Any) -> Audit:
    """Finds out where every tag of a program went: through autodiff, hlotag's passes and XLA's passes.

    Lowers the program in the active stage (by JAX alone without one) and compiles it outside JAX's caches, with locations that
    name each operation. Does not run the program.

    Args:
        fun: A function, jitted or not; a `jax.stages.Lowered` or `jax.stages.Compiled`; or the path of a folder with modules that
            XLA dumped.
        *args: The function's arguments: arrays, or `jax.ShapeDtypeStruct`s.
        xla_passes: Whether to name the XLA pass behind every state, for programs of any size. By default, passes are named for
            tags that need attention, if the module has at most 4 MiB. Ignored for a folder, whose dumps are all read.
        effects: Whether to compile a second time, without the tags that the compiler reads, and to compare. Without the
            comparison, effects have no verdict. Programs without such tags are compiled once.
        **kwargs: The function's keyword arguments.

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

    if isinstance(fun, (str, os.PathLike, jax.stages.Lowered, jax.stages.Compiled)) and (args or kwargs):
        raise ArgumentError(f"a {type(fun).__name__} is audited without arguments; pass arguments only with a function")
    if isinstance(fun, jax.stages.Lowered):
        return audit_lowered(fun, xla_passes=xla_passes, compare=effects)
    if isinstance(fun, jax.stages.Compiled):
        return audit_compiled(fun)
    if isinstance(fun, (str, os.PathLike)):
        return dumps.audit_dumps(Path(fun))
    if not callable(fun):
        raise ArgumentError(f"hlotag.audit needs a function, a Lowered, a Compiled or a folder, not {type(fun).__name__}")
    return audit_and_compile(fun, args, kwargs, xla_passes=xla_passes, compare=effects).audit


@dataclasses.dataclass(frozen=True)
class Audited:
    """A program with its audit: its `jax.stages.Lowered`, and the `jax.stages.Compiled` whose instructions the audit names."""

    audit: Audit
    lowered: jax.stages.Lowered
    compiled: jax.stages.Compiled


def audit_and_compile(
    fun: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    xla_passes: bool = False,
    compare: bool = False,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Audited:
    """Audits a function, and keeps what it was compiled to. Most options are those of `audit`.

    `options` are further options of the compiler, by JAX's name of a platform. Raises ArgumentError if `fun.lower` makes no
    `jax.stages.Lowered`.
    """
    with recording() as stage:
        with kept_reports() as reports, step("lowering"):
            lowered = _lower(fun, *args, **kwargs)
        further = (options or {}).get(_compat.modules.platform_of(lowered), {})
        found, compiled = _audit_and_compile_lowered(lowered, xla_passes=xla_passes, compare=compare, options=further)
    return Audited(dataclasses.replace(found, reports=list(dict.fromkeys(reports)), is_off=stage is None), lowered, compiled)


def _lower(fun: Any, *args: Any, **kwargs: Any) -> Any:
    """Lowers a function, jitted or not. Raises ArgumentError if its `lower` makes no `jax.stages.Lowered`."""
    import jax.stages

    lowered = getattr(fun, "lower", jax.jit(fun).lower)(*args, **kwargs)
    if not isinstance(lowered, jax.stages.Lowered):
        lowered = getattr(lowered, "lowered", lowered)  # equinox.filter_jit wraps the Lowered.
    if not isinstance(lowered, jax.stages.Lowered):
        made = f"{type(lowered).__module__}.{type(lowered).__qualname__}"
        raise ArgumentError(f"hlotag.audit needs a jax.stages.Lowered, and {show(fun)}.lower made a {made}; pass jax.jit of it")
    return lowered


def recording() -> AbstractContextManager[Any]:
    """Makes a block trace and lower programs anew in the active stage, with the origins of tags recorded in operations."""
    stage = active()
    # Not `unique`: passes report only if the program is lowered anew.
    return under(stage and dataclasses.replace(stage, debug_origins=True))


def audit_lowered(lowered: jax.stages.Lowered, *, xla_passes: bool = False, compare: bool = True) -> Audit:
    """Audits a `jax.stages.Lowered`: compiles a copy of it. The options are those of `audit`."""
    return _audit_and_compile_lowered(lowered, xla_passes=xla_passes, compare=compare)[0]


def _audit_and_compile_lowered(
    lowered: jax.stages.Lowered, *, xla_passes: bool, compare: bool, options: Mapping[str, Any] | None = None
) -> tuple[Audit, Any]:
    further = options or {}
    original: Any = lowered.compiler_ir("stablehlo")
    module = _compat.modules.read_bytecode(to_bytecode(original))
    with step("reading the module"):
        read = program.read(module)
    first = HloModule(_compat.modules.with_module(lowered, module).compiler_ir("hlo").as_serialized_hlo_module_proto())

    def compiled(module: ir.Module, options: dict[str, Any]) -> Any:
        with _compat.modules.without_disk_cache():
            return _compat.modules.with_module(lowered, module).compile({**options, **further})

    with _prepare(module, hlo_stage.stage_of(original)):
        platform = _compat.modules.platform_of(lowered)
        found, executable = _compile_and_audit(read, compiled, first, platform, xla_passes=xla_passes, compare=compare)
    return dataclasses.replace(found, dropped=tags.find_dropped(original), source_root="/"), executable


def audit_module(
    source: bytes, filename: str, pipeline: str = "", *, xla_passes: bool = False, hlo: bool = False, compare: bool = True
) -> Audit:
    """Audits a module without a program: compiles it for JAX's default backend, after the passes of `pipeline`.

    `source` is text, bytecode or the bytes of `Exported.serialize()`.
    `hlo` and `compare` say whether to compile with hlotag's HLO stage, and once more without the tags. Raises ParseError if the
    module cannot be parsed or compiled; PassError or ArgumentError for a pass that fails or a wrong pipeline.
    """
    source = module_in(source, filename)
    text = source if source.startswith(BYTECODE_MAGIC) else source.decode(errors="replace")
    # Locations may be nested deeper than regions.
    options = {"xla_passes": xla_passes, "hlo": hlo, "compare": compare}
    return with_room(nesting_depth(text), lambda: _audit_module(text, filename, pipeline, **options))


def _audit_module(text: str | bytes, filename: str, pipeline: str, *, xla_passes: bool, hlo: bool, compare: bool) -> Audit:
    import jax
    from jaxlib.mlir import ir

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

    def compiled(module: ir.Module, options: dict[str, Any]) -> Any:
        try:
            with module.context:
                return _compat.runtime.compile_module(module, options)
        except RuntimeError as error:
            raise ParseError(f"{filename}: XLA cannot compile the module: {error}") from None

    with _prepare(module, unique(state.Stage("", VERSION)) if hlo else None):
        found, _ = _compile_and_audit(read, compiled, None, jax.default_backend(), xla_passes=xla_passes, compare=compare)
    notes = [_WITH_STAGE if hlo else _WITHOUT_STAGE]
    if isinstance(text, str) and _SHORT_REDUCTION.search(text):
        notes.append(_NOT_IN_TEXT)
    return dataclasses.replace(found, notes=[*found.notes, *notes], reports=list(dict.fromkeys(reports)))


@contextmanager
def _prepare(module: ir.Module, stage: state.Stage | None) -> Iterator[None]:
    """A block in which a module is compiled with the HLO stage of `stage`. `hlotag.disable` elsewhere does not end it."""
    with nullcontext() if stage is None else under(stage):
        if stage is not None:
            hlo_stage.prepare(module, stage)
        yield


def _compile_and_audit(
    read: program.Program,
    compiled: Callable[[Any, dict[str, Any]], Any],
    first: HloModule | None,
    platform: str,
    *,
    xla_passes: bool,
    compare: bool,
) -> tuple[Audit, Any]:
    """Compiles a program, follows its tags, and compares it with the program without them.

    `compiled` compiles a module with options of XLA. `first` is XLA's input module; None for that of XLA's dump.
    """
    every_pass = xla_passes or len(to_bytecode(read.origins.module)) <= _MAX_DUMPED
    with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
        with step("compiling"), interrupts.hold(), hlo_stage.recorded() as records:
            executable = compiled(read.origins.module, _dump_options(folder, every_pass))
        dump = None
        with nullcontext() if first is None else suppress(ParseError):
            dump = dumps.largest(dumps.find(Path(folder)))
            first = first or dumps.read(dump.ends[0])
        captures = [_capture(Form.UNOPTIMIZED, first, read)] if first else []
        modules = of_executable(executable)[:1]
        for last in modules:
            captures.append(_capture_restored(records[-1], last, read) if records else _capture(Form.OPTIMIZED, last, read))
        found = _finish(read, captures, dump, platform, every_pass=every_pass, name_all=xla_passes)
    found = dataclasses.replace(found, hlo_stage=bool(records))
    rules = records[-1].inserted if records else InsertedRules({})
    return (_with_effects(found, read, modules[0], compiled if compare else None, rules) if modules else found), executable


def _dump_options(folder: str, every_pass: bool) -> dict[str, Any]:
    """Options that make XLA dump its module: after each pass, or only around the passes that explain missing tags."""
    passes = ".*" if every_pass else f"^({'|'.join(PASSES)})$"
    return {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True, "xla_dump_hlo_pass_re": passes}


def _depth(module: ir.Module) -> int:
    """The nesting depth of operations in regions."""
    depth, level = 0, [module.operation]
    while level:
        depth += 1
        level = [inner for operation in level for inner in directly_in(operation)]
    return depth


def audit_compiled(compiled: jax.stages.Compiled) -> Audit:
    """Audits a `jax.stages.Compiled`, which has only its optimized module: lost tags are not found."""
    module = of_executable(compiled)[0]
    found = dumps.of_modules(module, module)
    note = "A compiled program has only its optimized module: the audit cannot find tags that XLA removed."
    return dataclasses.replace(found, notes=[*found.notes, note], source_root="/")


def _capture_restored(record: hlo_stage.Record, last: HloModule, read: program.Program) -> Capture:
    """The module after the HLO stage: names from the stage's input, which still has the numbers; attributes from its output."""
    capture = _capture(Form.OPTIMIZED, record.before, read)
    after = {i.name: i.attributes for i in record.after.instructions()}
    left = {i.name for i in last.instructions()}
    named, joined, stands_for, restored = {}, {}, {}, {}
    for i in record.before.instructions():
        before = i.attributes
        if i.name in after:
            i.attributes = after[i.name]
            if keys := {key for key, value in after[i.name].items() if before.get(key) != value}:
                restored[i.name] = keys
        stands_for[i] = _ids_of(record.ids[i.name], read)
        kind = kind_of(i.opcode)
        if kind == Kind.GLUE and i.name not in left:  # XLA removes barriers and the glue around them after the stage.
            continue
        found = named[i] = capture.named[i]
        # Data flow is no evidence for a nameless move whose only attributes are those that the stage restored.
        joined[i] = tuple([n for n in capture.joined[i] if before or n in found or kind == Kind.HEAVY])
    return dataclasses.replace(capture, named=named, joined=joined, stands_for=stands_for, restored=restored, last=last)


def _live(read: program.Program) -> set[int]:
    """The operations that the program's results depend on."""
    found = liveness.live_operations(read.origins.module)
    return {op for n, op in read.op_of.items() if read.origins.operations[n] in found}


def _passes(read: program.Program, first: Named, dump: dumps.Dump | None) -> Passes:
    """The passes of a dump, each with the module that it left. The first entry is the module before all passes."""
    files = track(dump.passes if dump else [], "reading passes")
    return [("", first), *((name, _find_named(dumps.read(file), read)) for name, file in files)]


def _finish(
    read: program.Program,
    captures: list[Capture],
    dump: dumps.Dump | None,
    platform: str,
    *,
    every_pass: bool = False,
    name_all: bool = False,
) -> Audit:
    evidence = Evidence(read.ops, lambda: _live(read), lambda: _passes(read, captures[0].named, dump))
    with step("following tags"), no_collection():
        found = classify.classify(read.ops, read.tags, captures, evidence)
        tags_found = found.tags
        if every_pass and (name_all or any(tag.state.needs_attention for tag in found.tags)):
            modules = [*evidence.passes[1:], ("", captures[-1].named)]
            tags_found = classify.with_passes(found.tags, modules, only_attention=not name_all)
        fusions = captures[-1].module.fusions
        ops = [_with_instructions(op, found.main.get(op.id, ()), fusions) for op in read.ops]
        instructions = captures[-1].origins(ops)
        ops = with_work(ops, instructions)
        tags_found = [tag._replace(op=ops[tag.op.id]) for tag in tags_found]
    return Audit(
        name=read.name,
        ops=ops,
        tags=tags_found,
        instructions=instructions,
        strays=found.strays,
        platform=platform,
        forms=list(Form),
        notes=[] if dump else [_NOT_DUMPED],
        instruction_count=len(captures[-1].module),
    )


def _with_effects(
    found: Audit,
    read: program.Program,
    module: HloModule,
    compiled: Callable[[Any, dict[str, Any]], Any] | None,
    rules: InsertedRules,
) -> Audit:
    """The audit with the effects of its tags.

    `compiled` compiles another module as `module` was compiled; None for no comparison. `rules` are for inserted collectives.
    """
    present = {tag.key for tag in found.tags} | rules.keys()
    names = effects.keys_to_compare(present, module, found.platform) if compiled else set()
    tagged, untagged, notes, inserted = None, None, found.notes, ()
    if names and compiled:
        try:
            with step("compiling without the tags"), interrupts.hold():
                executable = compiled(_copy_without(names, read.origins.module), {})
            last = of_executable(executable)[0]
            untagged = _schedule(last, read, found.ops, _find_inserted(last, read, rules))
        except (RuntimeError, ParseError) as error:
            notes = [*notes, f"{_NO_BASELINE}{str(error).splitlines()[0]}"]
    if names or effects.keys_to_judge(present, found.platform):
        collectives = _find_inserted(module, read, rules)
        inserted = tuple(dict.fromkeys((key, value, op) for op, _, entries in collectives for key, value in entries.items()))
        tagged = _schedule(module, read, found.ops, collectives)
        notes = [*notes, *_describe_inserted(inserted)]
    effects_found = effects.find(found.tags, found.ops, tagged, untagged, found.platform, inserted=inserted)
    return dataclasses.replace(
        found,
        effects=effects_found,
        tags=effects.without_lost(found.tags, effects_found),
        apart=effects.find_apart(found.tags, tagged, untagged) if tagged and untagged else (),
        notes=notes,
    )


def _copy_without(names: AbstractSet[str], module: ir.Module) -> ir.Module:
    """A copy of a module without some keys. XLA cannot compile a placement that names no memory."""
    copy = copy_of(module)
    run_or_raise(copy, f"hlotag-strip{{keys={','.join(quote(name) for name in sorted(names))}}}")
    if _PLACEMENT in names:
        for operation in [op for op in walk(copy.operation) if op.name == "stablehlo.custom_call"]:
            if operation.attributes["call_target_name"].value == _PLACE:
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()
    return copy


# Collectives that XLA inserted: each as an operation, its instruction, and what rules give it.
_Inserted = list[tuple[Op, Instruction, dict[str, str]]]


def _find_inserted(module: HloModule, read: program.Program, rules: InsertedRules) -> _Inserted:
    """The collectives that XLA inserted and that rules match. Those of one place are one operation, in each module the same."""
    collectives = []
    for found, entries in rules.matches_in(module, read.origins):
        place = zlib.crc32(f"{found.opcode} {found.scope} {found.phase}".encode())
        collectives.append((Op(-1 - place, found.opcode, found.scope, phase=found.phase), found.instruction, entries))
    return collectives


def _describe_inserted(inserted: Sequence[tuple[str, str, Op]]) -> Iterator[str]:
    """Says which tags rules gave to collectives that XLA inserted."""
    named = (((key, value), f"{op.name} of {op.scope}, {op.phase}" if op.scope else op.name) for key, value, op in inserted)
    for (key, value), found in group(named).items():
        yield f"A rule gives {key}={value} to collectives that XLA inserted: {list_some(found)}"


def _schedule(module: HloModule, read: program.Program, ops: Sequence[Op], inserted: _Inserted) -> Schedule:
    """The schedule of a compiled module. Products that XLA merged share an instruction, as in the audit's `ops`."""
    capture = _capture(Form.OPTIMIZED, module, read)
    main = Matching(read.ops, capture.named, capture.joined, capture.fusions).main
    owner = {name: op.id for op in ops if op.id in main for name in op.instructions}
    missing = {op.id: owner[name] for op in ops if op.id not in main for name in op.instructions if name in owner}
    computed = main | {op: main[other] for op, other in missing.items()}
    for op, instruction, _ in inserted:
        computed.setdefault(op.id, []).append(instruction)
    return Schedule(module, computed, group((call, i) for i, calls in capture.callers.items() for call in calls))


def _with_instructions(op: Op, instructions: Sequence[Instruction], fusions: Mapping[int, Instruction]) -> Op:
    """An operation with its instructions and their fusions; `fusions` are by the id of their computation."""
    around = dict.fromkeys(fusions[i.computation.id].name for i in instructions if i.computation.id in fusions)
    return op._replace(instructions=tuple([i.name for i in instructions]), fusions=tuple(around)) if instructions else op


def _capture(form: Form, module: HloModule, read: program.Program) -> Capture:
    named = _find_named(module, read)
    found = sources(module, read.origins.program, (read.origins.ids_and_calls(i.op_name) for i in module.instructions()))
    # An inlined call has no instruction; a remaining call instruction stands for the call, not for the callee's operations.
    joined = {i: (named[i] if _is_call(i, named, read) else _ids_of(numbers, read) or named[i]) for i, numbers in found.items()}
    callers = {i: _ids_of(sorted(called), read) for i in named if (called := read.origins.callers_of(i.op_name))}
    return Capture(form, module, named, joined, callers)


def _is_call(instruction: Instruction, named: Named, read: program.Program) -> bool:
    calls = [read.ops[number].name == "func.call" for number in named[instruction]]
    return instruction.opcode in ("call", "async-start", "async-update", "async-done") and bool(calls) and all(calls)


def _find_named(module: HloModule, read: program.Program) -> Named:
    """By instruction, the operations that it is named after."""
    return {i: _ids_of(read.origins.ids_of(i.op_name), read) for i in module.instructions()}


def _ids_of(numbers: Sequence[int], read: program.Program) -> tuple[int, ...]:
    return tuple(read.op_of[n] for n in numbers if n in read.op_of)
