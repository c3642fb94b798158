# SPDX-License-Identifier: Apache-2.0
"""Which private parts of JAX and jaxlib are used, and why?

Nothing outside this package imports `jax._src`. JAX 0.10.2 and 0.11 to 0.12.x are supported. Functions here say where these
differ; the rest of hlotag uses one interface, `_compat.name`. `bindings` does not import JAX.

MLIR is imported from jaxlib rather than from `jax.extend.mlir`, because `jax.extend` imports Pallas, which takes longer than
the rest of hlotag.
"""

# ruff: noqa: F403  (for type checkers: the names of all modules, which `__getattr__` finds at run time)

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hlotag._compat.supported import explained
from hlotag.errors import IncompatibleJaxlibError

if TYPE_CHECKING:
    from hlotag._compat.hooks import *
    from hlotag._compat.jaxprs import *
    from hlotag._compat.modules import *
    from hlotag._compat.recording import *
    from hlotag._compat.runtime import *
    from hlotag._compat.tracing import *
    from hlotag._compat.transformations import *

_OF_JAX = ("hooks", "jaxprs", "modules", "recording", "runtime", "tracing", "transformations")


def __getattr__(name: str) -> Any:
    lacking = None
    for module in _OF_JAX:
        try:
            names = vars(_imported(module))
        except IncompatibleJaxlibError as error:
            lacking = lacking or error
            continue
        if name in names:
            globals()[name] = value = names[name]
            return value
    raise lacking or AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check() -> None:
    """Raises IncompatibleJaxlibError if this JAX lacks a part that hlotag uses."""
    for module in _OF_JAX:
        _imported(module)


def _imported(name: str) -> ModuleType:
    """Imports a module of this package on first use: `hlotag-opt` needs the bindings without JAX."""
    with explained():
        hide_frames(str(Path(__file__).parent.parent))
        return import_module(f"{__name__}.{name}")


@cache
def hide_frames(path: str) -> None:
    """Hides a file's or folder's frames in JAX's locations and tracebacks, which then name the user's lines.

    Args:
        path: A file, or a folder.
    """
    from jax._src import source_info_util, traceback_util

    for register in (source_info_util.register_exclusion, traceback_util.register_exclusion):
        register(path)
