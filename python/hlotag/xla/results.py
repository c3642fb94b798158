# SPDX-License-Identifier: Apache-2.0
"""The results of an execution on several devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from hlotag import _compat
from hlotag.xla.errors import ArgumentError


class ShardedToken:
    """Tokens for the end of an execution, one per device."""

    __slots__ = ("_device_ids", "jaxlib_object")

    def __init__(self, raw: Any, device_ids: Sequence[int]):
        self.jaxlib_object, self._device_ids = raw, device_ids

    def block_until_ready(self) -> None:
        """Waits for the end of the execution on all devices."""
        self.jaxlib_object.block_until_ready()

    def get_token(self, device_id: int) -> Any:
        """Returns the `Token` of one device, by its `id`; IndexError if the program does not run there."""
        if device_id not in self._device_ids:
            raise IndexError(f"the program has tokens for the devices {list(self._device_ids)}, and none for {device_id!r}")
        return self.jaxlib_object.get_token(self._device_ids.index(device_id))


class ExecuteResults:
    """The results of one execution, which can be taken once. `len()` is the number of results left.

    Its methods raise `ArgumentError` for results that were taken before.

    Args:
        raw: jaxlib's own results.
        token_ids: The ids of the devices if the execution has tokens; else empty.
        by_device: Whether to group arrays by device, as the arguments were; by default, by result.
    """

    __slots__ = ("_by_device", "_token_ids", "jaxlib_object")

    def __init__(self, raw: Any, token_ids: Sequence[int], by_device: bool = False):
        self.jaxlib_object, self._token_ids, self._by_device = raw, token_ids, by_device

    def __len__(self) -> int:
        with _explain_refusals():
            return len(self.jaxlib_object)

    def disassemble_into_single_device_arrays(self) -> list[list[jax.Array]]:
        """Takes the results: a list for each, with one array per device; or by device, if the arguments were."""
        with _explain_refusals():
            return self._order(self.jaxlib_object.disassemble_into_single_device_arrays())

    def disassemble_prefix_into_single_device_arrays(self, n: int) -> list[list[jax.Array]]:
        """Takes the first `n` results, in the form of `disassemble_into_single_device_arrays`."""
        with _explain_refusals():
            return self._order(self.jaxlib_object.disassemble_prefix_into_single_device_arrays(n))

    def consume_with_handlers(self, handlers: Sequence[Callable[[list[jax.Array]], Any]], strict: bool = True) -> list[Any]:
        """Takes the results and calls a function on each.

        Args:
            handlers: Functions of the arrays of one result, one array per device.
            strict: Whether each result needs a handler; if not, only the first results are handled.

        Returns:
            The values that the handlers returned.
        """
        handlers = list(handlers)
        if strict and len(handlers) != len(self):
            raise ArgumentError(
                f"handlers must be one for each of the {len(self)} results left, got {len(handlers)}; strict=False takes fewer"
            )
        with _explain_refusals():
            taken = self.jaxlib_object.disassemble_prefix_into_single_device_arrays(len(handlers))
        return [handler(arrays) for handler, arrays in zip(handlers, taken, strict=True)]

    def consume_token(self) -> ShardedToken:
        """Takes the token for the end of the execution, which must have been requested."""
        if not self._token_ids:
            raise ArgumentError("this execution has no tokens; request them: execute_sharded(..., with_tokens=True)")
        with _explain_refusals():
            return ShardedToken(self.jaxlib_object.consume_token(), self._token_ids)

    def _order(self, arrays: list[list[jax.Array]]) -> list[list[jax.Array]]:
        return [list(of_device) for of_device in zip(*arrays, strict=True)] if self._by_device else arrays


@contextmanager
def _explain_refusals() -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ArgumentError(f"{reason}; results can be taken once: keep the returned arrays, or execute again") from None


Token = _compat.runtime.Token
"""The end of an execution on one device: `block_until_ready()`."""

CompiledMemoryStats = _compat.runtime.CompiledMemoryStats
"""The memory that an executable needs: `argument_size_in_bytes`, `output_size_in_bytes`, `temp_size_in_bytes`, ..."""
