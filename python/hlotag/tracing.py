# SPDX-License-Identifier: Apache-2.0
"""Which equations belong together: the ones that one operation of the user's program put into the traces.

User code makes a value by one `bind` of a primitive. Under `grad`, `vmap` and the like that bind runs the rules of the
transformations, and they put several equations into several traces: the primal one, residuals, the linear ones that
become the backward pass. All of them are made before the bind returns, so a *group*, opened when a bind starts and closed when it
returns, holds exactly the equations that derive from that one operation, without a guess by name or line.

Groups nest: a bind that runs user code (the function of a `custom_jvp`) holds the binds of that code.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from itertools import zip_longest
from types import CodeType
from typing import Any

from hlotag import _compat
from hlotag._core import (
    Group,
    group_of,
    in_group,
    in_some_group,
    open_group,
    recorded,
    recorded_in,
    recorded_recipe,
    take_tracebacks,
    traceback_of,
)


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
    enclosing: set[Group] = set()
    caller = open_group()
    while caller is not None:
        enclosing.add(caller)
        caller = caller.parent
    group = _group_of(equation, enclosing)
    if group is None:  # Made before hlotag was enabled.
        return [equation]
    groups = [group]
    for part, before, since in _compat.equations_around(value, recorded_in):
        # A call that does nothing to its operand (`conj` of real numbers) has an equation in the trace of tangents only.
        start = _group_of(part, enclosing)
        if start is None or start not in groups:  # The tangent of an operand, handed through.
            continue
        call = _compat.library_call(part, traceback_of(part))
        if call is None:
            continue
        found = [
            *_same_call(call, start, before, enclosing, later=False),
            *_same_call(call, start, since, enclosing, later=True),
        ]
        groups += [one for one in found if one not in groups]
    return [equation for one in groups for equation in one.equations()]


def _group_of(equation: Any, enclosing: set[Group]) -> Group | None:
    """The outermost group of `equation` below those in `enclosing`."""
    group = group_of(equation)
    if group is None or group in enclosing:
        return None
    while group.parent is not None and group.parent not in enclosing:
        group = group.parent
    return group


def _same_call(
    value: tuple[Any, _Frames], group: Group, neighbours: Iterator[Any], enclosing: set[Group], *, later: bool
) -> list[Group]:
    """The other groups of the library call that made `value`, in one direction: `softmax` is several binds.

    They have the user's frames in common, down to the instruction, and within the library each is further on than the one before,
    or in another round of a loop that the call has left when it makes the value. A loop that also makes the value may as well be
    one around the call, which is another call then.
    """
    here = value
    found: list[Group] = []
    last = group
    for other in neighbours:
        other_group = _group_of(other, enclosing)
        if other_group is last:
            continue
        there = _compat.library_call(other, traceback_of(other))
        if other_group is None or there is None or here[0] != there[0]:
            break
        if _is_further(here[1], there[1]) is not later and not _are_rounds(here[1], there[1], value[1]):
            break
        found.append(other_group)
        here, last = there, other_group
    return found


_Frames = tuple[tuple[CodeType, int], ...]  # (code, instruction), outermost first


def _is_further(here: _Frames, there: _Frames) -> bool | None:
    """Whether `there` is later than `here` in the code of the same call; None if it cannot be the same call."""
    for (code, instruction), (other_code, other_instruction) in zip(here, there, strict=False):
        if code is not other_code:
            return None
        if instruction != other_instruction:
            return other_instruction > instruction
    return None


def _are_rounds(here: _Frames, there: _Frames, outside: _Frames) -> bool:
    """Whether `here` and `there` are in one loop of a library's code, and `outside` is not."""
    for (code, instruction), (other_code, other_instruction), other in zip_longest(here, there, outside, fillvalue=(None, 0)):
        if code is None or code is not other_code:
            return False
        for loop in _loops(code):
            if instruction in loop and other_instruction in loop and not (other[0] is code and other[1] in loop):
                return True
        if instruction != other_instruction:
            return False
    return False


@functools.lru_cache(maxsize=4096)
def _loops(code: CodeType) -> tuple[range, ...]:
    """The instructions of each loop: from where a jump goes back to, to that jump."""
    jumps = [x for x in dis.get_instructions(code) if "BACKWARD" in x.opname]
    return tuple(range(x.argval, x.offset + 1) for x in jumps)


take_tracebacks(*_compat.traceback_sources())
PATCHES = (
    *_compat.bind_patches(in_group, in_some_group),
    _compat.equation_patch(recorded),
    _compat.recipe_patch(recorded_recipe),
)
