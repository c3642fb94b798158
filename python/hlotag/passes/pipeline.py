# SPDX-License-Identifier: Apache-2.0
"""Runs pass pipelines on modules."""

from __future__ import annotations

import contextvars
import io
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hlotag._util.arguments import check_flag, check_text, shown
from hlotag._util.deep import MAX_DEPTH, with_room
from hlotag.errors import Diagnostic, ParseError, PassError, PipelineError, TagDropped
from hlotag.host import connection
from hlotag.passes import jax_artifacts
from hlotag.passes.python_passes import PythonRun
from hlotag.tagging.warning import warn_at

if TYPE_CHECKING:
    from jax.export import Exported
    from jax.stages import Lowered
    from jaxlib.mlir import ir

DEFAULT_PIPELINE = (
    "hlotag-resolve,"
    "hlotag-attach,"
    "hlotag-complete-lowering{seeds=attached},"
    "hlotag-propagate-regions,"
    "hlotag-propagate-calls,"
    "hlotag-propagate-autodiff{seeds=attached},"
    "hlotag-verify{on-mistake=warning}"
)
"""What `hlotag.enable()` runs: marks and rules become frontend attributes, and reach everything they should."""

ModuleT = TypeVar("ModuleT", "ir.Module", str, bytes, "Lowered", "Exported")

_kept_reports: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("hlotag_reports", default=None)
_logger = logging.getLogger("hlotag")
BYTECODE_MAGIC = b"ML\xefR"
SOURCE_NAME = "-"  # how MLIR calls a module that is not read from a file
_FILE_LOCATION = re.compile(r'loc\("(?P<file>.*)":(?P<line>\d+):(?P<column>\d+)\)')


@dataclass(frozen=True)
class PassOption:
    """An option of a pass.

    Attributes:
        name: As it is written in a pipeline.
        type: "bool", "int", "float", "string", "list of strings", or the values it can have: "all|attached".
        default: The value when it is not given, as it would be written.
        description: One line.
    """

    name: str
    type: str
    default: str
    description: str


@dataclass(frozen=True)
class PassInfo:
    """A pass that pipelines can name.

    Attributes:
        name: As it is written in a pipeline, for example `hlotag-strip`.
        summary: One line.
        description: Markdown, with the IR before and after.
        options: In the order in which they are declared.
    """

    name: str
    summary: str
    description: str
    options: tuple[PassOption, ...]


def list_passes() -> list[PassInfo]:
    """Lists hlotag's own passes and the registered ones; jaxlib's can be used too, but MLIR has no list of them.

    Returns:
        The passes, sorted by name.
    """
    from hlotag import _core

    return [
        PassInfo(
            name=entry["argument"],
            summary=entry["summary"],
            description=entry["description"],
            options=tuple(PassOption(**option) for option in entry["options"]),
        )
        for entry in _core.list_passes()
    ]


