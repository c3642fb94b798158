# SPDX-License-Identifier: Apache-2.0
"""How well `hlotag-propagate-autodiff` finds what autodiff derived from what, measured against the truth.

Every equation of a program's jaxpr, nested ones included, gets an equation context with an id of its own. JAX carries contexts
through its transformations, so in the lowered module each operation's id says which primal equation it stems from. Then the ids
are removed from all but the first forward operation of each equation, those left are replaced by the equation's primitive, as a
rule by kind would tag it, the pass is run, and what it puts back is compared.

`python tests/ground_truth.py [program ...]` prints the shares.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec
from jaxlib.mlir import ir

import hlotag
from hlotag import _compat
from hlotag.hlo.origins import walk

KEY = "_id"
FRONTEND = "mhlo.frontend_attributes"
NEVER_TAGGED = {"func.return", "stablehlo.return", "sdy.return", "func.func", "builtin.module", "stablehlo.constant"}
PRODUCTS = {"stablehlo.dot_general", "stablehlo.convolution"}
HEAVY = PRODUCTS | {f"stablehlo.{name}" for name in ("gather", "scatter", "reduce", "sort", "custom_call")}
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


def entries_of(op: ir.Operation) -> dict[str, str]:
    if FRONTEND not in op.attributes:
        return {}
    return {entry.name: ir.StringAttr(entry.attr).value for entry in ir.DictAttr(op.attributes[FRONTEND])}


def set_entries(op: ir.Operation, entries: dict[str, str]) -> None:
    op.attributes[FRONTEND] = ir.DictAttr.get({key: ir.StringAttr.get(value) for key, value in entries.items()})
    if not entries:
        del op.attributes[FRONTEND]


def id_of(op: ir.Operation) -> str | None:
    return entries_of(op).get(KEY)


def remove_id(op: ir.Operation) -> None:
    set_entries(op, {key: value for key, value in entries_of(op).items() if key != KEY})


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
    heavy_total: int = 0  # of those of `HEAVY`
    heavy_right: int = 0
    products_missed: int = 0  # products without the right tag
    # Of the wrong ones and those without: operation, location, true id, id.
    errors: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.right / max(self.total, 1)

    @property
    def heavy_recall(self) -> float:
        return self.heavy_right / max(self.heavy_total, 1)


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
            remove_id(op)
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
            is_right, heavy = got == true, op.name in HEAVY
            result.total += 1
            result.heavy_total += heavy
            result.right += is_right
            result.heavy_right += heavy and is_right
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


def mlp(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return (x**2).mean()


def mlp_params(n: int):
    return [(array(8, 8, seed=i), array(8, seed=i)) for i in range(n)]


def norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-6) * scale


def attention(p, x):
    t, d = x.shape
    q, k, v = ((x @ p[n]).reshape(t, 2, d // 2) for n in "qkv")
    scores = jnp.einsum("qhd,khd->hqk", q, k) / np.sqrt(d // 2)
    scores = jnp.where(np.tri(t, dtype=bool), scores, -1e9)
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(t, d) @ p["o"]


def block(p, x):
    x = x + attention(p, norm(x, p["s1"]))
    return x + jax.nn.gelu(norm(x, p["s2"]) @ p["up"]) @ p["down"]


def block_params(n: int):
    shapes = {"q": (8, 8), "k": (8, 8), "v": (8, 8), "o": (8, 8), "up": (8, 16), "down": (16, 8), "s1": (8,), "s2": (8,)}
    return [{k: array(*s, seed=i) for k, s in shapes.items()} for i in range(n)]


def loss_of(logits, tokens):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, None], axis=1).mean()


TOKENS = np.array([1, 0, 3, 2, 5, 4])
EMBEDDING = array(6, 8, seed=99)


def transformer(n: int, scope: str = "one", remat: bool = False, transform=jax.grad) -> Program:
    layer = jax.checkpoint(block) if remat else block

    def loss(params, embedding):
        x = embedding[TOKENS]
        for i, p in enumerate(params):
            if scope == "none":
                x = layer(p, x)
                continue
            with jax.named_scope(f"layer_{i}" if scope == "each" else "layer"):
                x = layer(p, x)
        return loss_of(x @ embedding.T, TOKENS)

    return Program(loss, (block_params(n), EMBEDDING), transform)


def _decode(layer, params, x):
    return lax.scan(lambda x, p: (layer(p, x), None), x, params)[0]


def scan_transformer(n: int, remat: bool = False, in_functions: bool = False) -> Program:
    layer = jax.checkpoint(block) if remat else block

    def model(params, embedding):
        return _decode(layer, params, embedding[TOKENS])

    def loss(params, embedding):
        if in_functions:  # JAX repeats all frames inside the traced function in what a loop is written out as.
            x = model(params, embedding)
        else:
            x, _ = lax.scan(lambda x, p: (layer(p, x), None), embedding[TOKENS], params)
        return loss_of(x @ embedding.T, TOKENS)

    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *block_params(n))
    return Program(loss, (stacked, EMBEDDING))


def conv_net(params, x):
    for w in params[0]:
        x = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME"))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return jax.nn.log_softmax(x.reshape(2, -1) @ params[1])[:, 0].sum()


def rnn(params, xs):
    def step(h, x):
        h = jnp.tanh(x @ params[0] + h @ params[1])
        return h, jax.nn.sigmoid(h)

    _, hidden = lax.scan(step, jnp.zeros(8), xs)
    return (hidden**2).sum()


@jax.jit
def _dense(x, w):
    return jax.nn.gelu(x @ w)


def inner_jit(params, x):
    for i, (w, _) in enumerate(params):
        with jax.named_scope(f"dense_{i}"):
            x = _dense(x, w)
    return (x**2).sum()


def branches(w, x):
    y = lax.cond(x.sum() > 0, lambda x: jnp.sin(x @ w), lambda x: jnp.cos(x) @ w @ w, x)
    return lax.switch(1, [jnp.tanh, lambda y: (y * 2.0) @ w], y).sum()


def sharded(params, x):
    def body(w1, w2, x):
        h = jax.nn.gelu(x @ w1)
        return lax.psum((jnp.tanh(h @ w2) ** 2).sum(), "data")

    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    specs = (PartitionSpec(), PartitionSpec(), PartitionSpec("data"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=PartitionSpec())(*params, x)  # pyright: ignore[reportCallIssue]


def vmap_grad(function):
    return jax.vmap(jax.grad(function), in_axes=(None, 0))


def grad_vmap(function):
    return jax.grad(lambda p, x: jax.vmap(function, in_axes=(None, 0))(p, x).sum())


X = array(4, 8)
PROGRAMS: dict[str, Program] = {
    "mlp 2": Program(mlp, (mlp_params(2), X)),
    "mlp 4, value_and_grad": Program(mlp, (mlp_params(4), X), jax.value_and_grad),
    "mlp 12": Program(mlp, (mlp_params(12), X)),
    "mlp 4, vmap(grad)": Program(mlp, (mlp_params(4), np.stack([X, X])), vmap_grad, (mlp_params(4), X)),
    "mlp 4, grad(vmap)": Program(mlp, (mlp_params(4), np.stack([X, X])), grad_vmap, (mlp_params(4), X)),
    "mlp 2, hessian": Program(mlp, (mlp_params(2), X), jax.hessian),
    "transformer 1": transformer(1),
    "transformer 2": transformer(2),
    "transformer 12": transformer(12),
    "transformer 12, no scope": transformer(12, scope="none"),
    "transformer 40, no scope": transformer(40, scope="none"),  # aligned in parts
    "transformer 12, scope each": transformer(12, scope="each"),
    "transformer 2, value_and_grad": transformer(2, transform=jax.value_and_grad),
    "transformer 12, remat": transformer(12, remat=True),
    "transformer 12, remat, scope each": transformer(12, scope="each", remat=True),
    "transformer, scan": scan_transformer(4),
    "transformer, scan of remat": scan_transformer(4, remat=True),
    "transformer, scan in functions": scan_transformer(4, in_functions=True),
    "transformer, scan of remat in functions": scan_transformer(4, remat=True, in_functions=True),
    "conv net": Program(conv_net, (([array(3, 3, 3, 3), array(3, 3, 3, 3)], array(48, 5)), array(2, 3, 8, 8))),
    "rnn": Program(rnn, ((array(8, 8), array(8, 8)), array(5, 8))),
    "inner jit": Program(inner_jit, (mlp_params(3), X)),
    "branches": Program(branches, (array(8, 8), X)),
    "shard_map": Program(sharded, ((array(8, 8), array(8, 8)), X)),
}
DEVICES_NEEDED = {"shard_map": 4}


def main(names: list[str], programs: dict[str, Program] = PROGRAMS) -> None:
    for name, program in programs.items():
        if not names or any(part in name for part in names):
            for by in ("kind", "line"):
                found = measure(program, by)
                print(
                    f"{name:44}{by:6}{found.total:7}{found.recall:8.1%} right{found.heavy_recall:8.1%} of the heavy"
                    f"{found.products_missed:7} products missed{found.wrong:7} wrong"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
