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

from hlotag import _compat
from hlotag.errors import ArgumentError, ParseError
from hlotag.hlo.origins import walk
from hlotag.mlir.modules import BYTECODE_MAGIC, parse_module, to_bytecode
from hlotag.passes.pipeline import run_passes

ACCEPTED = (
    "HLO text, a serialized HloModuleProto, StableHLO text, MLIR bytecode, a StableHLO portable artifact, an ir.Module, a "
    "jax.stages.Lowered, a jax.export.Exported, or the result of xla_computation; lower a function: jax.jit(f).lower(*args)"
)
PYTHON_CALLBACK = r"xla_(?:ffi_)?(?:partitioned_)?python_\w+_callback"
"""The targets of custom calls into Python."""

_MLIR_TEXT = re.compile(r"(?:\s|//[^\n]*\n)*(?:[#!\"]|module\b|builtin\.|func\.func\b|sdy\.)")
_COUNT = re.compile(r"\b(replica_count|num_partitions)=(-?\d+)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ELIDED = "constant({...})"
_ALIASES = "mhlo.input_output_alias"


@dataclass(frozen=True)
class Program:
    """A program that is ready to be compiled.

    Attributes:
        module: The StableHLO module, which must not be changed.
        num_replicas: How many replicas the program is written for.
        num_partitions: How many partitions the program is written for.
        host_callbacks: jaxlib's objects for callbacks into Python, which some platforms need.
        keepalive: An object that must live as long as the executable, which has the Python functions that the program calls.
    """

    module: ir.Module
    num_replicas: int = 1
    num_partitions: int = 1
    host_callbacks: tuple = ()
    keepalive: Any = None


def read(computation: Any, pipeline: str | Sequence[str] | None = None) -> Program:
    """Reads a program in any accepted form, and runs passes on a copy.

    Raises:
        ParseError: The program is malformed.
        PassError: A pass failed.
        ArgumentError: `pipeline` is malformed, or `computation` is an object of another class.
    """
    program = _read(computation)
    if pipeline is None:
        return program
    copy = _compat.modules.read_bytecode(to_bytecode(program.module))
    return replace(program, module=run_passes(copy, pipeline))


def counts_in(hlo_text: str) -> tuple[int, int]:
    """The numbers of replicas and partitions in the header of HLO text, which alone has them."""
    found = dict(_COUNT.findall(next((line for line in hlo_text.splitlines() if line.startswith("HloModule")), "")))
    return int(found.get("replica_count", 1)), int(found.get("num_partitions", 1))


def uses_shardy(module: ir.Module) -> bool:
    """Whether a module's shardings are Shardy's, and not XLA's older ones."""
    # A program that was converted from HLO has its meshes in a module attribute.
    has_attribute = "xla.sdy.meshes" in str(module.operation.attributes.get("mhlo.frontend_attributes", ""))
    return has_attribute or any(operation.operation.name.startswith("sdy.") for operation in module.body.operations)


def check_operations(program: Program, count: int, has_callbacks: bool) -> None:
    """Raises for programs that XLA computes wrongly or ends the process for.

    These are collectives of missing replicas or partitions, whose results are the operands, calls of unknown functions, and
    functions that call themselves or have no body.
    """
    _check_functions(program.module)
    for operation in walk(program.module.operation):
        for name in {"replica_groups", "source_target_pairs"}.intersection(operation.attributes.keys()):
            groups = operation.attributes[name]
            if isinstance(groups, ir.DenseElementsAttr) and (highest := np.asarray(groups).max(initial=0)) >= count:
                raise ArgumentError(
                    f"{operation.name} names replica or partition {highest}, but the program is compiled for {count}; if the "
                    "program's text lacks the count, set options.num_replicas or options.num_partitions"
                )
        target = operation.attributes["call_target_name"].value if operation.name == "stablehlo.custom_call" else ""
        if re.fullmatch(PYTHON_CALLBACK, target) and not (has_callbacks or program.keepalive):
            raise ArgumentError(
                "the program calls Python functions, which are not in its text; pass the jax.stages.Lowered or the result of "
                "xla_computation, or pass the functions as host_callbacks"
            )


def _check_functions(module: ir.Module) -> None:
    body: Any = module.body.operations
    calls: dict[str, set[str]] = {}
    for function in (operation for operation in body if operation.operation.name == "func.func"):
        name = function.attributes["sym_name"].value
        if not function.regions[0].blocks:
            raise ParseError(f"the function @{name} has no body")
        calls[name] = {operation.attributes["callee"].value for operation in walk(function) if operation.name == "func.call"}
    try:
        graphlib.TopologicalSorter(calls).prepare()
    except graphlib.CycleError as error:
        raise ParseError(f"the program calls itself: {' -> '.join(error.args[1])}; use a while loop") from None


def _read(computation: Any) -> Program:
    if isinstance(inner := getattr(computation, "lowered", None), jax.stages.Lowered):
        computation = inner  # equinox.filter_jit wraps one.
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
        return replace(_of_module(module), host_callbacks=tuple(callbacks), keepalive=computation)
    if isinstance(computation, jax.export.Exported):
        program = _of_module(_compat.modules.read_artifact(computation.mlir_module_serialized))
        return replace(program, num_partitions=computation.nr_devices)
    if isinstance(computation, _compat.runtime.XlaComputation | _compat.runtime.HloModule):
        program = _of_hlo(computation.as_serialized_hlo_module_proto())
        further = ("num_replicas", "num_partitions", "host_callbacks")  # Of `xla_computation`, with `keepalive`.
        found = {name: getattr(computation, name) for name in further if hasattr(computation, name)}
        return replace(program, **found, keepalive=computation if found else None)
    raise ArgumentError(f"cannot compile a {type(computation).__name__}: pass {ACCEPTED}")


def _read_text(text: str) -> Program:
    if _MLIR_TEXT.match(text):
        return _parse(text, "<StableHLO text>")
    if _ELIDED in _STRING.sub("", text):  # XLA reads it as zeros.
        raise ParseError(
            f"the HLO text has a constant without its numbers: {_ELIDED}; print it with "
            "as_hlo_text(print_large_constants=True), or dump it under XLA_FLAGS=--xla_dump_large_constants"
        )
    try:
        serialized = _compat.runtime.hlo_from_text(text)
    except JaxRuntimeError as error:
        # XLA's reason begins with codes, and has the line number, the column, the line and a caret.
        reason = re.sub(r"^(?:[A-Z_]+: )?[^\n:]*: ?", "", str(error)).strip()
        raise ParseError(f"the HLO text has a syntax error: {reason or 'XLA gives no reason'}") from None
    replicas, partitions = counts_in(text)
    return replace(_of_hlo(serialized), num_replicas=replicas, num_partitions=partitions)


def _read_bytes(data: bytes) -> Program:
    if data.startswith(BYTECODE_MAGIC):
        return _parse(data, "<MLIR bytecode>")
    text = data.decode("utf-8", "replace")
    # Bytes of a message have control characters.
    return _of_hlo(data) if re.search(r"[\x00-\x08\x0e-\x1f\ufffd]", text) else _read_text(text)


def _parse(source: str | bytes, name: str) -> Program:
    with _compat.runtime.ir_context():
        return _of_module(parse_module(source, name))


def _of_hlo(serialized: bytes) -> Program:
    try:
        bytecode = _compat.runtime.hlo_to_stablehlo(serialized)
    except (JaxRuntimeError, ValueError, MemoryError) as error:
        raise ParseError(
            f"these {len(serialized)} bytes cannot be read as an HloModuleProto from before optimization: {error}; "
            f"pass {ACCEPTED}"
        ) from None
    program = _parse(bytecode, "<HLO>")
    _untuple_aliases(program.module, _compat.runtime.XlaComputation(serialized).program_shape())
    return program


def _of_module(module: ir.Module) -> Program:
    replicas, partitions = (module.operation.attributes.get(name) for name in ("mhlo.num_replicas", "mhlo.num_partitions"))
    return Program(module, _count(replicas), _count(partitions))


def _count(attribute: Any) -> int:
    if attribute is not None and not isinstance(attribute, ir.IntegerAttr):
        raise ParseError(f"the module's numbers of replicas and partitions must be integers, not {attribute}")
    return 1 if attribute is None else attribute.value


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
    """The index, among all arrays of `shapes`, of the first one at or below `path`."""
    first, *rest = path
    before = sum(shape.leaf_count() for shape in shapes[:first])
    return before + (_leaf_number(shapes[first].tuple_shapes(), rest) if rest else 0)
