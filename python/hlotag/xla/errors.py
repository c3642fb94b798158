# SPDX-License-Identifier: Apache-2.0
"""The errors of `hlotag.xla`: hlotag's, which are also jaxlib's, so that code for jaxlib catches them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

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


def reason_of(error: BaseException) -> str:
    """The message of an error of XLA, without its status code."""
    return re.sub(r"^[A-Z_]+: ", "", str(error)).strip()


@contextmanager
def explain_refusals(task: str, next_step: str) -> Iterator[None]:
    """Turns XLA's errors within the block into `XlaError`: "XLA cannot `task`: ...", and `next_step` on a line of its own."""
    try:
        yield
    except JaxRuntimeError as error:
        raise XlaError(f"XLA cannot {task}: {reason_of(error)}\n{next_step}.") from error
