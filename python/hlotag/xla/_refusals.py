# SPDX-License-Identifier: Apache-2.0
"""How do XLA's errors become errors that name the task and the next step?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from jax.errors import JaxRuntimeError

from hlotag.xla._errors import XlaError

_STATUS_CODE = re.compile(r"^[A-Z_]+: ")


def reason_of(error: BaseException) -> str:
    """Reads the reason from an error of XLA.

    Args:
        error: An error that jaxlib raised.

    Returns:
        The message without the status code.
    """
    return _STATUS_CODE.sub("", str(error)).strip()


@contextmanager
def refusals_explained(task: str, next_step: str) -> Iterator[None]:
    """Turns errors of XLA within the block into `XlaError`.

    Args:
        task: The verb phrase after "XLA cannot".
        next_step: The advice to the caller.

    Yields:
        Nothing.

    Raises:
        XlaError: XLA raised an error.
    """
    try:
        yield
    except JaxRuntimeError as error:
        raise XlaError(f"XLA cannot {task}: {reason_of(error)}\n{next_step[0].upper()}{next_step[1:]}.") from error
