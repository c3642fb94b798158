# SPDX-License-Identifier: Apache-2.0
"""Which forms of a program can be compiled? HLO, StableHLO and JAX's own objects, recognized by their content."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.errors import JaxRuntimeError
from jax.extend.mlir import ir

from hlotag import _compat
from hlotag.errors import Diagnostic, ParseError
from hlotag.host.modules import BYTECODE_MAGIC, parse_module, to_bytecode, try_parse, type_in_hlo
from hlotag.passes.pipeline import run_passes
from hlotag.xla import _errors, _wire
from hlotag.xla._errors import ArgumentError
from hlotag.xla._refusals import reason_of
from hlotag.xla._stamp import looks_serialized

ACCEPTED = (
    "HLO text, a serialized HloModuleProto, StableHLO text, MLIR bytecode, a StableHLO portable artifact, an ir.Module, "
    "a jax.stages.Lowered, a jax.export.Exported, or the result of xla_computation"
)

PYTHON_CALLBACK = re.compile(r"xla_(?:ffi_)?(?:partitioned_)?python_\w+_callback")
"""The targets of custom calls into Python."""

_PORTABLE = b"StableHLO_v"  # in artifacts of `jax.export`
_COMMENTS = r"(?:\s|//[^\n]*\n|/\*.*?\*/)*"
_HLO_HEADER = re.compile(r"HloModule\b[^\n]*")
_MLIR_TEXT = re.compile(_COMMENTS + r"(?:[#!\"]|module\b|builtin\.|func\.func\b|sdy\.)", re.DOTALL)
_MODULE_NAME, _COMPUTATIONS = 1, 3  # fields of xla.HloModuleProto (xla/service/hlo.proto)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ELIDED = re.compile(r"constant\(\{\.\.\.\}\)")
_NAME_TAG = _MODULE_NAME << 3 | 2  # the first byte of an HloModuleProto
_ALIASES = "mhlo.input_output_alias"
_HLO_MODULE = 1  # field of xla.HloProto, the file that XLA dumps

# Other formats that users try, and what to do with them.
_OTHER_TEXT = {
    r"\{\s*lambda\b": "a jaxpr; lower the function instead: jax.jit(f).lower(*args)",
    r"; ModuleID|source_filename|target triple|define ": "LLVM IR, which XLA only writes; pass its HLO or StableHLO instead",
    r"digraph\b": "a graph for Graphviz, which XLA only writes; pass as_hlo_text() instead",
    r"name: \"|computations \{|hlo_module \{": "an HloModuleProto in text form; serialize it (SerializeToString) first",
    r"[^\n]*\.(?:hlo|txt|pb|mlir|mlirbc|bin)\s*\Z": "a file name; pass the file's contents: pathlib.Path(name).read_bytes()",
}
_OTHER_BYTES = {
    rb"\x1f\x8b": "a gzip file; decompress it first: gzip.decompress(...)",
    rb"PK\x03\x04": "a zip archive; pass the file inside",
    rb"\x80[\x02-\x05]": "a pickled object; unpickle it first",
    rb"\x7fELF": "machine code (an ELF file)",
}


@dataclass(frozen=True)
class Program:
    """A program that is ready to be compiled.

    Attributes:
        module: The StableHLO module, which must not be changed.
        num_replicas: How many replicas the program is written for.
        num_partitions: How many partitions the program is written for.
        host_callbacks: jaxlib's objects for callbacks into Python, which some platforms need.
        keepalive: An object that must live as long as the executable.
        calls_python: Whether the program needs host callbacks that are unknown.
    """

    module: ir.Module
    num_replicas: int = 1
    num_partitions: int = 1
    host_callbacks: tuple = field(default=())
    keepalive: Any = None
    calls_python: bool = False


def read(computation: Any, pipeline: str | Sequence[str] | None = None) -> Program:
    """Reads a program in any accepted format.

    Args:
        computation: HLO text; a serialized HloModuleProto or HloProto; StableHLO text; MLIR bytecode; a portable artifact of
            StableHLO; an `ir.Module`, a `jax.stages.Lowered` or a `jax.export.Exported`; the result of
            `hlotag.xla_computation`. Text may be UTF-8 bytes.
        pipeline: Passes to run on a copy, as in `hlotag.run_passes`.

    Returns:
        The program.

    Raises:
        ParseError: The program has none of these formats, or is malformed. The message names the probable format and the place.
        PassError: A pass failed.
        ArgumentError: `pipeline` is malformed, or `computation` is an object of another class.
    """
    try:
        program = _read(computation)
    except ParseError as error:
        raise _errors.ParseError(str(error)) from None
    if pipeline is None:
        return program
    copy = _compat.modules.read_bytecode(to_bytecode(program.module))
    return replace(program, module=run_passes(copy, pipeline))


def _read(computation: Any) -> Program:
    if isinstance(computation, str):
        return _read_text(computation)
    if isinstance(computation, bytes | bytearray | memoryview):
        return _read_bytes(bytes(computation))
    for kind, reader in _READERS.items():
        if isinstance(computation, kind):
            return reader(computation)
    raise ArgumentError(f"cannot compile a {type(computation).__name__}: {_advice_on(computation)}")


def _advice_on(computation: Any) -> str:
    if isinstance(computation, Path):
        return "pass the file's contents: path.read_bytes()"
    if isinstance(computation, jax.stages.Compiled):
        return "it is compiled already; hlotag.xla.LoadedExecutable(compiled.runtime_executable()) executes it"
    if hasattr(computation, "lower"):
        return "lower it first: .lower(...), with its arguments"
    if callable(computation):
        return "lower it first: jax.jit(f).lower(*args), or hlotag.xla_computation(f)(*args)"
    return f"pass {ACCEPTED}"


def uses_shardy(module: ir.Module) -> bool:
    """Tells Shardy's shardings from XLA's older ones.

    Args:
        module: The program.

    Returns:
        Whether the shardings are Shardy's.
    """
    # A program that was converted from HLO has its meshes in a module attribute.
    has_attribute = "xla.sdy.meshes" in str(module.operation.attributes.get("mhlo.frontend_attributes", ""))
    return has_attribute or any(operation.operation.name.startswith("sdy.") for operation in module.body.operations)


def check_replica_groups(module: ir.Module, count: int) -> None:
    """Checks that collectives name only existing replicas or partitions. XLA would return the operand as the result for others.

    Args:
        module: The program.
        count: The number of replicas or partitions.

    Raises:
        ArgumentError: A collective names a missing replica or partition.
    """
    out_of_range: dict[str, int] = {}

    def visit(operation: Any) -> ir.WalkResult:
        for entry in {"replica_groups", "source_target_pairs"}.intersection(operation.attributes.keys()):
            groups = operation.attributes[entry]
            if isinstance(groups, ir.DenseElementsAttr) and (highest := np.asarray(groups).max(initial=0)) >= count:
                out_of_range[operation.name.removeprefix("stablehlo.")] = highest
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for operation, highest in out_of_range.items():
        raise ArgumentError(
            f"{operation} names replica or partition {highest}, but the program is compiled for {count}; if the program's text "
            "lacks the count, set options.num_replicas or options.num_partitions"
        )


# --- Text and bytes ----------------------------------------------------------------------------------------------------------


def _read_text(text: str) -> Program:
    if _MLIR_TEXT.match(text):
        with _compat.runtime.ir_context():
            return _of_module(parse_module(text, "<StableHLO text>"))
    if not text.strip():
        raise ParseError(f"the text is empty; pass {ACCEPTED}")
    return _read_hlo_text(text)


def _read_hlo_text(text: str) -> Program:
    # XLA reads an elided constant as zeros.
    if elided := _ELIDED.search(_STRING.sub("", text)):
        raise ParseError(
            f"the HLO text has a constant without its numbers: {elided[0]}; print it with "
            "as_hlo_text(print_large_constants=True), or dump it under XLA_FLAGS=--xla_dump_large_constants"
        )
    try:
        serialized = _compat.runtime.parse_hlo(text).as_serialized_hlo_module_proto()
    except JaxRuntimeError as error:
        raise ParseError(_why_not_hlo(text, reason_of(error))) from None
    program = _read_hlo_proto(serialized, text)
    header = _HLO_HEADER.search(text)
    counts = re.findall(r"\b(replica_count|num_partitions)=(-?\d+)", header[0] if header else "")
    count = {name: int(number) for name, number in counts}
    for name, number in count.items():
        if number < 1:
            raise ParseError(f"{name} must be at least 1, but the HLO text has {name}={number}")
    return replace(program, num_replicas=count.get("replica_count", 1), num_partitions=count.get("num_partitions", 1))


def _why_not_hlo(text: str, reason: str) -> str:
    """Explains why XLA cannot parse a text. XLA's reason has the line number, the column, the line and a caret."""
    for pattern, advice in _OTHER_TEXT.items():
        if re.match(rf"\s*(?:{pattern})", text):
            return f"this text is neither HLO nor MLIR: it looks like {advice}"
    read_as, colon, message = reason.partition(":")
    if "HloInstruction" in read_as:
        begins = text.strip()[:40]
        return f"this text is neither HLO nor MLIR: HLO begins with HloModule, but this with {begins!r}; pass {ACCEPTED}"
    where = message.strip() if colon and "HloModule" in read_as else reason
    return f"the HLO text has a syntax error: {where or 'XLA does not say where'}"


