# SPDX-License-Identifier: Apache-2.0
"""Passes on JAX's objects that hold a module: `jax.stages.Lowered` and `jax.export.Exported`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hlotag.errors import ParseError
from hlotag.mlir.modules import artifact_version, holds_artifact, to_bytecode

if TYPE_CHECKING:
    import jax


def runner_for(artifact: Any) -> Callable[[Any, Callable[[Any], object]], Any] | None:
    """Finds the function that runs passes on one of JAX's objects; None for other objects, and if JAX is not imported.

    It takes the object and a function on `ir.Module`s, and returns a new object of the same class.
    """
    if "jax" not in sys.modules:
        return None
    import jax.export
    import jax.stages

    if isinstance(artifact, jax.stages.Lowered):
        return _run_on_lowered
    if isinstance(artifact, jax.export.Exported):
        return _run_on_exported
    return None


def module_in(source: bytes, filename: str) -> bytes:
    """Returns the module in the bytes of `Exported.serialize()`, as a portable artifact; other bytes as they are.

    Raises ParseError if JAX cannot read the bytes.
    """
    return read_exported(source, filename).mlir_module_serialized if holds_artifact(source) else source


def read_exported(source: bytes, filename: str) -> jax.export.Exported:
    """Reads the bytes of `Exported.serialize()`. Raises ParseError if JAX cannot."""
    import jax.export

    try:
        return jax.export.deserialize(bytearray(source))
    except ImportError as error:
        raise ParseError(f"{filename}: jax.export needs {error.name}: pip install {error.name}") from error
    except Exception as error:
        raise ParseError(
            f"{filename}: jax.export.deserialize of jax {jax.__version__} cannot read it; it is cut or damaged, or from a newer "
            f"JAX: {error!r}"
        ) from error


def module_to_compile(source: bytes, filename: str, sizes: Mapping[str, int]) -> bytes:
    """As `module_in`, with `sizes` of symbolic dimensions, which XLA cannot compile.

    Raises ParseError if a size is missing or is of no dimension, or the sizes do not fit.
    """
    from hlotag import _compat

    if not source.strip():
        raise ParseError(f"{filename}: the file is empty; write it again")
    exported = read_exported(source, filename) if holds_artifact(source) else None
    symbols = () if exported is None else _compat.modules.symbols_of(exported)
    if unknown := [name for name in sizes if name not in symbols]:
        has = f"has the symbolic dimensions {', '.join(symbols)}" if symbols else "is no export with symbolic dimensions"
        raise ParseError(f"--shape {unknown[0]}={sizes[unknown[0]]}: {filename} {has}")
    if missing := [name for name in symbols if name not in sizes]:
        flags = " ".join(f"--shape {name}=8" for name in missing)
        raise ParseError(f"{filename}: the size of {', '.join(missing)} is symbolic; give one to compile it for: {flags}")
    if exported is None or not symbols:
        return source if exported is None else exported.mlir_module_serialized
    try:
        return _compat.modules.with_sizes(exported, sizes)
    except ValueError as error:
        given = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise ParseError(f"{filename}: the export cannot be compiled with {given}: {error}") from None


def _run_on_lowered(lowered: jax.stages.Lowered, run: Callable[[Any], object]) -> Any:
    from hlotag import _compat
    from hlotag.hlo import prepared

    # Change a copy: JAX caches the lowered module, so later lowerings of the program would get the changes.
    original: Any = lowered.compiler_ir("stablehlo")
    module = _compat.modules.read_bytecode(to_bytecode(original))
    run(module)
    prepared.like(module, original)
    return _compat.modules.with_module(lowered, module)


def _run_on_exported(exported: jax.export.Exported, run: Callable[[Any], object]) -> Any:
    from hlotag import _compat

    serialized = exported.mlir_module_serialized
    module = _compat.modules.read_artifact(serialized)
    run(module)
    # Keep the artifact's version, so that its readers can still read it.
    changed = _compat.modules.write_artifact(module, artifact_version(serialized))
    # JAX makes the gradient from the program rather than from this module, so the passes must run on the gradient too.
    with_gradient = _compat.modules.change_exported_gradient(exported, lambda gradient: _run_on_exported(gradient, run))
    return dataclasses.replace(with_gradient, mlir_module_serialized=changed)
