# SPDX-License-Identifier: Apache-2.0
"""Which equations belong together: the ones that one operation of the user's program put into the traces.

User code makes a value by one `bind` of a primitive. Under `grad`, `vmap` and the like that bind runs the rules of the
transformations, and they put several equations into several traces: the primal one, residuals, the linear ones that
become the backward pass. All of them are made before the bind returns, so a *group*, opened when a bind starts and closed when it
returns, holds exactly the equations that derive from that one operation, without a guess by name or line.

Groups nest: a bind that runs user code (the function of a `custom_jvp`) holds the binds of that code.

A library function may be several binds (`softmax`). While it runs, the outermost frame of library code below the user's is the
call: each group is recorded with that frame's `Call`, and two calls are two frames.
"""

from __future__ import annotations

from typing import Any

from hlotag import _compat
from hlotag._core import equations_of_call, in_group, in_some_group, recorded, recorded_recipe, take_files


def original_of(value: Any) -> Any:
    """What `value` is a copy of, made by what lowers to nothing (`jnp.copy`, `stop_gradient`); itself if it is none."""
    while (operand := _compat.operand_handed_on(value)) is not None:
        value = operand
    return value


def equations_of(value: Any) -> list[Any]:
    """All equations that derive from the call that made `value`, as the calling code sees it.

    Args:
      value: one array or tracer.

    Returns:
      Equations (or the one recipe) of `_compat.equation_behind`; none for a value that no operation of a trace made: an argument,
      a constant, a concrete array.
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
