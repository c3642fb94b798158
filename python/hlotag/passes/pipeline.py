# SPDX-License-Identifier: Apache-2.0
"""Pipelines of passes on a module."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hlotag._text import printable
from hlotag._util.arguments import check_flag, check_text, show
from hlotag._util.kept import Kept
from hlotag.errors import ArgumentError, Diagnostic, PassError, TagDroppedWarning
from hlotag.mlir import connection
from hlotag.mlir.modules import artifact_version, new_context, parse_module, to_bytecode
from hlotag.passes import jax_artifacts, running, syntax
from hlotag.passes.rules import with_rules_of_file
from hlotag.passes.running import RunOptions, RunResult
from hlotag.passes.syntax import Element, PassInfo
from hlotag.tagging.warning import file_of_program, warn_at

if TYPE_CHECKING:
    from jax.export import Exported
    from jax.stages import Lowered
    from jaxlib.mlir import ir

DEFAULT_PIPELINE = "hlotag-resolve,hlotag-propagate,hlotag-finalize{on-mistake=warning}"
"""The pipeline of `hlotag.enable()`: turns the program's marks into frontend attributes, and hands them to bodies."""

ModuleT = TypeVar("ModuleT", "ir.Module", str, bytes, "Lowered", "Exported")

kept_reports: Kept[Diagnostic] = Kept("hlotag_reports")
"""Keeps the warnings and remarks of passes, such as those about rules that match nothing."""

