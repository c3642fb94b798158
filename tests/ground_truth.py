# SPDX-License-Identifier: Apache-2.0
"""How well `hlotag-propagate-autodiff` finds what autodiff derived from what, measured against the truth.

Every equation of a program's jaxpr, nested ones included, gets an equation context with an id of its own. JAX carries contexts
through its transformations, so in the lowered module each operation's id says which primal equation it stems from. Then the ids
are removed from all but the first forward operation of each equation, those left are replaced by the equation's primitive, as a
rule by kind would tag it, the pass is run, and what it puts back is compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.extend
import numpy as np
from jaxlib.mlir import ir

import hlotag
from hlotag import _compat
from hlotag.hlo.origins import walk
from modules import entries_of

KEY = "_id"
FRONTEND = "mhlo.frontend_attributes"
NEVER_TAGGED = {"func.return", "stablehlo.return", "sdy.return", "func.func", "builtin.module", "stablehlo.constant"}
PRODUCTS = {"stablehlo.dot_general", "stablehlo.convolution"}
WITH_BODY = {"stablehlo.while", "stablehlo.case", "sdy.manual_computation"}


# --- The truth -------------------------------------------------------------------------------------------------------------


def is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") and hasattr(value, "replace")


def with_equations(jaxpr: Any, rewrite: Callable[[Any], list[Any]]) -> Any:
    """`jaxpr`, open or closed, with the equations that `rewrite(open jaxpr)` gives."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)  # In 0.12 jaxprs have their own constants, and are their own `jaxpr`.
    return jaxpr.replace(eqns=rewrite(jaxpr)) if inner is jaxpr else jaxpr.replace(jaxpr=with_equations(inner, rewrite))


def with_ids(closed: Any) -> Any:
    """`closed` with a distinct id in the context of every equation.

    A jaxpr that several inner jits share stays shared, since it may become one function of the module; all others are inlined.
    """
    numbers = itertools.count()
    done: dict[int, Any] = {}

    def rewrite_param(value: Any, is_shared: bool) -> Any:
        if isinstance(value, (tuple, list)) and any(is_jaxpr(v) for v in value):
            return type(value)(rewrite_param(v, is_shared) for v in value)
        if not is_jaxpr(value):
            return value
        if not is_shared:
            return with_equations(value, rewrite)
        if id(value) not in done:
            done[id(value)] = (value, with_equations(value, rewrite))
        return done[id(value)][1]

    def rewrite(jaxpr: Any) -> list[Any]:
        return [
            eqn.replace(
                params={k: rewrite_param(v, eqn.primitive.name == "jit") for k, v in eqn.params.items()},
                ctx=_compat.tracing.with_metadata(eqn.ctx, {KEY: f"{next(numbers)}:{eqn.primitive.name}"}),
            )
            for eqn in jaxpr.eqns
        ]

    return with_equations(closed, rewrite)


def lower(program: Program) -> Any:
    """The module of the program's transformation, each operation with the id of its primal equation."""
    primal = with_ids(jax.make_jaxpr(program.function)(*(program.primal_args or program.args)))
    function = jax.extend.core.jaxpr_as_fun(primal)

    def first(*args: Any) -> Any:
        return function(*jax.tree.leaves(args))[0]

    first.__name__ = "program"
    return jax.jit(program.transform(first)).lower(*program.args).compiler_ir()


# --- Modules ---------------------------------------------------------------------------------------------------------------


def all_ops(module: ir.Module) -> list[ir.Operation]:
    """Every operation that can carry tags, in the order of the text."""
    return [op for op in walk(module.operation) if op.name not in NEVER_TAGGED]


def set_entries(op: ir.Operation, entries: dict[str, str]) -> None:
    op.attributes[FRONTEND] = ir.DictAttr.get({key: ir.StringAttr.get(value) for key, value in entries.items()})
    if not entries:
        del op.attributes[FRONTEND]


def id_of(op: ir.Operation) -> str | None:
    return entries_of(op).get(KEY)


def parents(op: ir.Operation) -> Iterator[ir.Operation]:
    """The operations around one, up to the function; those of a mesh are none."""
    while op.name != "func.func" and op.parent is not None:
        op = op.parent.operation
        yield op


def function_of(op: ir.Operation) -> str:
    (*_, outermost) = (op, *parents(op))
    return ir.StringAttr(outermost.attributes["sym_name"]).value if outermost.name == "func.func" else ""