def run_passes(
    module: ModuleT, pipeline: str | Sequence[str] = DEFAULT_PIPELINE, *, verify: bool = True, debug_origins: bool = False
) -> ModuleT:
    """Runs passes on a module; when one of them fails, the module stays as it was.

    Args:
        module: An `ir.Module` (of `jax.extend.mlir`), which is changed in place; the text of one; or its MLIR bytecode. Text
            and bytecode are read with the dialects that JAX uses. As with jaxlib's own pass manager, Python objects for
            operations inside an `ir.Module` must not be used after passes that may delete those operations. Or what JAX made
            of a program: a `jax.stages.Lowered` or a `jax.export.Exported`; it stays as it is. Bytecode may be the portable
            artifact of an export.
        pipeline: Passes in MLIR's syntax, `"hlotag-strip{keys=a,b},canonicalize"`, or several such texts to run one after
            another. Passes that jaxlib registers can be mixed in.
        verify: Whether to verify the module afterwards.
        debug_origins: Whether to record on each operation, in the attribute `hlotag.origins`, where the entries come from that
            hlotag's passes add.

    Returns:
        What was given: the same `ir.Module`; text, with locations if the given text had any; bytecode; a `Lowered` that
        compiles and runs the changed module; or an `Exported` that serializes and calls it, and whose gradient, which is made
        from the program when it is asked for, goes through the same passes.

    Raises:
        PipelineError: `pipeline` is malformed, or names a pass or an option that does not exist; or an option is no bool.
        ParseError: `module` is text or bytes and cannot be read.
        PassError: A pass failed, or what it left is not valid, or JAX could not call it.
        IncompatibleJaxlibError: hlotag cannot work with the installed jaxlib.
        TypeError: `module` is something else.
    """
    text = pipeline_text(pipeline)
    options = {"verify": verify, "debug_origins": debug_origins}
    for name, value in options.items():
        check_flag(name, value, PipelineError)
    connection.ensure()
    from jaxlib.mlir import ir

    if isinstance(module, ir.Module):
        _run_or_raise(module, text, options)
        return module
    if not isinstance(module, str | bytes):
        run_on_artifact = jax_artifacts.runner_for(module)
        if run_on_artifact is None:
            expected = "an ir.Module, str, bytes, jax.stages.Lowered or jax.export.Exported"
            raise TypeError(f"module must be {expected}, not {type(module).__name__}")
        return run_on_artifact(module, lambda inner: _run_or_raise(inner, text, options))
    with new_context():
        parsed = parse_module(module)
        _run_or_raise(parsed, text, options)
        if isinstance(module, bytes):
            return _written_like(module, parsed)
        return with_room(nesting_depth(module), lambda: str(parsed.operation.get_asm(enable_debug_info=_has_locations(module))))


@contextmanager
def kept_reports() -> Iterator[list[str]]:
    """Collects what passes warn of and remark on in this thread, such as rules that match nothing.

    Yields:
        The list that the reports are appended to, each with its place.
    """
    reports: list[str] = []
    token = _kept_reports.set(reports)
    try:
        yield reports
    finally:
        _kept_reports.reset(token)


def pipeline_text(pipeline: str | Sequence[str]) -> str:
    """Checks a pipeline and brings it into its canonical form.

    Args:
        pipeline: One text, or several to run one after another.

    Returns:
        One text, without an enclosing `builtin.module(...)`, and with the rules of files in it: it means the same wherever it
        is run, and whatever becomes of the files.

    Raises:
        TagError, OSError: A file of rules is malformed, or cannot be read.
        PipelineError: It is malformed, or names a pass or an option of hlotag's that does not exist. What is wrong with the
            names of other passes shows when the pipeline is run.
    """
    from hlotag import _core

    texts = [pipeline] if isinstance(pipeline, str) else pipeline
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise PipelineError(f"pipeline must be a string or a sequence of strings, not {shown(pipeline)}")
    for text in texts:
        check_text("pipeline", text, PipelineError)
    try:
        named = [(name, element) for text in texts for name, element, _ in _core.pipeline_elements(text)]
    except ValueError as error:
        raise PipelineError(str(error)) from None
    elements = [element for _, element in named]
    if any("rules-file=" in element for element in elements):
        from hlotag.passes.rules import with_rules_of_file

        elements = [with_rules_of_file(name, element) for name, element in named]
    # An element may itself be a `builtin.module(...)`, for modules within the module.
    return _core.parse_pipeline(f"builtin.module({','.join(elements)})")


def run_and_report(module: ir.Module, pipeline: str, **options: Any) -> Any:
    """Runs a pipeline on a module, and reports instead of raising when a pass fails.

    Args:
        module: Changed in place, or left as it was.
        pipeline: As `pipeline_text` gives it.
        **options: Those of `_core.run`.

    Returns:
        A `_core.RunResult`.

    Raises:
        PipelineError: MLIR rejects a part of the pipeline.
    """
    return _run(PythonRun(module), pipeline, options)


