# SPDX-License-Identifier: Apache-2.0
"""In which phase of a program is an equation: forward, derived by autodiff, recomputed?"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hlotag import _compat

# An element of name stacks: the operation is one of a backward rule of the user's.
BACKWARD_RULE = _compat.jaxprs.Marker()
# The scope of what `jax.checkpoint` recomputes.
_REMATTED = "rematted_computation"


class Phase(enum.Enum):
    """What the operations of an equation are to those that the program's functions bind."""

    FORWARD = "forward"
    CUSTOM = "custom"
    """Bound in a backward rule of the user's."""
    DERIVED = "derived"
    """Derived by autodiff."""
    REMATTED = "rematted"
    """Derived, and a forward operation that `jax.checkpoint` recomputes."""


def is_turn(element: Any) -> bool:
    """Whether an element of a name stack changes the phase of what is in it."""
    return element is BACKWARD_RULE or _compat.jaxprs.is_transpose(element) or _compat.jaxprs.scope_of(element) == _REMATTED


@dataclass(frozen=True)
class Derivation:
    """How autodiff came to the equations of a place.

    Attributes:
        count: Transposes around them, less the user's backward rules: positive if autodiff derived them.
        is_transposed: Whether they are in a backward pass.
        is_rematted: Whether `jax.checkpoint` recomputes them.
    """

    count: int = 0
    is_transposed: bool = False
    is_rematted: bool = False

    def enter(self, turns: Iterable[Any]) -> Derivation:
        """That of equations with more turns in their name stacks."""
        count, is_transposed, is_rematted = self.count, self.is_transposed, self.is_rematted
        for turn in turns:
            if turn is BACKWARD_RULE:
                count -= 1
            elif _compat.jaxprs.is_transpose(turn):
                count, is_transposed = count + 1, True
            else:
                is_rematted = True
        return Derivation(count, is_transposed, is_rematted)

    @property
    def phase(self) -> Phase:
        """The phase of the equations."""
        if self.count > 0:
            return Phase.REMATTED if self.is_rematted else Phase.DERIVED
        return Phase.CUSTOM if self.is_transposed else Phase.FORWARD
