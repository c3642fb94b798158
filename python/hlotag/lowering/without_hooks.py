# SPDX-License-Identifier: Apache-2.0
"""hlotag on a JAX that its hooks do not support: tags are JAX's own, there is no stage, and one warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import ContextDecorator, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import jax

from hlotag._compat.supported import explain
from hlotag.errors import IncompatibleJaxlibError, TagDropped

with explain():
    from jax.experimental import xla_metadata


def __getattr__(name: str) -> Any:
    """JAX's own functions of the same names."""
    return getattr(xla_metadata, name)


def enable(*_: Any, **__: Any) -> None:
    """Warns that no stage can be on, and names what JAX changed."""
    _warn_once()


def disable() -> None:
    """Does nothing: no stage is on."""


def stage(*_: Any, **__: Any) -> ContextDecorator:
    """As `enable`; a block or decorator without a stage."""
    _warn_once()
    return _Off()


class _Off(nullcontext, ContextDecorator):
    """A block that does nothing, also a decorator."""


@cache
def _warn_once() -> None:
    try:
        import_module("hlotag.lowering.staging")
    except IncompatibleJaxlibError as error:
        text = (
            f"{error}\n  without it: the stage stays off, and tags are JAX's own, which autodiff drops. Features without hooks "
            "in JAX work: hlotag-opt, hlotag.run_passes and rules on modules, hlotag audit --dump-dir"
        )
        warnings.warn(text, TagDropped, stacklevel=3)


def tag(value: Any, attrs: Mapping[str, Any], **_: Any) -> Any:
    """JAX's own value tags on the arrays of `value`."""

    def tagged_leaf(leaf: Any) -> Any:
        return xla_metadata.set_xla_metadata(leaf, **attrs) if isinstance(leaf, jax.Array) else leaf

    return jax.tree.map(tagged_leaf, value)


def tagged(attrs: Mapping[str, Any], **_: Any) -> Any:
    """JAX's own block or decorator."""
    return xla_metadata.set_xla_metadata(**attrs)


def set_xla_metadata(x: Any = None, /, **attrs: Any) -> Any:
    """JAX's own tags."""
    return tagged(attrs) if x is None else tag(x, attrs)
