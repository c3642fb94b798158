# SPDX-License-Identifier: Apache-2.0
"""Audits functions, lowered and compiled programs, modules, and XLA's dumps."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hlotag import _compat
from hlotag._util import interrupts
from hlotag._util.arguments import shown
from hlotag._util.deep import with_room
from hlotag._util.progress import step, track
from hlotag._util.version import VERSION
from hlotag.audit import classify, consumed, cse, dumps, effects, liveness, program
from hlotag.audit.classify import Capture
from hlotag.audit.garbage import no_collection
from hlotag.audit.model import Op, Stage
from hlotag.audit.views import Audit
from hlotag.errors import ArgumentError, ParseError
from hlotag.hlo import HloModule, prepared
from hlotag.hlo.join import sources
from hlotag.hlo.module import Instruction, of_executable
from hlotag.hlo.opcodes import Kind, kind_of
from hlotag.hlo.origins import directly_in
from hlotag.host.modules import BYTECODE_MAGIC, nesting_depth, parse_module, to_bytecode
from hlotag.lowering import hlo_stage
from hlotag.lowering.staging import under
from hlotag.passes.pipeline import kept_reports, pipeline_text, run_or_raise
from hlotag.tagging import state, tags
from hlotag.tagging.state import active, unique

# By instruction, the operations that it is named after.
Names = Mapping[Instruction, Sequence[int]]

_MAX_DEPTH = 128  # of operations in regions, less than what XLA's threads have stack for
# Bytes of a module, constants included, up to which it is dumped after every pass by default: about sixty copies.
_SMALL = 4 << 20

_WITH_STAGE = "The module was compiled with hlotag's HLO stage, as hlotag.enable() does."
_WITHOUT_STAGE = "The module was compiled without hlotag's HLO stage, as JAX alone does."
_NOT_IN_TEXT = "StableHLO's text leaves out the tags of what a reduction applies; bytecode has them."
_SHORT_REDUCTION = re.compile(r"\bapplies stablehlo\.")

_NOT_DUMPED = "XLA dumped no modules here: operations that it found equal to others are counted as folded away."


def audit(fun: Callable[..., Any] | Any, /, *args: Any, xla_passes: bool = False, **kwargs: Any) -> Audit:
    """Finds out where every tag of a program went: through autodiff, hlotag's passes and XLA's.

    The program is lowered in the stage that is on (by JAX alone if none is) and compiled apart from JAX's caches, under
    locations that name each operation; it is not run.

    Args:
        fun: A function, jitted or not; a `jax.stages.Lowered` or `jax.stages.Compiled`; or the path of a folder that XLA dumped
            modules to.
        *args: What the function would be called with: arrays, or `jax.ShapeDtypeStruct`s.
        xla_passes: Whether to name the pass of XLA's behind every state, of programs of any size; without it, passes are named
            for tags that need attention, if the module has at most 4 MiB. Of a folder, the dumps that are there are used.
        **kwargs: As `args`, by keyword.

    Returns:
        The audit.

    Raises:
        ArgumentError: `fun` is something else, or arguments are given for what takes none.
        ParseError: The folder holds no modules of XLA's.

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
        raise ArgumentError(f"a {type(fun).__name__} is audited as it is, without arguments")
    if isinstance(fun, jax.stages.Lowered):
        return audit_lowered(fun, xla_passes=xla_passes)
    if isinstance(fun, jax.stages.Compiled):
        return audit_compiled(fun)
    if isinstance(fun, (str, os.PathLike)):
        return dumps.audit_dumps(Path(fun))
    if not callable(fun):
        raise ArgumentError(f"hlotag.audit needs a function, a Lowered, a Compiled or a folder, not {type(fun).__name__}")
    with recording(), kept_reports() as reports, step("lowering"):
        lowered = getattr(fun, "lower", jax.jit(fun).lower)(*args, **kwargs)
    if not isinstance(lowered, jax.stages.Lowered):
        lowered = getattr(lowered, "lowered", lowered)  # equinox.filter_jit has one of its own around JAX's.
    if not isinstance(lowered, jax.stages.Lowered):
        made = f"{type(lowered).__module__}.{type(lowered).__qualname__}"
        raise ArgumentError(f"hlotag.audit needs a jax.stages.Lowered, and {shown(fun)}.lower made a {made}; pass jax.jit of it")
    found = audit_lowered(lowered, xla_passes=xla_passes)
    return dataclasses.replace(found, reports=list(dict.fromkeys(reports)))


