# SPDX-License-Identifier: Apache-2.0
"""The private parts of JAX and jaxlib that hlotag uses, and the reasons.

Nothing outside this package imports `jax._src`. JAX 0.10.2 and 0.11 to 0.12.x are supported. Functions here say where these
differ; the rest of hlotag calls them as `_compat.module.name`. `bindings` does not import JAX.

MLIR is imported from jaxlib rather than from `jax.extend.mlir`, because `jax.extend` imports Pallas, which takes longer than
the rest of hlotag.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from hlotag._compat.supported import explain

if TYPE_CHECKING:
    from hlotag._compat import backward_rules, hooks, jaxprs, modules, recording, runtime, tracing, transformations

__all__ = ("backward_rules", "hooks", "jaxprs", "modules", "recording", "runtime", "tracing", "transformations")


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return _import_part(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check() -> None:
    """Raises IncompatibleJaxlibError if this JAX lacks a part that hlotag uses."""
    for module in __all__:
        _import_part(module)


def _import_part(name: str) -> ModuleType:
    """Imports a module of this package on first use: `hlotag-opt` needs the bindings without JAX."""
    with explain():
        hide_frames(str(Path(__file__).parent.parent))
        return import_module(f"{__name__}.{name}")


@cache
def hide_frames(path: str) -> None:
    """Hides the frames of a file or folder in JAX's locations and tracebacks, which then name the user's lines."""
    from jax._src import source_info_util, traceback_util

    for register in (source_info_util.register_exclusion, traceback_util.register_exclusion):
        register(path)
