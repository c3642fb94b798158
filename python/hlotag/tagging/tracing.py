# SPDX-License-Identifier: Apache-2.0
"""The equations that derive from one operation of the user's program.

User code makes a value by one `bind` of a primitive: an operation, or a jitted function. Under `grad` or `vmap` the bind
runs the rules of the transformations, which add several equations to several traces: the primal one, residuals, and the linear
ones that become the backward pass. All of them are made before the bind returns. So the equations made from its start to its
return are exactly those that derive from the operation.

Binds nest: one that runs user code (the function of a `custom_jvp`) contains the binds of that code.
"""

from __future__ import annotations

from typing import Any

from hlotag import _compat
from hlotag._core import equations_of_bind


def skip_tags(value: Any) -> Any:
    """Returns `value` before the value tags that it already has."""
    while (operand := _compat.tracing.operand_of_value_tag(value)) is not None:
        value = operand
    return value


def original_of(value: Any) -> Any:
    """Follows `value` back through operations that lower to nothing (`stop_gradient`)."""
    while (operand := _compat.tracing.operand_handed_on(value)) is not None:
        value = operand
    return value


def equations_of(value: Any) -> list[Any]:
    """All equations of the bind that made `value`, as `_compat.tracing.equation_behind` has them.

    Arguments, constants and concrete arrays have none.
    """
    equation = _compat.tracing.equation_behind(value)
    return [] if equation is None else equations_of_bind(equation)