def recording() -> AbstractContextManager[Any]:
    """Within the block programs are traced and lowered anew, in the stage that is on, and operations say where they come from.

    Returns:
        A context manager.
    """
    now = active()
    # Not `unique`: passes report only if the program is lowered anew.
    return under(now and dataclasses.replace(now, debug_origins=True, identify=True))


def audit_lowered(lowered: Any, *, xla_passes: bool = False) -> Audit:
    """Audits a lowered program: compiles a copy of it.

    Args:
        lowered: A `jax.stages.Lowered`.
        xla_passes: Whether to dump XLA's passes.

    Returns:
        The audit.
    """
    original = lowered.compiler_ir("stablehlo")
    module = _compat.read_bytecode(to_bytecode(original))
    with step("reading the module"):
        read = program.read(module)
    numbered = _compat.lowered_with(lowered, module)
    every_pass = xla_passes or len(to_bytecode(module)) <= _SMALL
    prepared.like(module, original)
    with tempfile.TemporaryDirectory(prefix="hlotag-") as folder:
        with step("compiling"), interrupts.held(), _compat.without_disk_cache(), hlo_stage.recorded() as records:
            unoptimized = HloModule(numbered.compiler_ir("hlo").as_serialized_hlo_module_proto())
            compiled = numbered.compile(_dump_options(folder, every_pass))
        captures = [_capture(Stage.UNOPTIMIZED, unoptimized, read)]
        for optimized in of_executable(compiled)[:1]:
            captures.append(_restored(records[-1], optimized, read) if records else _capture(Stage.OPTIMIZED, optimized, read))
        try:
            dump = dumps.largest(dumps.find(Path(folder)))
        except ParseError:
            dump = None
        dropped = tags.dropped(original)
        platform = _compat.platform_of(lowered)
        found = _finish(read, captures, dump, platform, dropped, every_pass=every_pass, name_all=xla_passes)
        return dataclasses.replace(found, hlo_stage=bool(records), source_root="/")


def audit_module(source: bytes, filename: str, pipeline: str = "", *, xla_passes: bool = False, hlo: bool = False) -> Audit:
    """Audits a module that comes without a program: compiles it for JAX's default backend.

    Args:
        source: Text or bytecode.
        filename: What messages call it.
        pipeline: Passes to run on it first; empty for none.
        xla_passes: Whether to dump XLA's passes.
        hlo: Whether to compile it with hlotag's HLO stage, as `hlotag.enable()` does.

    Returns:
        The audit.

    Raises:
        ParseError: It cannot be read.
        ParseError: XLA does not compile it, or would not survive it.
        PassError, ArgumentError: Of the passes.
    """
    text = source if source.startswith(BYTECODE_MAGIC) else source.decode(errors="replace")
    # Locations may be nested deeper than regions.
    return with_room(nesting_depth(text), lambda: _audit_module(text, filename, pipeline, xla_passes=xla_passes, hlo=hlo))


