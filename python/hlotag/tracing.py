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
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import zip_longest
from types import CodeType
from typing import Any

from hlotag import _compat


class Group:
    """The equations made during one bind. There is one for every operation that is traced, hence no constructor.

    Attributes:
      parent: the group that was open when this one was opened; None for the operations of user code at the top.
      equations: weak references to the equations; a dead one was dropped by JAX's own dead-code elimination.
    """

    __slots__ = ("equations", "parent")

    parent: Group | None
    equations: list[_EquationRef]


class _EquationRef(weakref.ref):
    """A weak reference to an equation that knows the group; equations are slotted and unhashable, so `id` has to be the key."""

    __slots__ = ("group", "key")

    group: Group
    key: int


def _forget(ref: Any) -> None:
    if _refs.get(ref.key) is ref:
        del _refs[ref.key]


class _Open(threading.local):
    group: Group | None = None


_open = _Open()
_refs: dict[int, _EquationRef] = {}


def _in_group(bind: Callable) -> Callable:
    """`bind` with a group open while it runs. Runs for every operation that is traced, hence no context manager."""

    def grouped(primitive: Any, /, *args: Any, **params: Any) -> Any:
        outer = _open.group
        group = _open.group = Group()
        group.parent = outer
        group.equations = []
        try:
            return bind(primitive, *args, **params)
        finally:
            _open.group = outer
            if outer is not None:
                outer.equations += group.equations

    return grouped


def _in_some_group(bind: Callable) -> Callable:
    """`bind` with a group open while it runs: the one that is open already, which the same operation opened, or a new one."""
    grouped = _in_group(bind)

    @functools.wraps(bind)
    def bind_in_some_group(*args: Any) -> Any:
        return (grouped if _open.group is None else bind)(*args)

    return bind_in_some_group


def _record(equation: Any) -> None:
    group = _open.group
    if group is None:
        return
    ref = _EquationRef(equation, _forget)
    key = ref.key = id(equation)
    ref.group = group
    _refs[key] = ref
    group.equations.append(ref)


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
    enclosing: set[Group | None] = {None}
    caller = _open.group
    while caller is not None:
        enclosing.add(caller)
        caller = caller.parent
    group = _group_of(equation, enclosing)
    if group is None:  # Made before hlotag was enabled, or by the older partial evaluation.
        return [equation]
    groups = [group]
    for part, before, since in _compat.equations_around(value):
        # A call that does nothing to its operand (`conj` of real numbers) has an equation in the trace of tangents only.
        start = _group_of(part, enclosing)
        if start is None or start not in groups:  # The tangent of an operand, handed through.
            continue
        found = [
            *_same_call(part, start, before, enclosing, later=False),
            *_same_call(part, start, since, enclosing, later=True),
        ]
        groups += [one for one in found if one not in groups]
    return [live for one in groups for ref in one.equations if (live := ref()) is not None]


def _group_of(equation: Any, enclosing: set[Group | None]) -> Group | None:
    """The outermost group of `equation` below those in `enclosing`."""
    ref = _refs.get(id(equation))
    if ref is None or ref.group in enclosing:
        return None
    group = ref.group
    while group.parent not in enclosing:
        assert group.parent is not None  # None encloses everything.
        group = group.parent
    return group


def _same_call(
    equation: Any, group: Group, neighbours: Iterator[Any], enclosing: set[Group | None], *, later: bool
) -> list[Group]:
    """The other groups of the library call that bound `equation`, in one direction: `softmax` is several binds.

    They have the user's frames in common, down to the instruction, and within the library each is further on than the one before,
    or in another round of a loop that the call has left when it makes the value. A loop that also makes the value may as well be
    one around the call, which is another call then.
    """
    value = here = _compat.library_call(equation)
    found: list[Group] = []
    last = group
    for other in neighbours:
        other_group = _group_of(other, enclosing)
        if other_group is last:
            continue
        there = _compat.library_call(other)
        if other_group is None or value is None or here is None or there is None or here[0] != there[0]:
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


PATCHES = (*_compat.bind_patches(_in_group, _in_some_group), _compat.equation_patch(_record))
