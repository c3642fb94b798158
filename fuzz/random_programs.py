# SPDX-License-Identifier: Apache-2.0
"""Random JAX programs with tags, under random transformations.

    python fuzz/random_programs.py SECONDS [SEED]

Each tagged block is also a named scope. JAX writes scopes into names of locations by other means than tags travel, so the names
say what must be tagged: every operation with the scope in its name, or called from one, and no other. Besides: JAX's own tags
(with the stage off) are there, the numbers are the same bit for bit with the stage on and off, the module is the same when it is
made again, and passes that run again change nothing.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from jax import lax
from jaxlib.mlir import ir

import hlotag

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
Y = np.linspace(0.5, -0.3, 16, dtype=np.float32).reshape(4, 4)
FRONTEND = "mhlo.frontend_attributes"
# Made of the cotangents of several equations.
NOBODYS = {"add_any"}


@jax.custom_jvp
def _soft(x: Any) -> Any:
    return jnp.tanh(x) * 0.5


_soft.defjvp(lambda primals, tangents: (_soft(*primals), tangents[0] * jnp.cos(primals[0])))


@jax.custom_vjp
def _hard(x: Any) -> Any:
    return jnp.sin(x) * 2.0


_hard.defvjp(lambda x: (_hard(x), x), lambda x, g: (g * jnp.cos(x),))

UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "scale": lambda x: x * 0.7,
    "transpose": lambda x: x.T,
    "cumsum": lambda x: jnp.cumsum(x, 0) * 0.2,
    "softmax": jax.nn.softmax,
    "custom_jvp": _soft,
    "custom_vjp": _hard,
    "index": lambda x: x[::-1],
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": jnp.add,
    "multiply": jnp.multiply,
    "matmul": lambda x, y: x @ y * 0.3,
    "where": lambda x, y: jnp.where(x > 0, x, y),
}
NESTED: dict[str, Callable[[Callable, Any, Any], Any]] = {
    "jit": lambda f, x, y: jax.jit(f)(x, y),
    "checkpoint": lambda f, x, y: jax.checkpoint(f)(x, y),
    "scan": lambda f, x, y: lax.scan(lambda c, _: (f(c, y), None), x, None, length=2)[0],
    "cond": lambda f, x, y: lax.cond(x.sum() > 0, f, lambda x, y: x + y, x, y),
    "vmap": lambda f, x, y: jax.vmap(f)(jnp.stack([x, y]), jnp.stack([y, x])).sum(0),
}
TRANSFORMS: dict[str, Callable[[Callable], Callable]] = {
    "none": lambda f: f,
    "grad": lambda f: jax.grad(lambda x, y: f(x, y).sum(), (0, 1)),
    "vmap": lambda f: lambda x, y: jax.vmap(f)(jnp.stack([x, y]), jnp.stack([y, x])),
    "jvp": lambda f: lambda x, y: jax.jvp(f, (x, y), (y, x)),
    "grad of checkpoint": lambda f: jax.grad(lambda x, y: jax.checkpoint(f)(x, y).sum(), (0, 1)),
    "grad of vmap": lambda f: jax.grad(lambda x, y: jax.vmap(f)(x[None], y[None]).sum(), (0, 1)),
    "grad of grad": lambda f: jax.grad(lambda x, y: (jax.grad(lambda x: f(x, y).sum())(x) ** 2).sum(), (0, 1)),
}

# A program is a list of steps on the values so far, of which the last one is the result.
_operand = st.integers(0, 3)
_leaf = st.one_of(
    st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), _operand),
    st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), _operand, _operand),
)


def _inner(step: st.SearchStrategy) -> st.SearchStrategy:
    body = st.lists(step, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("tagged"), st.integers(0, 2), body),
        st.tuples(st.just("nested"), st.sampled_from(sorted(NESTED)), body, _operand, _operand),
    )


PROGRAMS = st.lists(st.recursive(_leaf, _inner, max_leaves=6), min_size=1, max_size=4)


def run_steps(steps: Any, values: list[Any]) -> Any:
    """Traces the steps of a program."""
    for kind, which, *rest in steps:
        pick = [values[-1 - at % len(values)] for at in rest if isinstance(at, int)]
        if kind == "unary":
            values = [*values, UNARY[which](*pick)]
        elif kind == "binary":
            values = [*values, BINARY[which](*pick)]
        elif kind == "tagged":
            with hlotag.tagged({f"k{which}": "v"}), jax.named_scope(f"SCOPE{which}"):
                values = [*values, run_steps(rest[0], values)]
        else:
            values = [*values, NESTED[which](lambda x, y, body=rest[0]: run_steps(body, [x, y]), *pick)]
    return values[-1]


def operations(module: Any, known: list[frozenset[str]] | None = None) -> list[tuple[str, str, frozenset[str], frozenset[str]]]:
    """What the program runs, in order, a function's operations once for each of its calls.

    Args:
        module: The lowered program.
        known: For each operation, tags it should have, whatever its name says: in some backward passes JAX writes none.

    Returns:
        For each its kind, its name's path, the tags it has and those of the scopes it is in.
    """
    functions = {f.operation.attributes["sym_name"].value: f.operation for f in module.body.operations}
    found = []

    def walk(op: Any, around: frozenset[str]) -> None:
        for child in (o.operation for region in op.regions for block in region.blocks for o in block.operations):
            location = str(child.location)
            name = re.match(r'loc\("([^"]*)"', location)
            path = name[1] if name else ""
            scopes = around | {f"k{digit}" for digit in re.findall(r"SCOPE(\d)", path)}
            if known is not None and len(found) < len(known):
                scopes |= known[len(found)]
            tags: set[str] = set()
            if FRONTEND in child.attributes:
                tags = {entry.name for entry in ir.DictAttr(child.attributes[FRONTEND]) if re.fullmatch(r"k\d", entry.name)}
            found.append((child.name, path, frozenset(tags), scopes))
            if child.name == "func.call":
                walk(functions[child.attributes["callee"].value], scopes)
            walk(child, scopes)

    walk(functions["main"], frozenset())
    return found


def check(steps: Any, transform: str) -> None:
    """Raises AssertionError if anything about the program is not as it should be."""

    def program(x: Any, y: Any) -> Any:
        return run_steps(steps, [x, y])

    def lower() -> Any:
        jax.clear_caches()
        return jax.jit(TRANSFORMS[transform](program)).lower(X, Y)

    try:
        off = lower()
    except TypeError:  # forward mode of a custom_vjp: no program of JAX's
        return
    with hlotag.stage():
        on, again = [lower() for _ in range(2)]  # from one line, which is in the locations
    text = on.as_text(debug_info=True)
    assert text == again.as_text(debug_info=True), "not deterministic"
    assert hlotag.run_passes(text) == hlotag.run_passes(hlotag.run_passes(text)), "not idempotent"
    before = operations(off.compiler_ir())
    after = operations(on.compiler_ir(), [op[2] for op in before])
    assert [op[0] for op in before] == [op[0] for op in after], "other operations"
    # What partial evaluation takes out of a loop keeps its context and loses its scope; its helpers share its name.
    of_name: dict[str, frozenset[str]] = {}
    for _, path, own, _ in before:
        of_name[path] = of_name.get(path, frozenset()) | own
    for (_, _, own, _), (name, path, tags, scopes) in zip(before, after, strict=True):
        if name in ("stablehlo.constant", "func.return", "stablehlo.return"):
            continue
        assert own <= tags, f"JAX's own {sorted(own - tags)} on {name} ({path}) is lost"
        stray = tags - scopes - of_name[path]
        assert not stray or "/" not in path, f"{name} ({path}) has {sorted(stray)}, and is in no such scope"
        missing = scopes - tags
        assert not missing or path.rsplit("/", 1)[-1] in NOBODYS, f"{name} ({path}) lacks {sorted(missing)}"
    for one, other in zip(jax.tree.leaves(off.compile()(X, Y)), jax.tree.leaves(on.compile()(X, Y)), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), "other numbers"


def main() -> None:
    """Tries programs until the time is over."""
    end = time.monotonic() + float(sys.argv[1])
    start = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000
    tried = wrong = 0
    while time.monotonic() < end:
        start += 1

        @seed(start)
        @settings(
            max_examples=50,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(PROGRAMS, st.sampled_from(sorted(TRANSFORMS)))
        def attempt(steps: Any, transform: str) -> None:
            nonlocal tried
            tried += 1
            if time.monotonic() < end:
                check(steps, transform)

        try:
            attempt()
        except Exception as error:
            wrong += 1
            print(f"seed {start}: {type(error).__name__}: {error}", *getattr(error, "__notes__", []), sep="\n", flush=True)
    print(f"{tried} inputs, 0 crashes, {wrong} wrong")


if __name__ == "__main__":
    main()
