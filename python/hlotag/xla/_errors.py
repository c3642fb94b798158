# SPDX-License-Identifier: Apache-2.0
"""hlotag's errors as `hlotag.xla` raises them: they are XLA's own error too, which code written for jaxlib catches."""

from __future__ import annotations

from jax.errors import JaxRuntimeError

from hlotag import errors


class _Said(JaxRuntimeError):
    """jaxlib's error, with the message that it is raised with; jaxlib's `str` wants a status."""

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
