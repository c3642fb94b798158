# SPDX-License-Identifier: Apache-2.0
"""The library with the MLIR of the installed jaxlib."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hlotag._compat.bindings import extension_path
from hlotag.errors import IncompatibleJaxlibError

SUPPORTED_JAXLIB = ">=0.10.2, <0.13"
TRIED = ("0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.0.1")
"""The versions that hlotag's tests ran with; `trial` tries any other."""
_LIBRARY = "libjax_common.so"


@dataclass(frozen=True)
class Library:
    """The library that holds jaxlib's MLIR, and jaxlib's version."""

    version: str
    path: str

    def __str__(self) -> str:
        """The name in messages."""
        return f"{self.version} in {self.path}"


def find_library() -> Library:
    """Finds and loads the library with the MLIR of the installed jaxlib. Raises IncompatibleJaxlibError if there is none."""
    try:
        import jaxlib  # noqa: F401
        from jaxlib.version import __version__ as version

        directory = os.path.dirname(os.path.dirname(os.path.dirname(extension_path())))
    except ImportError as error:
        raise incompatible("none that can be imported", str(error)) from error
    path = os.path.join(directory, _LIBRARY)
    if not os.path.exists(path):
        raise incompatible(f"{version} in {directory}", f"it has no {_LIBRARY}")
    return Library(version, path)


def incompatible(found: Library | str, reason: str) -> IncompatibleJaxlibError:
    """Makes the error for a jaxlib that cannot be used, with the reason and what to install."""
    return IncompatibleJaxlibError(
        f"hlotag cannot work with this jaxlib.\n  found: jaxlib {found}\n  reason: {reason}\n"
        f"  supported: the official wheels of jaxlib {SUPPORTED_JAXLIB} for Linux\n"
        "  what to do: install jaxlib from PyPI (pip install --force-reinstall 'jax>=0.10.2,<0.13'), or, if yours is newer, "
        "a newer hlotag"
    )
