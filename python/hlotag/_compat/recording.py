# SPDX-License-Identifier: Apache-2.0
"""Patches of what JAX does while it traces: it binds primitives and records equations.

JAX has no public hook for either.
"""

from __future__ import annotations

from typing import Any

from jax._src import source_info_util
from jax._src.core import Primitive, Tracer, typeof
from jax._src.interpreters import partial_eval as pe
from jax._src.interpreters.partial_eval import DynamicJaxprTrace

from hlotag._compat.hooks import STAGES, Patch, Purpose
from hlotag._compat.jaxprs import Primal, is_open
from hlotag._core import Switch, in_bind, in_some_bind, recorded, recorded_recipe


def _type_of(operand: Any) -> Any:
    """The type of an operand; None for functions and other operands that have none."""
    if isinstance(operand, Tracer):
        return operand.aval
    try:
        return typeof(operand)
    except TypeError:
        return None


OPS = Switch()
"""Counts the stages with rules by operation."""


def operation_patches() -> tuple[Patch, ...]:
    """Records which equations each bind of a primitive makes.

    One bind by user code is one primal equation. The rules of autodiff and batching emit their equations before the bind returns,
    and only the bind tells these from the equations of an equal operation on the same line. A program may hold an unwrapped
    `primitive.bind`, which calls `bind_with_trace`. `make_eqn` makes each equation of a
    jaxpr trace, and `new_eqn_recipe` each one of the older partial evaluation: of rules of `custom_jvp` and `linear_transpose`,
    which run user code.

    While a stage has rules by operation, the name stack of a bind has its `Primal`, unless it runs within another bind that has.
    The wrappers run for every operation, so they are in C++.
    """
    names = (
        source_info_util._source_info_context,
        source_info_util.NameStack,
        source_info_util.SourceInfo,
        Primal,
        is_open,
        _type_of,
    )
    of_trace = "self, in_tracers, out_avals, primitive, params, effects, source_info, ctx"
    of_recipe = "trace, in_tracers, out_tracers, primitive, params, effects, source_info, ctx"
    of_binds = Purpose(
        "value tags: which equations one operation makes; rules by operation",
        "value tags cover one equation only; rules by operation miss derived operations",
    )
    of_held_bind = "self, trace, args, avals, params"
    of_held = Purpose("the same, for a `bind` taken before the first stage", of_binds.without)
    of_equations = Purpose("value tags: the equations of an operation", "value tags cover one equation only")
    of_recipes = Purpose("the same, for rules of `custom_jvp`", of_equations.without)
    return (
        Patch(Primitive, "bind", "self, *args", lambda original: in_bind(original, STAGES, OPS, names, Primitive), of_binds),
        Patch(Primitive, "bind_with_trace", of_held_bind, lambda original: in_some_bind(original, STAGES, Primitive), of_held),
        Patch(
            DynamicJaxprTrace, "make_eqn", of_trace, lambda original: recorded(original, STAGES, DynamicJaxprTrace), of_equations
        ),
        Patch(pe, "new_eqn_recipe", of_recipe, lambda original: recorded_recipe(original, STAGES), of_recipes),
    )
