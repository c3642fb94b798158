# SPDX-License-Identifier: Apache-2.0
"""Which errors does `hlotag.xla` raise? hlotag's errors that also derive from jaxlib's, which code for jaxlib catches."""

from __future__ import annotations

from jax.errors import JaxRuntimeError

from hlotag import errors


class _PlainError(JaxRuntimeError):
    """jaxlib's error with a plain message; jaxlib's `str` expects a status code."""

    __str__ = Exception.__str__
    error_message = property(Exception.__str__)


class ArgumentError(errors.ArgumentError, _PlainError):
    """See `hlotag.ArgumentError`."""


class ParseError(errors.ParseError, _PlainError):
    """See `hlotag.ParseError`."""


class UnsupportedError(errors.UnsupportedError, _PlainError):
    """See `hlotag.UnsupportedError`."""


class XlaError(errors.XlaError, _PlainError):
    """See `hlotag.XlaError`."""
