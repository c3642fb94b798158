# SPDX-License-Identifier: Apache-2.0
"""Modules in jaxlib's MLIR, read and written without importing JAX."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from hlotag._compat.bindings import dialect_registry, load_dialects
from hlotag._util.identity import ByIdentity
from hlotag.errors import Diagnostic, ParseError

if TYPE_CHECKING:
    from jaxlib.mlir import ir

BYTECODE_MAGIC = b"ML\xefR"
_ELEMENTS = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}  # from MLIR's names to HLO's
# Brackets in text, in which MLIR's parser and printer recurse: a region takes 2.7 KiB of stack for each, and a thread has 8 MiB.
_MAX_DEPTH = 1000
SOURCE_NAME = "-"  # MLIR's name for a module without a file
_NO_PLACE = ("loc(unknown)", f'loc("{SOURCE_NAME}":0:0)')
# Quotes inside a literal are escaped.
_ESCAPED_LITERAL = re.compile(rb'"([^"\\\n]*\\[^"\n]*)"')
_ESCAPE = re.compile(rb"\\(?:\\|([0-9A-F]{2}))")
_FILE_LOCATION = re.compile(r'loc\("(?P<file>.*)":(?P<line>\d+):(?P<column>\d+)\)')
# A portable artifact begins like any MLIR bytecode: a magic number, a version and a producer.
_ARTIFACT_VERSION = re.compile(rb"ML\xefR[\x01-\xff]StableHLO_v(?P<version>[0-9.]+)\x00")


def new_context(*, allow_unregistered_dialects: bool = False) -> ir.Context:
    """Makes a context with the dialects and passes that JAX uses, without importing JAX."""
    from jaxlib.mlir import ir

    context = ir.Context()
    # Starting a thread pool costs more than it gains on one module.
    context.enable_multithreading(False)
    context.append_dialect_registry(dialect_registry())
    load_dialects(context)
    context.allow_unregistered_dialects = allow_unregistered_dialects
    return context


def undecodable_name(module: ir.Module) -> str | None:
    """Finds text that jaxlib's bindings cannot read, and some of which ends the process.

    Args:
        module: The module.

    Returns:
        The first name that is not UTF-8 of an operation, attribute, symbol or location, as in MLIR text. Values of attributes
        are read as bytes, and may be anything.
    """
    text: Any = module.operation.get_asm(
        binary=True,
        large_elements_limit=16,
        large_resource_limit=16,
        enable_debug_info=True,
        print_generic_op_form=True,
        assume_verified=True,
    )
    for literal in _ESCAPED_LITERAL.finditer(text):
        line = text[text.rfind(b"\n", 0, literal.start()) + 1 : literal.start()]
        is_name = b"loc(" in line or line.endswith(b"@") or text.startswith((b"(", b" ="), literal.end())
        try:
            _ESCAPE.sub(lambda escape: bytes.fromhex((escape[1] or b"5C").decode()), literal[1]).decode()
        except UnicodeDecodeError:
            if is_name:
                return literal[1].decode("ascii", "backslashreplace")
    return None


def parse_module(source: str | bytes, filename: str = "<module>") -> ir.Module:
    """Reads a module, which is text, MLIR bytecode or a portable artifact, in the current context.

    Raises ParseError if the module cannot be read, or is invalid. The message has the place and the line.
    """
    module, diagnostics = try_parse(source)
    if module is None:
        text = source if isinstance(source, str) else ""
        raise ParseError("\n".join(explain(d, text, filename) for d in diagnostics))
    return module


def try_parse(source: str | bytes) -> tuple[ir.Module | None, list[Diagnostic]]:
    """As `parse_module`, but returns the module, or None if it cannot be read, and the diagnostics."""
    from jaxlib.mlir import ir

    from hlotag import _core

    if problem := _problem_of_characters(source):
        return None, [Diagnostic("error", problem)]
    if isinstance(source, str) and (depth := _core.nesting_depth(source)) > _MAX_DEPTH:
        return None, [Diagnostic("error", f"it is nested {depth} deep; hlotag reads text up to {_MAX_DEPTH}")]
    context: Any = ir.Context.current
    if isinstance(source, bytes) and (version := artifact_version(source)):
        return _parse_artifact(source, version, context)
    try:
        return ir.Module.parse(source, context), []
    except ir.MLIRError as error:
        # MLIR usually reports the failure as a diagnostic; if not, the exception has the reason.
        reported = [_from_mlir(info) for info in error.error_diagnostics]
        return None, reported or [Diagnostic("error", str(error))]


def _problem_of_characters(source: str | bytes) -> str:
    if isinstance(source, bytes):
        if source.startswith(BYTECODE_MAGIC):
            return ""
        if holds_artifact(source):
            return "the bytes are those of Exported.serialize(); pass jax.export.deserialize(bytearray(...)) of them"
        found = f"they begin with {source[:8]!r}" if source else "there are none"
        return f"the bytes are not MLIR bytecode, which begins with {BYTECODE_MAGIC!r}: {found}; pass text as str"
    if "\0" in source:  # ends the text for MLIR
        return f"the text has a zero byte at offset {source.index(chr(0))}; a binary file that is cut, or of another kind?"
    if broken := re.search("[\ud800-\udfff]", source):
        return f"the text has a lone surrogate, which UTF-8 cannot encode, at offset {broken.start()}"
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
            f"{stablehlo.get_current_version()}; it is truncated or damaged, or was made by a newer jaxlib. Export it again, for "
            "an older version if necessary."
        )
        return None, [*reported, Diagnostic("error", advice)]
    finally:
        handler.detach()


def type_in_hlo(type_: ir.Type) -> tuple[str, tuple[int, ...]]:
    """HLO's name of an element type, and the shape, in which dynamic dimensions are -1. Both are empty for tokens and tuples."""
    from jaxlib.mlir import ir

    try:
        tensor = ir.RankedTensorType(type_)
    except ValueError:
        return "", ()
    element = str(tensor.element_type).lower()
    name = _ELEMENTS.get(element) or re.sub(r"^ui", "u", re.sub(r"^i", "s", element))
    return name, tuple(-1 if tensor.is_dynamic_dim(axis) else tensor.get_dim_size(axis) for axis in range(tensor.rank))


