# SPDX-License-Identifier: Apache-2.0
"""Which equations derive from one operation of the user's program?

User code makes a value by one `bind` of a primitive. Under `grad` or `vmap` the bind runs the rules of the transformations, which
add several equations to several traces: the primal one, residuals, and the linear ones that become the backward pass. All of them
are made before the bind returns. So a *group*, opened when a bind starts and closed when it returns, contains exactly the
equations that derive from the operation.

Groups nest: the group of a bind that runs user code (the function of a `custom_jvp`) contains the binds of that code.

A library function may make several binds (`softmax`). The outermost frame of library code below the user's identifies the call:
each group is recorded with that frame's `Call`.
"""

from __future__ import annotations

from typing import Any

from hlotag import _compat
from hlotag._core import equations_of_call, in_group, in_some_group, recorded, recorded_recipe, take_files


def original_of(value: Any) -> Any:
    """Follows `value` back through operations that lower to nothing (`stop_gradient`)."""
    while (operand := _compat.operand_handed_on(value)) is not None:
        value = operand
    return value


def equations_of(value: Any) -> list[Any]:
    """All equations that derive from the call, in the calling code, that made `value`.

    Args:
      value: one array or tracer.

    Returns:
      Equations (or the one recipe) of `_compat.equation_behind`. Arguments, constants and concrete arrays have none.
    """
    equation = _compat.equation_behind(value)
    if equation is None:
        return []
    return equations_of_call(equation, _compat.place_of(equation), _compat.traces_of(value))


take_files(_compat.is_user_filename, _compat.RUNNERS)
PATCHES = (
    *_compat.bind_patches(in_group, in_some_group),
    _compat.equation_patch(recorded),
    _compat.recipe_patch(recorded_recipe),
)
