# SPDX-License-Identifier: Apache-2.0
"""The forms of a program that can be compiled: HLO, StableHLO and JAX's own objects, recognized by their content."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.errors import JaxRuntimeError
from jax.extend.mlir import ir

from hlotag import _compat, errors
from hlotag.mlir.modules import BYTECODE_MAGIC, parse_module, to_bytecode, try_parse
from hlotag.passes.pipeline import run_passes
from hlotag.xla.errors import ArgumentError, ParseError, reason_of
from hlotag.xla.serialized import field_of, fields_of, looks_like_an_executable

ACCEPTED = (
    "HLO text, a serialized HloModuleProto, StableHLO text, MLIR bytecode, a StableHLO portable artifact (of a file, its "
    "contents), an ir.Module, a jax.stages.Lowered, a jax.export.Exported, or the result of xla_computation; lower a function: "
    "jax.jit(f).lower(*args)"
)
PYTHON_CALLBACK = r"xla_(?:ffi_)?(?:partitioned_)?python_\w+_callback"
"""The targets of custom calls into Python."""

_COMMENTS = r"(?:\s|//[^\n]*\n|/\*.*?\*/)*"
_MLIR_TEXT = re.compile(_COMMENTS + r"(?:[#!\"]|module\b|builtin\.|func\.func\b|sdy\.)", re.DOTALL)
_HLO_HEADER = re.compile(r"HloModule\b[^\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ELIDED = "constant({...})"
_IN_HLO_MODULE = {1, 3}  # name and computations, fields of xla.HloModuleProto (xla/service/hlo.proto)
_HLO_MODULE = 1  # field of xla.HloProto, the file that XLA dumps
_ALIASES = "mhlo.input_output_alias"


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
    host_callbacks: tuple = ()
    keepalive: Any = None
    calls_python: bool = False


def read(computation: Any, pipeline: str | Sequence[str] | None = None) -> Program:
    """Reads a program in any accepted form, and runs passes on a copy.

    Raises:
        ParseError: The program has none of these forms, or is malformed.
        PassError: A pass failed.
        ArgumentError: `pipeline` is malformed, or `computation` is an object of another class.
    """
    try:
        program = _read(computation)
    except errors.ParseError as error:
        raise ParseError(str(error)) from None
    if pipeline is None:
        return program
    copy = _compat.modules.read_bytecode(to_bytecode(program.module))
    return replace(program, module=run_passes(copy, pipeline))


def uses_shardy(module: ir.Module) -> bool:
    """Whether a module's shardings are Shardy's, and not XLA's older ones."""
    # A program that was converted from HLO has its meshes in a module attribute.
    has_attribute = "xla.sdy.meshes" in str(module.operation.attributes.get("mhlo.frontend_attributes", ""))
    return has_attribute or any(operation.operation.name.startswith("sdy.") for operation in module.body.operations)


def check_replica_groups(module: ir.Module, count: int) -> None:
    """Raises if a collective names a missing replica or partition: XLA would return the operand as the result."""
    for operation in _operations(module):
        for name in {"replica_groups", "source_target_pairs"}.intersection(operation.attributes.keys()):
            groups = operation.attributes[name]
            if isinstance(groups, ir.DenseElementsAttr) and (highest := np.asarray(groups).max(initial=0)) >= count:
                raise ArgumentError(
                    f"{operation.name} names replica or partition {highest}, but the program is compiled for {count}; if the "
                    "program's text lacks the count, set options.num_replicas or options.num_partitions"
                )


def leaves(shapes: Sequence[Any]) -> list[Any]:
    """The array shapes in `shapes`, with tuples flattened."""
    return [leaf for shape in shapes for leaf in (leaves(shape.tuple_shapes()) if shape.is_tuple() else [shape])]


def _read(computation: Any) -> Program:
    if isinstance(computation, str):
        return _read_text(computation)
    if isinstance(computation, bytes | bytearray | memoryview):
        return _read_bytes(bytes(computation))
    if isinstance(computation, ir.Module):
        try:
            computation.operation.verify()
        except ir.MLIRError as error:
            raise ParseError(f"the ir.Module is not valid: {error}") from None
        return _of_module(computation)
    if isinstance(computation, jax.stages.Lowered):
        callbacks = _compat.runtime.compile_arguments(computation).get("host_callbacks") or ()
        module: Any = computation.compiler_ir("stablehlo")
        return replace(_of_module(module), host_callbacks=tuple(callbacks), keepalive=computation, calls_python=False)
    if isinstance(computation, jax.export.Exported):
        return _read_exported(computation)
    if isinstance(computation, _compat.runtime.XlaComputation | _compat.runtime.HloModule):
        return _read_computation(computation)
    raise ArgumentError(f"cannot compile a {type(computation).__name__}: pass {ACCEPTED}")


# --- Text and bytes ----------------------------------------------------------------------------------------------------------


