# SPDX-License-Identifier: Apache-2.0
"""Passes on JAX's objects that hold a module: `jax.stages.Lowered` and `jax.export.Exported`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
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
    if not holds_artifact(source):
        return source
    import jax.export

    try:
        return jax.export.deserialize(bytearray(source)).mlir_module_serialized
    except Exception as error:
        raise ParseError(f"{filename}: jax.export.deserialize of jax {jax.__version__} cannot read it: {error!r}") from error


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
