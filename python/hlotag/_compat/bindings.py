# SPDX-License-Identifier: Apache-2.0
"""The private names of jaxlib's Python bindings of MLIR. This module does not need JAX."""

from __future__ import annotations

import os
from typing import Any


def capsule(module: Any) -> Any:
    """Returns the capsule of a module's operation, for C++. The bindings have no public name for it."""
    return module.operation._CAPIPtr


def extension_path() -> str:
    """Loads the extension with the bindings and returns its path."""
    from jaxlib.mlir import ir  # noqa: F401  (loads the library)
    from jaxlib.mlir._mlir_libs import _mlir

    return os.path.realpath(str(_mlir.__file__))


def dialect_registry() -> Any:
    """Returns an `ir.DialectRegistry` of all dialects that JAX uses, and registers MLIR's own passes, such as `canonicalize`.

    jaxlib's contexts have neither until JAX is imported, which takes much longer.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


def load_dialects(context: Any) -> None:
    """Loads the dialects that JAX's contexts take. The public `register_dialect` functions would import JAX."""
    from jaxlib.mlir._mlir_libs import _chlo, _mlirHlo, _sdy, _sdyMpmd, _stablehlo

    context.load_all_available_dialects()
    for extension in (_stablehlo, _chlo, _sdy, _sdyMpmd):
        extension.register_dialect(context)
    _mlirHlo.register_mhlo_dialect(context)