def _read_bytes(data: bytes) -> Program:
    if data.startswith(BYTECODE_MAGIC):
        with _compat.runtime.ir_context():
            return _of_module(parse_module(data, "<MLIR bytecode>"))
    text = _as_text(data)
    if text is not None:
        return _read_text(text)
    if looks_serialized(data):
        raise ParseError("these bytes look like a serialized executable, which is compiled already; use deserialize_executable")
    for pattern, advice in _OTHER_BYTES.items():
        if re.match(pattern, data):
            raise ParseError(f"these bytes look like {advice}")
    if _PORTABLE in data and not _parts(data):
        raise ParseError("these bytes look like a serialized jax.export.Exported; pass jax.export.deserialize(...) of them")
    return _read_hlo_proto(_hlo_module_in(data))


def _as_text(data: bytes) -> str | None:
    """The bytes as text; None if they are not UTF-8 text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if re.search(r"[\x00-\x08\x0e-\x1f]", text) else text


def _parts(data: bytes) -> set[int]:
    """The fields of a protocol buffer; empty if the bytes are not one."""
    try:
        return _wire.parts(data)
    except ValueError:
        return set()


def _hlo_module_in(data: bytes) -> bytes:
    """The HloModuleProto: the bytes themselves, or a field of an HloProto."""
    module = {_MODULE_NAME, _COMPUTATIONS}
    numbers = _parts(data)
    if _HLO_MODULE in numbers and module <= _parts(inner := _wire.part_of(data, _HLO_MODULE)):
        return inner
    if module <= numbers:
        return data
    if data[0] == _NAME_TAG:
        raise ParseError(f"these {len(data)} bytes look like a truncated or damaged HloModuleProto; serialize it again")
    raise ParseError(f"these {len(data)} bytes are not an HloModuleProto: they begin with {data[:16]!r}; pass {ACCEPTED}")


def _read_hlo_proto(serialized: bytes, text: str = "") -> Program:
    try:
        bytecode = _compat.runtime.hlo_to_stablehlo(serialized)
    except (JaxRuntimeError, ValueError, MemoryError) as error:
        raise ParseError(
            f"the HLO cannot be read: {reason_of(error)}\nPass complete HLO from before optimization: "
            "as_hlo_text(print_large_constants=True) or as_serialized_hlo_module_proto()."
        ) from None
    with _compat.runtime.ir_context():
        module, diagnostics = try_parse(bytecode)
    if module is not None:
        shape = _compat.runtime.XlaComputation(serialized).program_shape()
        _check_entry_layout(module, shape)
        _untuple_aliases(module, shape)
        return _of_module(module)
    raise ParseError("\n".join(["the HLO is not valid:", *(_explain_in_hlo(diagnostic, text) for diagnostic in diagnostics)]))


def _check_entry_layout(module: ir.Module, shape: Any) -> None:
    """Raises if the header contradicts the program. jaxlib would ignore the header.

    Args:
        module: The module that jaxlib converted from HLO.
        shape: The program shape in the header of the HLO.
    """
    main = next((op for op in module.body.operations if op.operation.name == "func.func" and _name_of(op) == "main"), None)
    if main is None:
        return
    type_attribute: Any = main.attributes["function_type"]
    function = ir.FunctionType(type_attribute.value)
    for side, declared, found in (
        ("parameters", shape.parameter_shapes(), function.inputs),
        ("results", [shape.result_shape()], function.results),
    ):
        flat = leaves(declared)
        if len(flat) != len(found) or not all(leaf.is_array() and not leaf.is_dynamic() for leaf in flat):
            continue
        expected = [str(leaf).split("{", maxsplit=1)[0] for leaf in flat]
        actual = [f"{name}[{','.join(map(str, dims))}]" for name, dims in map(type_in_hlo, found)]
        if expected != actual:
            raise ParseError(
                f"the {side} in entry_computation_layout are {', '.join(expected)}, but the program has {', '.join(actual)}"
            )


def leaves(shapes: Sequence[Any]) -> list[Any]:
    """The array shapes in `shapes`, with tuples flattened."""
    return [leaf for shape in shapes for leaf in (leaves(shape.tuple_shapes()) if shape.is_tuple() else [shape])]


def _untuple_aliases(module: ir.Module, shape: Any) -> None:
    """Renumbers donated parameters and their results: jaxlib flattens tuples and keeps the old indices.

    Args:
        module: The module that jaxlib converted from HLO.
        shape: The program shape of the HLO.
    """
    attributes: Any = module.operation.attributes
    if _ALIASES not in attributes:
        return
    results = [shape.result_shape()]
    changed = []
    for entry in map(ir.DictAttr, attributes[_ALIASES]):
        alias = ir.DictAttr(entry["alias"])
        number, path = ir.IntegerAttr(alias["parameter_number"]).value, list(ir.DenseI64ArrayAttr(alias["parameter_index"]))
        parameter = _leaf_number(shape.parameter_shapes(), [number, *path])
        result = _leaf_number(results, [0, *ir.DenseI64ArrayAttr(entry["output_index"])])
        index = f"array<i64: {result}>" if results[0].leaf_count() > 1 else "array<i64>"
        changed.append(
            f"{{alias = {{kind = {alias['kind']}, parameter_index = array<i64>, parameter_number = {parameter} : i64}}, "
            f"output_index = {index}}}"
        )
    attributes[_ALIASES] = ir.Attribute.parse(f"[{', '.join(changed)}]", module.context)


def _leaf_number(shapes: Sequence[Any], path: Sequence[int]) -> int:
    """The index in `leaves(shapes)` of the first leaf at or below `path`."""
    first, *rest = path
    before = sum(shape.leaf_count() for shape in shapes[:first])
    return before + (_leaf_number(shapes[first].tuple_shapes(), rest) if rest else 0)


def _explain_in_hlo(diagnostic: Diagnostic, text: str) -> str:
    """Formats a diagnostic with its line of HLO text, found by the name of the instruction."""
    message = f"{diagnostic.severity}: {diagnostic.message}"
    name = re.match(r'(?:loc\()?"([^"]+)"', diagnostic.location)
    if name is None:
        return message
    instruction = re.compile(rf"\s*(?:ROOT\s+)?%?{re.escape(name[1])}\s*=")
    line = next(((number, line) for number, line in enumerate(text.splitlines(), start=1) if instruction.match(line)), None)
    return f"line {line[0]}: {message}\n{line[1]}" if line else f"{name[1]}: {message}"


# --- Objects -----------------------------------------------------------------------------------------------------------------


def _of_module(module: ir.Module, *, is_checked: bool = False) -> Program:
    calls_python = False if is_checked else _calls_python(module)
    replicas, partitions = (_count(module, name) for name in ("mhlo.num_replicas", "mhlo.num_partitions"))
    return Program(module, replicas, partitions, calls_python=calls_python)


def _count(module: ir.Module, name: str) -> int:
    attributes = module.operation.attributes
    if name not in attributes:
        return 1
    value: Any = attributes[name]
    if not isinstance(value, ir.IntegerAttr) or value.value < 1:
        raise ParseError(f"the module's {name} must be an integer of at least 1, not {value}")
    return value.value


def _calls_python(module: ir.Module) -> bool:
    """Whether a program calls Python functions. Raises for calls on which XLA aborts; JAX never makes them."""
    calls: dict[str, set[str]] = {}
    targets: set[str] = set()

    def visit(operation: Any) -> ir.WalkResult:
        if operation.name == "func.func":
            calls[_name_of(operation)] = set()
        elif operation.name == "func.call":
            calls[next(reversed(calls))].add(operation.attributes["callee"].value)
        elif operation.name == "stablehlo.custom_call":
            targets.add(operation.attributes["call_target_name"].value)
        return ir.WalkResult.ADVANCE

    for operation in module.body.operations:
        if operation.operation.name == "func.func" and not operation.regions[0].blocks:
            raise ParseError(f"the function @{_name_of(operation)} has no body")
        operation.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    try:
        graphlib.TopologicalSorter(calls).prepare()
    except graphlib.CycleError as error:
        raise ParseError(
            f"the program calls itself: {' -> '.join(error.args[1])}; XLA has no recursion: use a while loop"
        ) from None
    return any(PYTHON_CALLBACK.fullmatch(target) for target in targets)


def _name_of(function: Any) -> str:
    return function.attributes["sym_name"].value


def _read_module(module: ir.Module) -> Program:
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise ParseError(f"the ir.Module is not valid: {error}") from None
    return _of_module(module)


def _read_lowered(lowered: jax.stages.Lowered) -> Program:
    callbacks = _compat.runtime.compile_arguments(lowered).get("host_callbacks") or ()
    module: Any = lowered.compiler_ir("stablehlo")
    return replace(_of_module(module, is_checked=True), host_callbacks=tuple(callbacks), keepalive=lowered)


def _read_exported(exported: Any) -> Program:
    lower = "lower it instead: jax.jit(exported.call).lower(*args)"
    if len(exported.platforms) > 1:
        raise ParseError(f"the export is for several platforms ({', '.join(exported.platforms)}); {lower}")
    if any(not isinstance(size, int) for aval in exported.in_avals for size in aval.shape):
        shapes = ", ".join(str(aval) for aval in exported.in_avals)
        raise ParseError(f"the export is for arguments of any size ({shapes}); {lower}, with arguments of the wanted size")
    program = _of_module(_compat.modules.read_artifact(exported.mlir_module_serialized))
    return replace(program, num_partitions=exported.nr_devices, keepalive=exported)


def _read_computation(computation: Any) -> Program:
    program = _read_hlo_proto(computation.as_serialized_hlo_module_proto())
    callbacks = getattr(computation, "host_callbacks", ())
    return replace(
        program,
        num_replicas=getattr(computation, "num_replicas", 1),
        num_partitions=getattr(computation, "num_partitions", 1),
        host_callbacks=callbacks,
        keepalive=computation,
        calls_python=program.calls_python and not callbacks,
    )


_READERS: dict[type, Callable[[Any], Program]] = {
    ir.Module: _read_module,
    jax.stages.Lowered: _read_lowered,
    jax.export.Exported: _read_exported,
    _compat.runtime.XlaComputation: _read_computation,
    _compat.runtime.HloModule: _read_computation,
}