def backward_ops(module: ir.Module) -> set[int]:
    """Positions in `all_ops` of what runs for a backward pass only: named so, or in a function called only from such places."""
    ops = all_ops(module)
    around = [[op, *(parent for parent in parents(op) if parent.name != "func.func")] for op in ops]
    backward = {i for i, nested in enumerate(around) if any("transpose(" in str(op.location) for op in nested)}
    callers: dict[str, list[int]] = {}
    for i, op in enumerate(ops):
        if op.name == "func.call":
            callers.setdefault(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, []).append(i)
    home = [function_of(op) for op in ops]
    while True:
        functions = {f for f, calls in callers.items() if all(i in backward for i in calls)}
        grown = backward | {i for i, f in enumerate(home) if f in functions}
        if grown == backward:
            return backward
        backward = grown


# --- Measuring -------------------------------------------------------------------------------------------------------------


@dataclass
class Fidelity:
    """Backward operations with a known origin: how many got the right kind, a wrong one, none."""

    total: int = 0
    right: int = 0
    wrong: int = 0
    products_missed: int = 0  # products without the right tag
    # Of the wrong ones and those without: operation, location, true id, id.
    errors: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.right / max(self.total, 1)


def hide(module: ir.Module, runs_repeatedly: bool = False) -> list[str | None]:
    """Removes the ids from all operations but the one that stands for its equation in the forward pass; returns the truth.

    That is the first one named after the equation's primitive, as a rule by kind would select it. Where equations run repeatedly,
    in what JAX unrolled, there is one for each run, and all forward operations keep their ids; also for a rule by line.
    """
    ops = all_ops(module)
    truth = [id_of(op) for op in ops]
    backward = backward_ops(module)
    kept: dict[tuple[str, str], int] = {}
    for i, op in enumerate(ops):
        if (true := truth[i]) is not None and i not in backward:
            place = (function_of(op), f"{i} {true}" if runs_repeatedly else true)
            if place not in kept or (_is_main(op, true) and not _is_main(ops[kept[place]], true)):
                kept[place] = i
    survivors = set(kept.values())
    for i, op in enumerate(ops):
        if truth[i] is not None and i not in survivors:
            set_entries(op, {key: value for key, value in entries_of(op).items() if key != KEY})
    return truth


def _is_main(op: ir.Operation, identifier: str) -> bool:
    if op.name in WITH_BODY:
        return True
    return f'{identifier.partition(":")[2]}"' in str(op.location).partition("(")[2].partition("(callsite")[0]


def tags_by(module: ir.Module, by: str, truth: list[str | None]) -> dict[str, str]:
    """The tag of each id, as rules would give it: "kind" is by primitive, "line" by the line of its first operation."""
    tags: dict[str, str] = {}
    for op, number in zip(all_ops(module), truth, strict=True):
        if number is not None:
            line = str(op.location).partition('.py":')[2].partition(":")[0]
            tags.setdefault(number, line if by == "line" else number.partition(":")[2])
    return tags


def measure(program: Program, by: str = "kind") -> Fidelity:
    module = lower(program)
    with module.context:
        backward = backward_ops(module)
        truth = hide(module, program.runs_repeatedly or by == "line")
        tags = tags_by(module, by, truth)
        for op in all_ops(module):
            if (number := id_of(op)) is not None:
                set_entries(op, entries_of(op) | {KEY: tags[number]})
        truth = [number and tags[number] for number in truth]
        tagged = {id_of(op) for op in all_ops(module)}
        hlotag.run_passes(module, "hlotag-propagate-autodiff")
        result = Fidelity()
        for i, op in enumerate(all_ops(module)):
            true, got = truth[i], id_of(op)
            if i not in backward or true is None:  # JAX leaves helpers without context: what they got may be right.
                continue
            if true not in tagged:  # The forward operation of the equation is dead code: no tag can be right.
                result.wrong += got is not None
                continue
            is_right = got == true
            result.total += 1
            result.right += is_right
            result.products_missed += op.name in PRODUCTS and not is_right
            result.wrong += got is not None and not is_right
            if not is_right:
                result.errors.append((op.name, str(op.location)[:90], true, got))
        return result


# --- Programs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    transform: Callable[[Callable[..., Any]], Callable[..., Any]] = jax.grad
    primal_args: tuple[Any, ...] | None = None  # those of the function itself, where the transformation batches it
    runs_repeatedly: bool = False  # equations, in one function: a loop is unrolled


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.3
