# SPDX-License-Identifier: Apache-2.0
"""Tags of calls and limits of fusions: the functions of `jax.experimental.xla_metadata` of 0.12, on every supported JAX.

A call is an inner `jit` within a block. JAX's own call has no gradient under `jax.checkpoint`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax

from hlotag._util.arguments import show
from hlotag.errors import TagError
from hlotag.tagging import keys
from hlotag.tagging.keys import Grad
from hlotag.tagging.tags import Block, as_grad, as_metadata, tagged


def fuse_limit() -> Block:
    """Keeps XLA from fusing across a block or decorated function: tags its operations with `FUSE_LIMIT="true"`.

    Returns:
        A context manager that is also a decorator.

    Examples:
        >>> with hlotag.stage(), hlotag.fuse_limit():
        ...     'FUSE_LIMIT = "true"' in jax.jit(jnp.sin).lower(1.0).as_text()
        True
    """
    return tagged({"FUSE_LIMIT": True})


def must_fuse_call(identifier: str | int) -> Callable[[Callable], Callable]:
    """Makes XLA fuse all operations of a function: makes it a call with `MUST_FUSE=identifier`.

    Args:
        identifier: The fusion. XLA makes one fusion of calls with the same identifier. The backward pass gets it too; use
            `xla_metadata_call2` to give the backward pass another one, or none.

    Returns:
        A decorator.

    Raises:
        TagError: `identifier` has no text form, or is the function: write `@hlotag.must_fuse_call("1")`.

    Examples:
        >>> @hlotag.must_fuse_call("activation")
        ... def activation(x):
        ...     return jnp.tanh(x) * x
        >>> with hlotag.stage():
        ...     'MUST_FUSE = "activation"' in jax.jit(activation).lower(jnp.ones(4)).as_text()
        True
    """
    if callable(identifier):
        raise TagError(f'expected an identifier, got {show(identifier)}; write @hlotag.must_fuse_call("1") above the function')
    return xla_metadata_call(MUST_FUSE=identifier)


def xla_metadata_call(f: Callable | None = None, /, **meta: Any) -> Callable:
    """Stages a function out as a call with metadata. Calls that autodiff derives get the metadata too.

    Args:
        f: A function of arrays. Without it, the result is a decorator.
        **meta: Keys and values.

    Returns:
        The wrapped function, or a decorator.

    Raises:
        TagError: A value has no text form, or a key is reserved.

    Examples:
        >>> square = hlotag.xla_metadata_call(lambda x: x * x, block="square")
        >>> with hlotag.stage():
        ...     'block = "square"' in jax.jit(square).lower(1.0).as_text()
        True
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Callable | Mapping[str, Any] | None = None, /, metadata: Mapping[str, Any] | None = None, *, ad_metadata: Grad = "same"
) -> Callable:
    """`xla_metadata_call` with metadata as a mapping, and separate metadata for derived calls.

    Args:
        f: A function of arrays. Without it, or with the mapping in its place, the result is a decorator.
        metadata: Keys and values.
        ad_metadata: For the linearized and transposed calls: "same", "drop", or a mapping of their own. Under forward-mode `jvp`
            the primal and the tangent are one call, which keeps `metadata`. As `grad=`, it has no effect without the stage.

    Returns:
        The wrapped function, or a decorator.

    Raises:
        TagError: A value has no text form, a key is reserved, `ad_metadata` is another value, or `f` cannot be called.

    Examples:
        >>> block = {"block": "square"}
        >>> square = hlotag.xla_metadata_call2(lambda x: x * x, block, ad_metadata="drop")
        >>> with hlotag.stage():
        ...     'block = "square"' in jax.jit(square).lower(1.0).as_text()
        True
    """
    if isinstance(f, Mapping) and metadata is None:
        f, metadata = None, f
    entries = as_metadata({} if metadata is None else metadata, name="metadata")
    grad = as_grad(ad_metadata, "ad_metadata")
    if f is None:
        return lambda g: _tagged_call(g, entries, grad)
    return _tagged_call(f, entries, grad)


def _tagged_call(f: Any, entries: dict[str, Any], grad: Grad | None) -> Callable:
    if not callable(f):
        raise TagError(f"expected a callable to wrap, got {show(f)}")
    block = tagged(entries, grad=grad)
    without = tagged(dict.fromkeys(filter(keys.is_kept, entries)))  # Keys that mean the call, and not what is in it.

    @jax.jit
    def xla_metadata_call(*args: Any, **kwargs: Any) -> Any:
        with without:
            return f(*args, **kwargs)

    @functools.wraps(f)
    def tagged_call(*args: Any, **kwargs: Any) -> Any:
        with block:
            return xla_metadata_call(*args, **kwargs)

    return tagged_call
