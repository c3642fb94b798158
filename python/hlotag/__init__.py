# SPDX-License-Identifier: Apache-2.0
"""Tags on the operations of a JAX program that survive autodiff, batching, control flow and XLA.

`hlotag.enable()` is enough for programs that already use `jax.experimental.xla_metadata`.
"""

import os
import sys
from typing import Any

import lazy_loader

from hlotag._util.version import VERSION as __version__  # noqa: F401

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "hlotag needs Python's global interpreter lock, which this free-threaded Python runs without: set PYTHON_GIL=1 in its "
        "environment, or use another build of Python"
    )

# JAX's own default, set when JAX is imported: jaxlib reads it when its library is loaded, which hlotag may do before JAX.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# The names of `__init__.pyi`, each imported on first use: `hlotag-opt` needs the passes and not JAX.
_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    from hlotag.errors import IncompatibleJaxlibError

    try:
        value = globals()[name] = _imported(name)
        return value
    except IncompatibleJaxlibError:
        from hlotag.lowering import without_hooks

        if not hasattr(without_hooks, name):
            raise
        return getattr(without_hooks, name)