def _read_text(text: str) -> Program:
    if _MLIR_TEXT.match(text):
        return _of_mlir(text, "<StableHLO text>")
    if not text.strip():
        raise ParseError(f"the text is empty; pass {ACCEPTED}")
    if _ELIDED in _STRING.sub("", text):  # XLA reads it as zeros.
        raise ParseError(
            f"the HLO text has a constant without its numbers: {_ELIDED}; print it with "
            "as_hlo_text(print_large_constants=True), or dump it under XLA_FLAGS=--xla_dump_large_constants"
        )
    try:
        serialized = _compat.runtime.hlo_from_text(text)
    except JaxRuntimeError as error:
        read_as, _, message = reason_of(error).partition(":")
        if "HloInstruction" in read_as:
            raise ParseError(f"this is neither HLO nor MLIR, it begins with {text.strip()[:40]!r}; pass {ACCEPTED}") from None
        # XLA's reason has the line number, the column, the line and a caret.
        raise ParseError(f"the HLO text has a syntax error: {message.strip() or 'XLA does not say where'}") from None
    header = _HLO_HEADER.search(text)
    counts = dict(re.findall(r"\b(replica_count|num_partitions)=(-?\d+)", header[0] if header else ""))
    replicas, partitions = (int(counts.get(name, 1)) for name in ("replica_count", "num_partitions"))
    return replace(_read_hlo_proto(serialized), num_replicas=replicas, num_partitions=partitions)


def _read_bytes(data: bytes) -> Program:
    if data.startswith(BYTECODE_MAGIC):
        return _of_mlir(data, "<MLIR bytecode>")
    try:
        text = data.decode("utf-8")
        if not re.search(r"[\x00-\x08\x0e-\x1f]", text):
            return _read_text(text)
    except UnicodeDecodeError:
        pass
    if looks_like_an_executable(data):
        raise ParseError("these bytes look like a serialized executable, which is compiled already; use deserialize_executable")
    for proto in (field_of(data, _HLO_MODULE) if fields_of(data) else b"", data):
        if (fields_of(proto) or set()) >= _IN_HLO_MODULE:
            return _read_hlo_proto(proto)
    begins = f"they begin with {data[:16]!r}"
    raise ParseError(f"these {len(data)} bytes are not an HloModuleProto, or truncated: {begins}; pass {ACCEPTED}")


def _of_mlir(source: str | bytes, name: str) -> Program:
    with _compat.runtime.ir_context():
        return _of_module(parse_module(source, name))


def _read_hlo_proto(serialized: bytes) -> Program:
    try:
        bytecode = _compat.runtime.hlo_to_stablehlo(serialized)
    except (JaxRuntimeError, ValueError, MemoryError) as error:
        raise ParseError(
            f"the HLO cannot be read: {reason_of(error)}\nPass complete HLO from before optimization: "
            "as_hlo_text(print_large_constants=True) or as_serialized_hlo_module_proto()."
        ) from None
    with _compat.runtime.ir_context():
        module, diagnostics = try_parse(bytecode)
    if module is None:
        raise ParseError("\n".join(["the HLO is not valid:", *map(str, diagnostics)]))
    _untuple_aliases(module, _compat.runtime.XlaComputation(serialized).program_shape())
    return _of_module(module)


def _untuple_aliases(module: ir.Module, shape: Any) -> None:
    """Renumbers donated parameters and their results: jaxlib flattens tuples and keeps the old indices."""
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


# --- Objects -----------------------------------------------------------------------------------------------------------------


def _of_module(module: ir.Module) -> Program:
    replicas, partitions = (_count(module, name) for name in ("mhlo.num_replicas", "mhlo.num_partitions"))
    return Program(module, replicas, partitions, calls_python=_calls_python(module))


def _count(module: ir.Module, name: str) -> int:
    value: Any = module.operation.attributes.get(name)
    if value is not None and not isinstance(value, ir.IntegerAttr):
        raise ParseError(f"the module's {name} must be an integer, not {value}")
    return 1 if value is None else value.value


def _operations(root: Any) -> list[Any]:
    """All operations in a module or an operation."""
    found: list[Any] = []

    def visit(operation: Any) -> ir.WalkResult:
        found.append(operation)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


def _calls_python(module: ir.Module) -> bool:
    """Whether a program calls Python functions. Raises for calls on which XLA aborts."""
    body: Any = module.body.operations
    functions = {op.attributes["sym_name"].value: op for op in body if op.operation.name == "func.func"}
    calls, targets = {}, set()
    for name, function in functions.items():
        if not function.regions[0].blocks:
            raise ParseError(f"the function @{name} has no body")
        inside = _operations(function)
        calls[name] = {op.attributes["callee"].value for op in inside if op.name == "func.call"}
        targets |= {op.attributes["call_target_name"].value for op in inside if op.name == "stablehlo.custom_call"}
    try:
        graphlib.TopologicalSorter(calls).prepare()
    except graphlib.CycleError as error:
        raise ParseError(f"the program calls itself: {' -> '.join(error.args[1])}; use a while loop") from None
    return any(re.fullmatch(PYTHON_CALLBACK, target) for target in targets)


def _read_exported(exported: jax.export.Exported) -> Program:
    shapes = ", ".join(map(str, exported.in_avals))
    if len(exported.platforms) > 1 or any(not isinstance(size, int) for aval in exported.in_avals for size in aval.shape):
        raise ParseError(
            f"the export is for several platforms or sizes: {', '.join(exported.platforms)}; {shapes}; lower it for one: "
            "jax.jit(exported.call).lower(*args)"
        )
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