def _audit_module(text: str | bytes, filename: str, pipeline: str, *, xla_passes: bool, hlo: bool) -> Audit:
    from jaxlib.mlir import ir

    with _compat.ir_context():
        module = parse_module(text, filename)
        if (depth := _depth(module)) > _MAX_DEPTH:
            raise ParseError(
                f"{filename}: operations are nested {depth} deep; XLA ends the process at some 200, so {_MAX_DEPTH} are let in"
            )
        with kept_reports() as reports:
            if pipeline:
                run_or_raise(module, pipeline_text(pipeline), source=filename, debug_origins=True)
        if "sym_name" not in module.operation.attributes:
            module.operation.attributes["sym_name"] = ir.StringAttr.get("module")
    read = program.read(module, filename)
    if hlo:
        hlo_stage.prepare(module, unique(state.Stage("", VERSION)))
    every_pass = xla_passes or len(to_bytecode(module)) <= _SMALL
    with tempfile.TemporaryDirectory(prefix="hlotag-") as folder, step("compiling"):
        try:
            with interrupts.held(), module.context, hlo_stage.recorded() as records:
                platform = _compat.compile_module(module, _dump_options(folder, every_pass))
        except RuntimeError as error:
            raise ParseError(f"{filename}: XLA does not compile it: {error}") from None
        dump = dumps.largest(dumps.find(Path(folder)))
        first, last = map(dumps.read, dump.ends)
        optimized = _restored(records[-1], last, read) if records else _capture(Stage.OPTIMIZED, last, read)
        captures = [_capture(Stage.UNOPTIMIZED, first, read), optimized]
        found = _finish(read, captures, dump, platform, every_pass=every_pass, name_all=xla_passes)
    notes = [_WITH_STAGE if hlo else _WITHOUT_STAGE]
    if isinstance(text, str) and _SHORT_REDUCTION.search(text):
        notes.append(_NOT_IN_TEXT)
    return dataclasses.replace(found, notes=[*found.notes, *notes], reports=list(dict.fromkeys(reports)), hlo_stage=bool(records))


def _dump_options(folder: str, every_pass: bool) -> dict[str, Any]:
    """Has XLA write its module to a folder, before and after the passes that are looked into, or each pass that changes it."""
    passes = ".*" if every_pass else f"^({'|'.join((cse.PASS, *consumed.PASSES))})$"
    return {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True, "xla_dump_hlo_pass_re": passes}


def _depth(module: Any) -> int:
    """How deep operations are nested in regions."""
    depth, level = 0, [module.operation]
    while level:
        depth += 1
        level = [inner for operation in level for inner in directly_in(operation)]
    return depth


def audit_compiled(compiled: Any) -> Audit:
    """Audits a compiled program, of which only the optimized module is left.

    Args:
        compiled: A `jax.stages.Compiled`.

    Returns:
        The tags in the optimized module. A note says that lost tags are not found.
    """
    module = of_executable(compiled)[0]
    found = dumps.of_modules(module, module)
    note = "A compiled program has only its optimized module: the audit cannot find tags that XLA removed."
    return dataclasses.replace(found, notes=[*found.notes, note], source_root="/")


def _restored(record: hlo_stage.Record, last: HloModule, read: program.Program) -> Capture:
    """What the HLO stage made of a module; who is who is seen in what it was given, which still has the numbers."""
    before = {i.name: (i, i.attributes) for i in record.before.instructions()}
    capture = _capture(Stage.OPTIMIZED, record.before, read)
    after = {i.name: i for i in record.after.instructions()}
    restored = {
        name: {key for key, value in after[name].attributes.items() if entries.get(key) != value}
        for name, (_, entries) in before.items()
        if name in after
    }
    stands_for = {instruction: _known(record.ids[name], read) for name, (instruction, _) in before.items()}
    # Its view of the instructions has the names, the other module the attributes that they ended with.
    for name, (instruction, _) in before.items():
        if name in after:
            instruction.attributes = after[name].attributes
    restored = {name: keys for name, keys in restored.items() if keys}
    # Barriers, and what carries values past them, are taken away after the stage.
    left = {i.name for i in last.instructions()}
    gone = {i for i in capture.named if kind_of(i.opcode) == Kind.GLUE and i.name not in left}
    named = {i: found for i, found in capture.named.items() if i not in gone}
    # Data flow is no evidence of nameless moves that have the stage's entries only.
    joined = {
        i: tuple(n for n in capture.joined[i] if before[i.name][1] or n in found or kind_of(i.opcode) == Kind.HEAVY)
        for i, found in named.items()
    }
    return dataclasses.replace(capture, named=named, joined=joined, stands_for=stands_for, restored=restored, compiled=last)