def new_context(*, allow_unregistered_dialects: bool = False) -> ir.Context:
    """Makes a context with the dialects and passes that JAX uses, without importing JAX.

    Args:
        allow_unregistered_dialects: Whether modules may hold operations of unknown dialects.

    Returns:
        The context; enter it with `with`.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _chlo, _mlirHlo, _sdy, _stablehlo

    context = ir.Context()
    # Starting a thread pool costs more than it gains on one module.
    context.enable_multithreading(False)
    context.append_dialect_registry(connection.dialect_registry())
    for extension in (_stablehlo, _chlo, _sdy):
        extension.register_dialect(context)
    _mlirHlo.register_mhlo_dialect(context)
    context.allow_unregistered_dialects = allow_unregistered_dialects
    return context


def nesting_depth(source: str | bytes) -> int:
    """How deep a module is nested, at most.

    Args:
        source: Its text or bytecode.

    Returns:
        The depth of brackets in text. Bytecode is read without recursion, and is not looked into: a region has eight bytes.
    """
    from hlotag import _core

    return _core.nesting_depth(source) if isinstance(source, str) else min(len(source) // 8, MAX_DEPTH)


def parse_module(source: str | bytes, filename: str = "<module>") -> ir.Module:
    """Reads a module in the current context.

    Args:
        source: Text, MLIR bytecode or a portable artifact.
        filename: What error messages call it.

    Returns:
        The module.

    Raises:
        ParseError: It cannot be read, or is not valid. The message has the place and the line.
    """
    module, diagnostics = try_parse(source)
    if module is None:
        text = source if isinstance(source, str) else ""
        raise ParseError("\n".join(explain(d, text, filename) for d in diagnostics))
    return module


def try_parse(source: str | bytes) -> tuple[ir.Module | None, list[Diagnostic]]:
    """Reads a module in the current context.

    Args:
        source: Text, MLIR bytecode or a portable artifact.

    Returns:
        The module, or None if it cannot be read; and what was reported about it.
    """
    from jaxlib.mlir import ir

    if problem := _problem_of_characters(source):
        return None, [Diagnostic("error", problem)]
    depth = nesting_depth(source)
    if depth > MAX_DEPTH:
        return None, [Diagnostic("error", f"it is nested {depth} deep; hlotag reads text up to {MAX_DEPTH}")]
    context: Any = ir.Context.current
    if isinstance(source, bytes) and (version := jax_artifacts.artifact_version(source)):
        return with_room(depth, lambda: _parse_artifact(source, version, context))
    try:
        return with_room(depth, lambda: ir.Module.parse(source, context)), []
    except ir.MLIRError as error:
        # The parser always says something; should it not, the exception does.
        reported = [_from_mlir(info) for info in error.error_diagnostics]
        return None, reported or [Diagnostic("error", str(error))]


def _problem_of_characters(source: str | bytes) -> str:
    if isinstance(source, bytes):
        if source.startswith(BYTECODE_MAGIC):
            return ""
        found = f"they begin with {source[:8]!r}" if source else "there are none"
        return f"the bytes are not MLIR bytecode, which begins with {BYTECODE_MAGIC!r}: {found}; give text as str"
    if "\0" in source:  # MLIR takes it for the end, and what follows would be lost
        return f"it is no text: there is a zero byte at offset {source.index(chr(0))}"
    if broken := re.search("[\ud800-\udfff]", source):
        return f"it is no text that UTF-8 can write: there is half of a character at offset {broken.start()}"
    return ""


def _parse_artifact(source: bytes, version: str, context: ir.Context) -> tuple[ir.Module | None, list[Diagnostic]]:
    from jaxlib.mlir.dialects import stablehlo

    reported: list[Diagnostic] = []

    def report(diagnostic: Any) -> bool:
        reported.append(_from_mlir(diagnostic))
        return True

    handler: Any = context.attach_diagnostic_handler(report)
    try:
        return stablehlo.deserialize_portable_artifact(context, source), []
    except ValueError:
        advice = (
            f"the portable artifact cannot be read: it was written for StableHLO {version}, and this jaxlib reads up to "
            f"{stablehlo.get_current_version()}; it is cut off or damaged, or was made by a newer jaxlib. Export it again, for "
            "an older version if need be."
        )
        return None, [*reported, Diagnostic("error", advice)]
    finally:
        handler.detach()


def _written_like(source: bytes, module: ir.Module) -> bytes:
    """The module as bytecode of the kind that `source` is."""
    version = jax_artifacts.artifact_version(source)
    if version is None:
        return to_bytecode(module)
    from hlotag import _compat

    return _compat.write_artifact(module, version)


def copy_of(module: ir.Module) -> ir.Module:
    """Copies a module.

    Args:
        module: Any module.

    Returns:
        A module of its own, in the same context.
    """
    from jaxlib.mlir import ir

    with module.context:
        copy = ir.Module.create(module.operation.location)
        for attribute in module.operation.attributes:
            name = attribute if isinstance(attribute, str) else attribute.name
            copy.operation.attributes[name] = module.operation.attributes[name]
        for operation in module.body.operations:
            copy.body.append(operation.operation.clone())
    return copy


def to_bytecode(module: ir.Module) -> bytes:
    """Writes a module.

    Args:
        module: Any module.

    Returns:
        MLIR bytecode.
    """
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def explain(diagnostic: Diagnostic, source: str, filename: str) -> str:
    """Puts a diagnostic into words.

    Args:
        diagnostic: What was reported about a module read from `source`.
        source: The module's text.
        filename: What to call it.

    Returns:
        `file:line:column: error: message`; for a place in the source also that line and a caret under it; then the notes.
    """
    message = f"{diagnostic.severity}: {diagnostic.message}"
    if diagnostic.file != SOURCE_NAME:
        message = f"{diagnostic.location or filename}: {message}"
    else:
        message = f"{filename}:{diagnostic.line}:{diagnostic.column}: {message}"
        lines = source.splitlines()
        if 1 <= diagnostic.line <= len(lines):
            message += f"\n{lines[diagnostic.line - 1]}\n{' ' * (diagnostic.column - 1)}^"
    return "\n".join([message, *(explain(note, source, filename) for note in diagnostic.notes)])


def _run(run: PythonRun, pipeline: str, options: Mapping[str, Any]) -> Any:
    from hlotag import _core

    # jaxlib's bindings let a module be seen only by printing it, and nobody knows how deep this one is.
    depth = MAX_DEPTH if _core.uses_bindings() else 0
    try:
        result = with_room(depth, lambda: _core.run(run.module.operation._CAPIPtr, pipeline, python_run=run, **options))
    except ValueError as error:
        raise PipelineError(str(error)) from None
    if run.exception is not None and not isinstance(run.exception, Exception):
        raise run.exception  # An interrupt is no failure of the pass that it met.
    return result


def _run_or_raise(module: ir.Module, pipeline: str, options: Mapping[str, Any]) -> None:
    run = PythonRun(module)
    result = _run(run, pipeline, options)
    if not result.ok:
        raise PassError(result.failing_pass, [Diagnostic.of(d) for d in result.diagnostics]) from run.exception
    for diagnostic in result.diagnostics:
        text = f"{diagnostic.location}: {diagnostic.message}"
        if (kept := _kept_reports.get()) is not None:
            kept.append(text)
        if diagnostic.severity == "warning":
            warn_at(text, TagDropped, diagnostic.file if diagnostic.file != SOURCE_NAME else None, diagnostic.line)
        else:
            _logger.info("%s", text)


def _has_locations(text: str) -> bool:
    return "loc(" in text or "#loc" in text


def _from_mlir(info: Any) -> Diagnostic:
    """Copies an `ir.DiagnosticInfo` of jaxlib's."""
    location = str(info.location).replace("loc(unknown)", "")
    place = _FILE_LOCATION.fullmatch(location)
    return Diagnostic(
        severity=info.severity.name.lower(),
        message=info.message,
        location=":".join(place.groups()) if place else location,
        file=place["file"] if place else "",
        line=int(place["line"]) if place else 0,
        column=int(place["column"]) if place else 0,
        notes=tuple(_from_mlir(note) for note in info.notes),
    )
