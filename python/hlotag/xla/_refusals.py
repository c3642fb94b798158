# SPDX-License-Identifier: Apache-2.0
"""XLA's own errors, with what was asked for and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from jax.errors import JaxRuntimeError

from hlotag.xla._errors import XlaError

_STATUS_CODE = re.compile(r"^[A-Z_]+: ")


def reason_of(error: BaseException) -> str:
    """What XLA gives as the reason.

    Args:
        error: An error that jaxlib raised.

    Returns:
        Its message without the status code in front.
    """
    return _STATUS_CODE.sub("", str(error)).strip()


@contextmanager
def refusals_explained(task: str, next_step: str) -> Iterator[None]:
    """Within the block, an error of XLA's becomes an `XlaError`.

    Args:
        task: What XLA was to do, as in "XLA cannot ...".
        next_step: What the caller can do about it.

    Yields:
        Nothing.

    Raises:
        XlaError: XLA raised an error.
    """
    try:
        yield
    except JaxRuntimeError as error:
        raise XlaError(f"XLA cannot {task}: {reason_of(error)}\n{next_step[0].upper()}{next_step[1:]}.") from error