class _Evidence:
    """What explains a missing tag. Each part takes time to find, so it is found when it is first asked for.

    Args:
      read: the program.
      first: the names in the module that XLA was given.
      dump: the modules after XLA's passes; None if there are none.
    """

    def __init__(self, read: program.Program, first: Names, dump: dumps.Dump | None):
        self._read = read
        self._first = first
        self._dump = dump

    @functools.cached_property
    def live(self) -> set[int]:
        """The operations that the program's results depend on."""
        found = liveness.live_operations(self._read.origins.module)
        return {number for n, number in self._read.op_of.items() if self._read.origins.operations[n] in found}

    @functools.cached_property
    def passes(self) -> list[tuple[str, Names]]:
        """Each pass of XLA's, and the names in the module that it left; first the module before all passes."""
        files = track(self._dump.passes if self._dump else [], "reading passes")
        return [("", self._first), *((name, _named(dumps.read(file), self._read)) for name, file in files)]

    @functools.cached_property
    def eliminated(self) -> cse.Eliminated:
        """The operations that XLA found equal to others."""
        return cse.Eliminated(self._read.ops, self.passes)


def _finish(
    read: program.Program,
    captures: list[Capture],
    dump: dumps.Dump | None,
    platform: str,
    dropped: Sequence[tags.Dropped] = (),
    *,
    every_pass: bool = False,
    name_all: bool = False,
) -> Audit:
    evidence = _Evidence(read, captures[0].named, dump)
    with step("following tags"), no_collection():
        found = classify.classify(
            read.ops,
            read.tags,
            captures,
            lambda: evidence.live,
            lambda: evidence.eliminated,
            taken=lambda: consumed.consumed(evidence.passes),
        )
        tags_found = found.tags
        if every_pass and (name_all or any(tag.state.needs_attention for tag in found.tags)):
            modules = [*evidence.passes[1:], ("", captures[-1].named)]
            tags_found = classify.with_passes(found.tags, modules, only_attention=not name_all)
    around = {called: i.name for i in captures[-1].module.instructions() if i.opcode == "fusion" for called in i.called_ids}
    ops = [_placed(op, found.main.get(op.id, ()), around) for op in read.ops]
    tags_found = [tag._replace(op=ops[tag.op.id]) for tag in tags_found]

    return Audit(
        name=read.name,
        ops=ops,
        tags=tags_found,
        strays=found.strays,
        dropped=dropped,
        effects=effects.find(tags_found, ops, {**_inlined(captures[-1]), **found.main}, captures[-1].modules, platform),
        platform=platform,
        stages=list(Stage),
        notes=[] if dump else [_NOT_DUMPED],
        instruction_count=len(captures[-1].module),
    )


def _inlined(capture: Capture) -> dict[int, list[Any]]:
    """By call, the instructions that XLA inlined from it."""
    inlined: dict[int, list[Any]] = {}
    for instruction, calls in capture.callers.items():
        for call in calls:
            inlined.setdefault(call, []).append(instruction)
    return inlined


def _placed(op: Op, instructions: Sequence[Instruction], around: Mapping[int, str]) -> Op:
    """An operation with what it became; `around` names the fusion of each fused computation."""
    if not instructions:
        return op
    fusions = dict.fromkeys(around[i.computation.id] for i in instructions if i.computation.id in around)
    return op._replace(instructions=tuple([i.name for i in instructions]), fusions=tuple(fusions))


def _capture(stage: Stage, module: HloModule, read: program.Program) -> Capture:
    named = _named(module, read)
    found = sources(module, read.origins.program, (read.origins.ids_and_calls(i.op_name) for i in module.instructions()))
    # A call that XLA inlined is joined to nothing; a call that is left is itself, whatever its callee computes.
    joined = {i: (named[i] if _is_call(i, named, read) else _known(numbers, read) or named[i]) for i, numbers in found.items()}
    callers = {i: _known(sorted(called), read) for i in named if (called := read.origins.callers_of(i.op_name))}
    return Capture(stage, module, named, joined, callers)


def _is_call(instruction: Instruction, named: Names, read: program.Program) -> bool:
    calls = [read.ops[number].name == "func.call" for number in named[instruction]]
    return instruction.opcode in ("call", "async-start", "async-update", "async-done") and bool(calls) and all(calls)


def _named(module: HloModule, read: program.Program) -> Names:
    """The operations in the names of the instructions, as XLA left the names."""
    return {i: _known(read.origins.ids_of(i.op_name), read) for i in module.instructions()}


def _known(numbers: Sequence[int], read: program.Program) -> tuple[int, ...]:
    return tuple(read.op_of[n] for n in numbers if n in read.op_of)
