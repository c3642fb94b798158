# SPDX-License-Identifier: Apache-2.0
"""Reads equations of jaxprs, and makes copies with other contexts, names and inner jaxprs.

`jax.extend.core` has the classes but not `JaxprEqn.ctx`, and no way to name an equation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jax._src import core, source_info_util
from jax._src.core import Var
from jax._src.source_info_util import NameStack, Scope, SourceInfo, Transform

from hlotag._compat.tracing import VALUE_TAG, is_user_filename, open_jaxpr, without_wrapper

_JAXPRS = tuple({core.Jaxpr, getattr(core, "ClosedJaxpr", core.Jaxpr)})  # One class in 0.12.


class Marker:
    """An element of a name stack without a text. JAX carries it through its transformations."""

    __slots__ = ()
    name = ""  # All elements of JAX's have one.

    def wrap(self, names: list[str]) -> None:
        """Adds nothing to the text of the stack."""


class Primal(Marker):
    """The operation of the program that equations were made for, an element of their name stacks.

    Attributes:
        primitive: The operation's primitive.
        params: Its parameters.
        avals: The types of its operands; None for functions and other operands that have none.
    """

    __slots__ = ("avals", "params", "primitive")

    def __init__(self, primitive: Any, avals: tuple[Any, ...], params: Mapping[str, Any]) -> None:
        self.primitive, self.avals, self.params = primitive, avals, params

    @property
    def key(self) -> Any:
        """What equal operations have in common; None if a parameter has no hash."""
        key = without_wrapper(self.primitive), tuple(self.params.items()), self.avals
        try:
            hash(key)
        except TypeError:
            return None
        return key


@dataclass(slots=True, unsafe_hash=True)
class Mark:
    """An element of a name stack that prefixes the next one, so that removing the mark leaves JAX's own name."""

    text: str
    name = ""

    def wrap(self, names: list[str]) -> None:
        if names:
            names[-1] = self.text + names[-1]
        else:
            names.append(self.text)


def equations_of(jaxpr: Any) -> Sequence[Any]:
    """The equations of a jaxpr, closed or not."""
    return open_jaxpr(jaxpr).eqns


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """The jaxprs in the parameters of an equation, which `with_inner` replaces."""
    for value in equation.params.values():
        if isinstance(value, _JAXPRS):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from (each for each in value if isinstance(each, _JAXPRS))


def with_inner(equation: Any, replace: Callable[[Any], Any]) -> dict[str, Any]:
    """The parameters of an equation, with `replace(jaxpr)` for each of its jaxprs."""

    def replaced(value: Any) -> Any:
        if isinstance(value, _JAXPRS):
            return replace(value)
        if not isinstance(value, (tuple, list)) or not any(isinstance(each, _JAXPRS) for each in value):
            return value
        elements = [replace(each) if isinstance(each, _JAXPRS) else each for each in value]
        return type(value)(*elements) if hasattr(value, "_fields") else type(value)(elements)

    return {name: replaced(value) for name, value in equation.params.items()}


# Whose are the equations within one of a primitive, by its name, because each JAX version has its own primitives? "program": they
# are operations of the program. "operation": they are parts of one, such as the sum of a reduction. "kernel": they are code of
# another language, which the lowering rule compiles.
WITH_EQUATIONS: Mapping[str, str] = {
    **dict.fromkeys(["call", "call_exported", "checkpoint", "closed_call", "composite", "compute_on", "cond"], "program"),
    **dict.fromkeys(["core_call", "cudnn_fusion", "custom_fusion", "custom_jvp_call", "custom_lin"], "program"),
    **dict.fromkeys(["custom_linear_solve", "custom_partitioning", "custom_vjp_call", "custom_vmap_call"], "program"),
    **dict.fromkeys(["eval_jaxpr", "fusible", "jit", "linear_call", "pjit", "program_order", "remat", "remat2"], "program"),
    **dict.fromkeys(["remat_opt", "run_state", "scan", "shard_map", "while", "xla_metadata_call"], "program"),
    **dict.fromkeys(["xla_metadata_value"], "program"),  # It hands its operand on.
    **dict.fromkeys(["dot_product_attention_bwd", "dot_product_attention_fwd", "reduce", "reduce_window"], "operation"),
    **dict.fromkeys(["scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul", "scatter-sub"], "operation"),
    **dict.fromkeys(["select_and_scatter"], "operation"),
    **dict.fromkeys(["core_map", "mpmd_map", "pallas_call", "run_scoped"], "kernel"),
}


