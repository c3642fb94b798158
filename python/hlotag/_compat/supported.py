# SPDX-License-Identifier: Apache-2.0
"""The supported versions of JAX, and the error for others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hlotag.errors import IncompatibleJaxlibError

REQUIREMENT = "jax>=0.10.2,<0.13"
"""As in pyproject.toml."""


@contextmanager
def explain() -> Iterator[None]:
    """A block that turns an error about a missing part of JAX into an IncompatibleJaxlibError that names the versions to install.

    An ImportError or AttributeError about a part of hlotag itself stays as it is.
    """
    try:
        yield
    except (ImportError, AttributeError) as error:
        if _is_ours(error):
            raise
        try:
            from jax import __version__ as version
        except ImportError:
            version = "none that can be imported"
        raise IncompatibleJaxlibError(
            f"hlotag cannot work with this jax.\n  found: jax {version}\n  reason: {error}\n  supported: {REQUIREMENT}\n"
            f"  what to do: install a supported one (pip install '{REQUIREMENT}'), or, if yours is newer, a newer hlotag"
        ) from error


def _is_ours(error: ImportError | AttributeError) -> bool:
    """Whether hlotag lacks the module or attribute: a defect of hlotag's."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0] == "hlotag"
    owner = getattr(error.obj, "__module__", None) or getattr(error.obj, "__name__", "")
    return str(owner).partition(".")[0] == "hlotag"
