# SPDX-License-Identifier: Apache-2.0
"""The errors of `hlotag.xla`: hlotag's errors that are also jaxlib's, which code written for jaxlib catches."""

from __future__ import annotations

from jax.errors import JaxRuntimeError

from hlotag import errors


class _Said(JaxRuntimeError):
    """jaxlib's error with a plain message; jaxlib's `str` expects a status code."""

    __str__ = Exception.__str__
    error_message = property(Exception.__str__)


class ArgumentError(errors.ArgumentError, _Said):
    """See `hlotag.ArgumentError`."""


class ParseError(errors.ParseError, _Said):
    """See `hlotag.ParseError`."""


class UnsupportedError(errors.UnsupportedError, _Said):
    """See `hlotag.UnsupportedError`."""


class XlaError(errors.XlaError, _Said):
    """See `hlotag.XlaError`."""