_STRING_OR_LOCATION = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w$.@-])(loc\()')
_logger = logging.getLogger("hlotag")


def list_passes() -> list[PassInfo]:
    """Lists hlotag's own passes and the registered ones. Pipelines can also name jaxlib's passes, which MLIR cannot list.

    Returns:
        The passes, sorted by name.

    Examples:
        >>> passes = {info.name: info for info in hlotag.list_passes()}
        >>> [option.name for option in passes["hlotag-strip"].options]
        ['keys', 'names']
    """
    folder = Path(__file__).with_name("descriptions")
    return [
        replace(info, description=(folder / f"{info.name}.md").read_text(encoding="utf-8"))
        if info.name.startswith("hlotag-")
        else info
        for info in syntax.known_passes().values()
    ]


def run_passes(
    module: ModuleT, pipeline: str | Sequence[str] = DEFAULT_PIPELINE, *, verify: bool = True, debug_origins: bool = False
) -> ModuleT:
    r"""Runs passes on a module. If a pass fails, the module is unchanged.

    Args:
        module: One of:

            - an `ir.Module` (of `jax.extend.mlir`), changed in place. Pipelines with passes in Python or of MLIR run on a copy
              of its operations, which it has afterwards: those that Python held before stay valid, and unchanged, as long as
              the module lives. A run that changes nothing keeps no copy.
            - text, or MLIR bytecode (a portable artifact of an export too), in the dialects that JAX uses.
            - a `jax.stages.Lowered` or `jax.export.Exported`, which stays unchanged.
        pipeline: Passes in MLIR's syntax, `"hlotag-strip{keys=a,b},canonicalize"`, or several such texts to run one after
            another. Passes that jaxlib registers can be mixed in.
        verify: Whether to verify the module afterwards.
        debug_origins: Whether to record on each operation, in the attribute `hlotag.origins`, which pass added each entry,
            and why.

    Returns:
        An object of the given kind: the same `ir.Module`; text, with locations if the given text had any; bytecode; a `Lowered`
        that compiles the changed module; or an `Exported` that calls it. The passes also run on the gradient of the `Exported`,
        which JAX makes from the program on demand.

    Raises:
        ArgumentError: `pipeline` is malformed, or names an unknown pass or option; an option is not a bool; or `module` is of
            another type.
        ParseError: `module` is text or bytes and cannot be read.
        PassError: A pass failed, left an invalid module, or changed the type of the entry point, which JAX calls.
        IncompatibleJaxlibError: hlotag cannot work with the installed jaxlib.

    Examples:
        >>> hlotag.run_passes("module { func.func private @unused() }", "symbol-dce")
        'module {\n}\n'
    """
    text = pipeline_text(pipeline)
    options = {"verify": verify, "debug_origins": debug_origins}
    for name, value in options.items():
        check_flag(name, value)
    connection.ensure()
    from jaxlib.mlir import ir

    if isinstance(module, ir.Module):
        run_or_raise(module, text, **options)
        return module
    if isinstance(module, str | bytes):
        return _run_on_text(module, text, options)
    if (run_on_artifact := jax_artifacts.runner_for(module)) is None:
        expected = "an ir.Module, str, bytes, jax.stages.Lowered or jax.export.Exported"
        raise ArgumentError(f"module must be {expected}, not {type(module).__name__}")
    return run_on_artifact(module, lambda inner: run_or_raise(inner, text, keep_entry=True, **options))


def _run_on_text(source: str | bytes, pipeline: str, options: Mapping[str, Any]) -> Any:
    """Runs a pipeline on text or bytecode; returns the same kind."""
    with new_context():
        module = parse_module(source)
        run_or_raise(module, pipeline, **options)
        if isinstance(source, bytes):
            return _write_like(source, module)
        return str(module.operation.get_asm(enable_debug_info=_has_locations(source)))


def pipeline_text(pipeline: str | Sequence[str]) -> str:
    """Checks a pipeline, or several to run one after another, and brings it into its canonical form.

    The text contains the rules of files, so its meaning does not depend on the machine or on later changes of the files. Raises
    TagError or OSError for a file of rules; ArgumentError if the pipeline is malformed, or names an unknown option or pass of
    hlotag. Unknown passes of others are errors when the pipeline runs.
    """
    texts = [pipeline] if isinstance(pipeline, str) else pipeline
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise ArgumentError(f"pipeline must be a string or a sequence of strings, not {show(pipeline)}")
    for text in texts:
        check_text("pipeline", text)
        if "\0" in text:  # It ends the text for MLIR.
            raise ArgumentError(f"pipeline {text!r} has a zero byte at offset {text.index(chr(0))}")
    return syntax.join([with_rules_of_file(element) for text in texts for element in syntax.parse(text)])


def run_and_report(module: ir.Module, pipeline: str, **options: Any) -> RunResult:
    """Runs a pipeline, a result of `pipeline_text`, on a module.

    A failing pass leaves the module unchanged, and is part of the result. `options` are fields of `RunOptions`. Raises
    ArgumentError if MLIR rejects a part of the pipeline.
    """
    return running.run(module, syntax.parse(pipeline), RunOptions(**options))


def _write_like(source: bytes, module: ir.Module) -> bytes:
    """The module in the format of `source`: bytecode, or a portable artifact."""
    version = artifact_version(source)
    if version is None:
        return to_bytecode(module)
    from hlotag import _compat

    return _compat.modules.write_artifact(module, version)


def run_or_raise(module: ir.Module, pipeline: str, **options: Any) -> Sequence[Diagnostic]:
    """As `run_and_report`, but reports warnings, returns the diagnostics, and raises PassError if a pass failed."""
    connection.ensure()  # In a stage without passes and in an audit of a file, nothing has connected yet.
    result = run_and_report(module, pipeline, **options)
    if not result.ok:
        raise PassError(result.failing_pass, result.diagnostics) from result.exception
    for diagnostic in result.diagnostics:
        text = f"{diagnostic.location}: {diagnostic.message}" if diagnostic.location else diagnostic.message
        if (kept := kept_reports.innermost()) is not None:
            kept.append(diagnostic)
        if diagnostic.severity == "warning":
            warn_at(text, TagDroppedWarning, file_of_program(diagnostic.file), diagnostic.line)
        else:
            _logger.debug("%s", printable(text, keep="\n\t"))  # A rule may match nothing in each of many small programs.
    return result.diagnostics


def remove_keys(module: ir.Module, names: Iterable[str], *, verify: bool = True) -> None:
    """Removes the entries with some keys, at least one, from a module. The text of a key may have any characters.

    Raises PassError if the module is invalid.
    """
    connection.ensure()
    result = running.run(module, [Element("hlotag-strip", {"names": sorted(names)})], RunOptions(verify=verify))
    if not result.ok:
        raise PassError(result.failing_pass, result.diagnostics)


def _has_locations(text: str) -> bool:
    return "loc(" in text and any(found[1] for found in _STRING_OR_LOCATION.finditer(text))
