# SPDX-License-Identifier: Apache-2.0
"""What an execution on several devices gives: `ExecuteResults` and `ShardedToken`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from hlotag import _compat
from hlotag.errors import ArgumentError


class ShardedToken:
    """The end of an execution, device by device."""

    __slots__ = ("_count", "_raw")

    def __init__(self, raw: Any, count: int):
        self._raw, self._count = raw, count

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own token."""
        return self._raw

    def block_until_ready(self) -> None:
        """Waits for the end of the execution on all devices."""
        self._raw.block_until_ready()

    def get_token(self, device: int, /) -> Any:
        """The end of the execution on one device.

        Args:
            device: Which of the executable's devices, counted from 0.

        Returns:
            A `Token`.

        Raises:
            IndexError: There are not so many.
        """
        if device not in range(self._count):
            raise IndexError(f"there is one token per device, 0 to {self._count - 1}, and none for {device!r}")
        return self._raw.get_token(device)


class ExecuteResults:
    """The results of one execution, which can be taken once.

    `len()` is the number of results.
    """

    __slots__ = ("_raw", "_token_count")

    def __init__(self, raw: Any, token_count: int):
        self._raw, self._token_count = raw, token_count

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own results."""
        return self._raw

    def __len__(self) -> int:
        with _taken_once():
            return len(self._raw)

    def disassemble_into_single_device_arrays(self) -> list[list[jax.Array]]:
        """Takes the results, device by device.

        Returns:
            For each result a list of arrays, one per device of the executable.

        Raises:
            ArgumentError: They have been taken.
        """
        with _taken_once():
            return self._raw.disassemble_into_single_device_arrays()

    def disassemble_prefix_into_single_device_arrays(self, n: int, /) -> list[list[jax.Array]]:
        """Takes the first results, device by device.

        Args:
            n: How many.

        Returns:
            For each of them a list of arrays, one per device of the executable.

        Raises:
            ArgumentError: There are not so many, or they have been taken.
        """
        with _taken_once():
            left = len(self._raw)
            if n not in range(left + 1):
                raise ArgumentError(f"there are {left} results, so the first {n!r} cannot be taken")
            return self._raw.disassemble_prefix_into_single_device_arrays(n)

    def consume_with_handlers(self, out_handlers: Sequence[Callable[[list[jax.Array]], Any]], strict: bool = True) -> list[Any]:
        """Takes the results and makes something of each.

        Args:
            out_handlers: Functions from the arrays of one result, one per device, to what is made of it.
            strict: Whether there must be one for each result, or at most one.

        Returns:
            What the functions returned.

        Raises:
            ArgumentError: The number of functions is wrong, or the results have been taken.
        """
        handlers = list(out_handlers)
        with _taken_once():
            left = len(self._raw)
            if len(handlers) > left or (strict and len(handlers) != left):
                raise ArgumentError(f"there are {left} results left, and {len(handlers)} handlers for them")
            return self._raw.consume_with_handlers(handlers, strict)

    def consume_token(self) -> ShardedToken:
        """Takes the end of the execution.

        Returns:
            The token.

        Raises:
            ArgumentError: It has been taken, or was not asked for.
        """
        if not self._token_count:
            raise ArgumentError("this execution has no tokens; ask for them: execute_sharded(..., with_tokens=True)")
        with _taken_once():
            return ShardedToken(self._raw.consume_token(), self._token_count)


@contextmanager
def _taken_once() -> Iterator[None]:
    try:
        yield
    except ArgumentError:
        raise
    except ValueError as error:
        raise ArgumentError(
            f"{str(error).rstrip('.')}: results can be taken once; keep what was returned, or execute again"
        ) from None


Token = _compat.Token
"""The end of an execution on one device: `block_until_ready()`."""

CompiledMemoryStats = _compat.CompiledMemoryStats
"""What memory an executable needs: `argument_size_in_bytes`, `output_size_in_bytes`, `temp_size_in_bytes`, ..."""
