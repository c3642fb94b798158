# SPDX-License-Identifier: Apache-2.0
"""What does an execution on several devices return? `ExecuteResults` and `ShardedToken`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from hlotag import _compat
from hlotag.xla._errors import ArgumentError


class ShardedToken:
    """Tokens for the end of an execution, one per device."""

    __slots__ = ("_device_ids", "_raw")

    def __init__(self, raw: Any, device_ids: Sequence[int]):
        self._raw, self._device_ids = raw, device_ids

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own token."""
        return self._raw

    def block_until_ready(self) -> None:
        """Waits for the end of the execution on all devices."""
        self._raw.block_until_ready()

    def get_token(self, device_id: int) -> Any:
        """Returns the token for the end of the execution on one device.

        Args:
            device_id: The `id` of one of the executable's devices.

        Returns:
            A `Token`.

        Raises:
            IndexError: The program does not run on this device.
        """
        if device_id not in self._device_ids:
            raise IndexError(f"the program has tokens for the devices {list(self._device_ids)}, and none for {device_id!r}")
        return self._raw.get_token(self._device_ids.index(device_id))


class ExecuteResults:
    """The results of one execution, which can be taken once. `len()` is the number of results left.

    Args:
        raw: jaxlib's own results.
        token_ids: The ids of the devices if the execution has tokens; else empty.
        by_device: Whether to group arrays by device, as the arguments were; by default, by result.
    """

    __slots__ = ("_by_device", "_raw", "_token_ids")

    def __init__(self, raw: Any, token_ids: Sequence[int], by_device: bool = False):
        self._raw, self._token_ids, self._by_device = raw, token_ids, by_device

    @property
    def jaxlib_object(self) -> Any:
        """Jaxlib's own results."""
        return self._raw

    def __len__(self) -> int:
        with _taken_once():
            return len(self._raw)

    def disassemble_into_single_device_arrays(self) -> list[list[jax.Array]]:
        """Takes the results.

        Returns:
            A list for each result, with one array per device. If the arguments were grouped by device, a list for each device,
            with one array per result.

        Raises:
            ArgumentError: The results have been taken.
        """
        with _taken_once():
            return self._ordered(self._raw.disassemble_into_single_device_arrays())

    def disassemble_prefix_into_single_device_arrays(self, n: int) -> list[list[jax.Array]]:
        """Takes the first results.

        Args:
            n: The number of results.

        Returns:
            The results, in the form of `disassemble_into_single_device_arrays`.

        Raises:
            ArgumentError: Fewer results are left.
        """
        with _taken_once():
            left = len(self._raw)
            if n not in range(left + 1):
                raise ArgumentError(f"there are {left} results, so the first {n!r} cannot be taken")
            return self._ordered(self._raw.disassemble_prefix_into_single_device_arrays(n))

    def consume_with_handlers(self, handlers: Sequence[Callable[[list[jax.Array]], Any]], strict: bool = True) -> list[Any]:
        """Takes the results and calls a function on each.

        Args:
            handlers: Functions of the arrays of one result, one array per device.
            strict: Whether each result needs a handler; if not, only the first results are handled.

        Returns:
            The values that the handlers returned.

        Raises:
            ArgumentError: The number of handlers is wrong, or the results have been taken.
        """
        handlers = list(handlers)
        with _taken_once():
            left = len(self._raw)
            if len(handlers) > left or (strict and len(handlers) != left):
                raise ArgumentError(f"there are {left} results left, and {len(handlers)} handlers for them")
            return self._raw.consume_with_handlers(handlers, strict)

    def consume_token(self) -> ShardedToken:
        """Takes the token for the end of the execution.

        Returns:
            The token.

        Raises:
            ArgumentError: The token has been taken, or the execution made none.
        """
        if not self._token_ids:
            raise ArgumentError("this execution has no tokens; request them: execute_sharded(..., with_tokens=True)")
        with _taken_once():
            return ShardedToken(self._raw.consume_token(), self._token_ids)

    def _ordered(self, arrays: list[list[jax.Array]]) -> list[list[jax.Array]]:
        return [list(of_device) for of_device in zip(*arrays, strict=True)] if self._by_device else arrays


@contextmanager
def _taken_once() -> Iterator[None]:
    try:
        yield
    except ArgumentError:
        raise
    except ValueError as error:
        raise ArgumentError(
            f"{str(error).rstrip('.')}: results can be taken once; keep the returned arrays, or execute again"
        ) from None


Token = _compat.runtime.Token
"""The end of an execution on one device: `block_until_ready()`."""

CompiledMemoryStats = _compat.runtime.CompiledMemoryStats
"""The memory that an executable needs: `argument_size_in_bytes`, `output_size_in_bytes`, `temp_size_in_bytes`, ..."""
