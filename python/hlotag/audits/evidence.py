# SPDX-License-Identifier: Apache-2.0
"""Why may an operation or its tag be missing? Dead code, CSE, and the passes that consume keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from hlotag.audits import consumed
from hlotag.audits.cse import Eliminated
from hlotag.audits.merged import merged
from hlotag.audits.model import Op

# Passes of XLA in order, each with the module that it left: by instruction, the operations that the instruction is named after.
Passes = Sequence[tuple[str, Mapping[Any, Sequence[int]]]]


class Evidence:
    """What explains missing tags. Each part is slow to find, so it is computed on first use.

    Args:
        ops: The operations.
        live: Finds the operations that the program's results depend on.
        passes: Reads the passes. The first entry is the module before all passes.
    """

    def __init__(self, ops: Sequence[Op], live: Callable[[], set[int]], passes: Callable[[], Passes]) -> None:
        self._ops, self._live, self._passes = ops, live, passes

    @cached_property
    def live(self) -> set[int]:
        """The operations that the program's results depend on."""
        return self._live()

    @cached_property
    def passes(self) -> Passes:
        """XLA's passes, after the module before all passes."""
        return self._passes()

    @cached_property
    def eliminated(self) -> Eliminated:
        """The operations that CSE removed."""
        return Eliminated(self._ops, self.passes)

    @cached_property
    def merged(self) -> Mapping[int, set[int]]:
        """By product, the others that XLA merged into it."""
        return merged(self._ops, self.passes)

    @cached_property
    def consumed(self) -> Mapping[tuple[int, str], str]:
        """By operation and key, the pass that read the key and removed it."""
        return consumed.consumed(self.passes)
