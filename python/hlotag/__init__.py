# SPDX-License-Identifier: Apache-2.0
"""Tags on the operations of a JAX program that survive autodiff, batching, control flow and XLA.

`hlotag.enable()` is enough for programs that already use `jax.experimental.xla_metadata`.
"""

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from hlotag._util.version import VERSION as __version__  # noqa: F401

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError(
        "hlotag needs Python's global interpreter lock, which this free-threaded Python runs without: set PYTHON_GIL=1 in its "
        "environment, or use another build of Python"
    )

# JAX's own default, set when JAX is imported: jaxlib reads it when its library is loaded, which hlotag may do before JAX.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# The names of `__init__.pyi`, each imported on first use: `hlotag-opt` needs the passes and not JAX.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_WHERE = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", _STUB, re.MULTILINE)}
__all__ = list(_WHERE)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'hlotag' has no attribute {name!r}")
    where = _WHERE[name]
    found = import_module(f".{name}", "hlotag") if where == "." else getattr(import_module(where, "hlotag"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