@functools.lru_cache(maxsize=4096)
def is_open(primitive: Any) -> bool:
    """Whether equations within an equation of this primitive are not parts of one operation."""
    return WITH_EQUATIONS.get(without_wrapper(primitive).name) in ("program", "kernel")


def has_kernel(equation: Any) -> bool:
    """Whether the equations within this one are not the program's."""
    return WITH_EQUATIONS.get(equation.primitive.name) == "kernel"


def function_of(equation: Any) -> str | None:
    """The name of the jitted function that an equation calls; None if it calls none."""
    return equation.params.get("name") if equation.primitive.name in ("jit", "pjit") else None


def name_of(jaxpr: Any) -> str:
    """The name of the function that a jaxpr was traced from."""
    return jaxpr.debug_info.func_name


def elements_of(equation: Any) -> tuple[Any, ...]:
    """The elements of an equation's name stack: scopes, transformations and markers, outermost first."""
    return equation.source_info.name_stack.stack


def scope_of(element: Any) -> str | None:
    """The name of a scope; None if the element is none."""
    return element.name if element.__class__ is Scope else None


def is_transpose(element: Any) -> bool:
    """Whether an element says that the equation is in a backward pass."""
    return element.__class__ is Transform and element.name == "transpose"


def replace(equation: Any, context: Any, elements: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """A copy of an equation with another context, other elements of its name stack and other parameters."""
    source = SourceInfo(equation.source_info.traceback, NameStack(tuple(elements)))
    return equation.replace(ctx=context, source_info=source, params=dict(params))


def is_value_tag(equation: Any) -> bool:
    """Whether an equation is one of JAX's value tag."""
    return equation.primitive is VALUE_TAG


_is_users = functools.lru_cache(maxsize=4096)(is_user_filename)


def frames_of(equation: Any) -> Iterator[tuple[str, int, int]]:
    """The file, line and column of each frame of user code behind an equation, innermost first.

    JAX's traceback of an equation begins where the function that has the equation began to be traced.
    """
    traceback = equation.source_info.traceback
    codes, instructions = traceback.raw_frames() if traceback is not None else ((), ())
    for code, instruction in zip(codes, instructions, strict=True):
        if _is_users(code.co_filename):
            yield _line_of(code, instruction)


@functools.lru_cache(maxsize=65536)
def _line_of(code: Any, instruction: int) -> tuple[str, int, int]:
    frame = source_info_util.raw_frame_to_frame(code, instruction)
    return frame.file_name, frame.start_line, frame.start_column


def lower_equations(primals: Sequence[Primal], lower: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Lowers equations to a module, equation number `n` in the scope `hlotag<n>`.

    `options` are those of `lower`, JAX's `mlir.lower_jaxpr_to_module`, for another program on the same platforms.
    """
    equations, arguments = [], []
    for number, primal in enumerate(primals):
        operands = [Var(_without_mesh(aval)) for aval in primal.avals]
        outs, effects = primal.primitive.abstract_eval(*(operand.aval for operand in operands), **primal.params)
        results = [Var(aval) for aval in (outs if primal.primitive.multiple_results else [outs])]
        source = SourceInfo(None, source_info_util.new_name_stack(f"hlotag{number}"))
        equations.append(core.new_jaxpr_eqn(operands, results, primal.primitive, dict(primal.params), effects, source))
        arguments += operands
    debug_info = core.DebugInfo("hlotag", "equations", ("",) * len(arguments), ())
    jaxpr: Any = core.Jaxpr((), arguments, [], equations, debug_info=debug_info)
    if not hasattr(jaxpr, "consts"):  # 0.10.2
        jaxpr = core.ClosedJaxpr(jaxpr, ())  # pyright: ignore[reportAttributeAccessIssue]
    avals = [variable.aval for variable in arguments]
    own = {name: options[name] for name in ("platforms", "backend", "axis_context", "lowering_parameters")}
    own |= {"num_const_args": 0, "in_avals": avals, "ordered_effects": [], "donated_args": [False] * len(avals)}
    return lower("equations", jaxpr, **own, **({"out_avals": []} if "out_avals" in options else {})).module


def _without_mesh(aval: Any) -> Any:
    """The type of an operand outside of a `shard_map`."""
    return core.ShapedArray(aval.shape, aval.dtype, aval.weak_type) if type(aval) is core.ShapedArray else aval


def primal_of_equation(equation: Any) -> Primal:
    """An equation as the operation that it was made for."""
    return Primal(equation.primitive, tuple(atom.aval for atom in equation.invars), equation.params)