def artifact_version(source: bytes) -> str | None:
    """The version of StableHLO that a portable artifact targets: bytecode with VHLO operations, as `jax.export` writes.

    None for other bytes.
    """
    found = _ARTIFACT_VERSION.match(source)
    return found["version"].decode() if found else None


def holds_artifact(source: bytes) -> bool:
    """Whether bytes of another format hold a portable artifact, as those of `Exported.serialize()` do."""
    return not source.startswith(BYTECODE_MAGIC) and _ARTIFACT_VERSION.search(source) is not None


def copy_of(module: ir.Module) -> ir.Module:
    """Copies a module, in its context."""
    from jaxlib.mlir import ir

    with module.context:
        copy = ir.Module.create(module.operation.location)
        for name, value in _own(module)[1].items():
            copy.operation.attributes[name] = value
        for operation in module.body.operations:
            copy.body.append(operation.operation.clone())
    return copy


_former: ByIdentity[list[ir.Module]] = ByIdentity()


def exchange(module: ir.Module, other: ir.Module) -> None:
    """Exchanges the operations, attributes and locations of two modules of one context.

    `other` then lives as long as `module`, because Python may hold operations that `module` had.
    """
    of_module, of_other = _own(module), _own(other)
    for target, (body, attributes, location) in ((module, of_other), (other, of_module)):
        body.append_to(target.operation.regions[0])
        for name in _own(target)[1].keys() - attributes.keys():
            del target.operation.attributes[name]
        for name, value in attributes.items():
            target.operation.attributes[name] = value
        target.operation.location = location
    _former[module] = [*(_former.get(module) or ()), other]


def _own(module: ir.Module) -> tuple[Any, dict[str, Any], Any]:
    """The body, attributes and location of a module's operation."""
    operation = module.operation
    names = [found if isinstance(found, str) else found.name for found in operation.attributes]
    return module.body, {name: operation.attributes[name] for name in names}, operation.location


def to_bytecode(module: ir.Module) -> bytes:
    """Writes a module as MLIR bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def explain(diagnostic: Diagnostic, source: str, filename: str) -> str:
    """Formats a diagnostic of a module that was read from `source`: `file:line:column: error: message`, and the notes.

    For a place in the source, the line follows, with a caret under the column.
    """
    message = f"{diagnostic.severity}: {diagnostic.message}"
    if diagnostic.file != SOURCE_NAME or not diagnostic.line:
        message = f"{diagnostic.location or filename}: {message}"
    else:
        message = f"{filename}:{diagnostic.line}:{diagnostic.column}: {message}"
        lines = source.splitlines()
        if 1 <= diagnostic.line <= len(lines):
            message += f"\n{lines[diagnostic.line - 1]}\n{' ' * (diagnostic.column - 1)}^"
    return "\n".join([message, *(explain(note, source, filename) for note in diagnostic.notes)])


def _from_mlir(info: Any) -> Diagnostic:
    """Copies jaxlib's `ir.DiagnosticInfo`."""
    location = "" if (text := str(info.location)) in _NO_PLACE else text
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
