# SPDX-License-Identifier: Apache-2.0
"""Records which operations the derivative of each primitive consists of, for `hlotag-propagate-autodiff`.

`python tools/derivatives.py` says what the JAX that runs it emits and cpp/lib/analysis/derivatives.inc does not have; with
`--write`, adds it. A row has a primitive, and the names that JAX gives to the operations of its derivatives:

- `<name`: each takes a value of the type of the primitive's result, as the cotangent is.
- `name>`: each makes a value of the type of an operand.
- `^name`: emitted only if an operand's type differs from the result's.
- `~name`: only batching emits it.

The table has the rows of all supported versions.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir import ir

TABLE = Path(__file__).parents[1] / "cpp" / "lib" / "analysis" / "derivatives.inc"
HEADER = "// Made by tools/derivatives.py from JAX: do not edit.\n// clang-format off\n"

SUM = "add_any"  # of cotangents; any primitive's derivative may add to another's
Row = dict[str, "Emitted"]  # by name of an operation
Sample = tuple[Callable[..., Any], tuple[Any, ...]]


# --- Samples ---------------------------------------------------------------------------------------------------------------


def array(*shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(sum(shape) + 1).uniform(0.2, 0.8, shape).astype(np.float32))


UNARY_NAMES = (
    "tanh logistic exp exp2 expm1 log log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh "
    "cosh asinh atanh erf erfc erf_inv lgamma digamma abs neg square is_finite conj bessel_i1e bessel_i0e sign floor"
)
BINARY = ["add", "sub", "mul", "div", "max", "min", "pow", "atan2", "rem", "igamma", "igammac"]
SHAPES = [
    ((3, 4), (3, 4)),
    ((3, 4), (1, 4)),
    ((1, 4), (3, 4)),
    ((3, 1), (3, 4)),
    ((3, 4), (3, 1)),
    ((), ()),
    ((3, 4), ()),
    ((), (3, 4)),
]
PRODUCTS = [  # contracted and batched dimensions, shapes
    (((1,), (0,)), ((), ()), (3, 4), (4, 5)),
    (((1,), (1,)), ((), ()), (3, 4), (5, 4)),
    (((0,), (0,)), ((), ()), (4, 3), (4, 5)),
    (((0,), (1,)), ((), ()), (4, 3), (5, 4)),
    (((2,), (1,)), ((0,), (0,)), (2, 3, 4), (2, 4, 5)),
    (((2,), (2,)), ((0,), (0,)), (2, 3, 4), (2, 5, 4)),
    (((1,), (1,)), ((0,), (0,)), (2, 4, 3), (2, 4, 5)),
    (((0,), (0,)), ((), ()), (4,), (4,)),
    (((1,), (0,)), ((), ()), (3, 4), (4,)),
    (((0,), (0,)), ((), ()), (4,), (4, 5)),
    (((0,), (1,)), ((), ()), (4,), (5, 4)),
    (((2,), (0,)), ((), ()), (2, 3, 4), (4, 5)),
    (((2,), (2,)), ((1,), (1,)), (2, 3, 4), (5, 3, 4)),
    (((0,), (2,)), ((1,), (1,)), (2, 3, 4), (4, 3, 2)),
    (((), ()), ((0,), (0,)), (4,), (4,)),
    (((), ()), ((), ()), (4,), (5,)),
    (((0, 1), (0, 1)), ((), ()), (3, 4), (3, 4)),
    (((2,), (1,)), ((1,), (2,)), (2, 3, 4), (5, 4, 3)),
    (((), ()), ((0, 1), (0, 1)), (3, 4), (3, 4)),
    (((1,), (0,)), ((), ()), (3, 4), (4, 5, 2)),
    (((0, 2), (1, 0)), ((), ()), (2, 3, 4), (4, 2, 5)),
    (((0,), (2,)), ((2,), (1,)), (2, 3, 4), (5, 4, 2)),
]
BROADCASTS = [  # result, dimensions, operand
    ((3, 4), (1,), (4,)),
    ((3, 4), (0,), (3,)),
    ((3, 4), (), ()),
    ((3, 4), (0, 1), (3, 1)),
    ((3, 4), (0, 1), (1, 4)),
    ((3, 1), (0,), (3,)),
    ((1, 4), (1,), (4,)),
    ((2, 3, 4), (1, 2), (3, 4)),
    ((1, 1), (), ()),
    ((3, 4), (0, 1), (1, 1)),
    ((3, 1, 4), (0, 2), (3, 4)),
]


def updates() -> Iterator[Sample]:
    yield lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 4)), (array(3, 4), np.int32(1))
    yield lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0)), (array(3, 4), array(2, 4), np.int32(1))


def samples() -> Iterator[Sample]:  # noqa: PLR0912
    """Functions of one equation, and what to call them with."""
    x, index = array(3, 4), jnp.array([[1], [0]])
    for name in UNARY_NAMES.split():
        if hasattr(lax, name):
            yield getattr(lax, name), (x,)
    yield lax.acosh, (x + 1,)
    for power in (2, 3, 4, -1, -2, 5):
        yield lambda x, power=power: lax.integer_pow(x, power), (x,)
    for name, (a, b) in itertools.product(BINARY, SHAPES):
        yield getattr(lax, name), (array(*a), array(*b))
    for shape in ((3, 4), ()):
        yield lax.select_n, (np.ones(shape, bool), x, x)
    yield lax.clamp, (array(), x, array())
    yield lax.clamp, (x, x, x)
    for contracted, batched, a, b in PRODUCTS:
        yield lambda x, y, dims=(contracted, batched): lax.dot_general(x, y, dims), (array(*a), array(*b))
    yield lambda x: lax.transpose(x, (1, 0)), (x,)
    yield lambda x: lax.reshape(x, (4, 3)), (x,)
    yield lambda x: lax.squeeze(x, (1,)), (array(3, 1),)
    yield lambda x: lax.expand_dims(x, (1,)), (array(3),)
    for shape, dims, operand in BROADCASTS:
        bind = jax.extend.core.primitives.broadcast_in_dim_p.bind
        params = {"shape": shape, "broadcast_dimensions": dims, "sharding": None}
        yield lambda x, bind=bind, params=params: bind(x, **params), (array(*operand),)
    for axes, name in itertools.product(((0,), (1,), (0, 1)), ("sum", "max", "min", "prod")):
        yield lambda x, axes=axes, name=name: getattr(lax, f"reduce_{name}")(x, axes), (x,)
    yield lambda x: lax.convert_element_type(x, jnp.bfloat16), (x,)
    yield lambda x: lax.convert_element_type(x, np.float32), (x.astype(jnp.bfloat16),)
    convert = jax.extend.core.primitives.convert_element_type_p.bind
    yield lambda x: convert(x, new_dtype=x.dtype, weak_type=True, sharding=None), (x,)
    yield lambda x: lax.reduce_precision(x, 8, 7), (x,)
    yield lambda x: lax.slice(x, (0, 1), (2, 3)), (x,)
    yield lambda x: lax.slice(x, (0, 0), (3, 4), (2, 2)), (x,)
    for number in (2, 3, 4):
        yield lambda *x: lax.concatenate(x, 0), (array(2, 4),) * number
        yield lambda x, number=number: lax.split(x, (1,) * number), (array(number, 2),)
    yield lambda x, v: lax.pad(x, v, ((1, 1, 0), (0, 0, 0))), (x, array())
    yield lambda x: lax.rev(x, (0,)), (x,)
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        yield getattr(lax, name), (x,)
    yield lax.sort, (x,)
    yield lambda x, y: lax.sort((x, y), num_keys=1), (x, x)
    yield lambda x: lax.top_k(x, 2), (x,)
    gathered = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    for mode in (None, "promise_in_bounds"):
        yield lambda x, i, mode=mode: lax.gather(x, i, gathered, (1, 4), mode=mode), (x, index)
    scattered = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    for name in ("scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter"):
        function = getattr(lax, name)
        yield lambda x, i, u, f=function: f(x, i, u, scattered, unique_indices=True), (x, index, array(2, 4))
    yield lambda x, i, u: lax.scatter(x, i, u, scattered), (x, index, array(2, 4))
    for strides, padding in [((1, 1), "SAME"), ((2, 2), "SAME"), ((1, 1), "VALID")]:
        convolution = lambda x, k, s=strides, p=padding: lax.conv_general_dilated(x, k, s, p)  # noqa: E731
        yield convolution, (array(2, 3, 8, 8), array(3, 3, 3, 3))
    for (reducer, start), (strides, padding) in itertools.product(
        [(lax.add, 0.0), (lax.max, -jnp.inf), (lax.min, jnp.inf)], [((2, 2), "VALID"), ((1, 1), "SAME")]
    ):
        yield lambda x, a=(start, reducer, (2, 2), strides, padding): lax.reduce_window(x, *a), (array(4, 8),)
    yield lax.optimization_barrier, (x,)
    yield lax.complex, (x, x)


# --- Recording -------------------------------------------------------------------------------------------------------------


def is_differentiable(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.inexact)


def primitive_of(function: Callable[..., Any], args: tuple[Any, ...]) -> str | None:
    """The primitive of the function's only equation; None if there are several."""
    jaxpr = jax.make_jaxpr(function)(*args)
    equations = getattr(jaxpr, "jaxpr", jaxpr).eqns
    return equations[0].primitive.name if len(equations) == 1 else None


def differentiated(function: Callable[..., Any], chosen: tuple[int, ...]) -> Callable[..., Any]:
    """The function's results, and its derivative by the chosen arguments."""

    def both(*args: Any) -> Any:
        def of_chosen(*values: Any) -> Any:
            replaced = dict(zip(chosen, values, strict=True))
            return function(*(replaced.get(i, x) for i, x in enumerate(args)))

        results, pullback = jax.vjp(of_chosen, *(args[i] for i in chosen))
        return results, pullback(jax.tree.map(_cotangent, results))

    return both


def _cotangent(result: Any) -> Any:
    return jnp.sin(result) if is_differentiable(result) else np.zeros(result.shape, jax.dtypes.float0)


def batched(function: Callable[..., Any], args: tuple[Any, ...], mapped: tuple[int, ...]) -> Callable[..., Any]:
    return jax.vmap(function, in_axes=tuple(0 if i in mapped else None for i in range(len(args))))


class Emitted(NamedTuple):
    """The operations of one name.

    Attributes:
      takes: unless batched, each takes a value of the type of the primitive's result, as the cotangent is.
      makes: unless batched, each makes a value of the type of an operand.
      broadcasts: unless batched, they are emitted only if an operand's type differs from the result's.
      only_batched: batching emits them.
    """

    takes: bool = False
    makes: bool = False
    broadcasts: bool = False
    only_batched: bool = False

    def __and__(self, other: Emitted) -> Emitted:
        if self.only_batched or other.only_batched:
            return self if other.only_batched else other
        return Emitted(*(mine and others for mine, others in zip(self, other, strict=True)))


def emitted(primitive: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Row:
    """What a derivative of `primitive` lowers to, residuals too."""
    try:
        module = jax.jit(function).lower(*args).compiler_ir()
    except (TypeError, ValueError, NotImplementedError):
        return {}  # these shapes, or this operand's derivative, are not supported
    found: list[tuple[str, Any]] = []
    operands, results = set(), set()

    def visit(op: Any) -> Any:
        name, transposed = "", False
        if match := re.match(r'loc\("([^"]*)"', str(op.location)):
            name, transposed = match.group(1).rpartition("/")[2], "transpose(" in match.group(1)
        is_part = op.parent is not None and op.parent.name == "stablehlo.reduce"
        if "jvp(" in str(op.location) and "(" not in name and op.name != "stablehlo.constant" and not is_part:
            if name == primitive and not transposed:
                operands.update(str(v.type) for v in op.operands)
                is_helper = op.name == "stablehlo.broadcast_in_dim" != f"stablehlo.{primitive}"
                if not results and not is_helper:
                    results.update(str(v.type) for v in op.results)
            elif name != SUM:
                found.append((name, op))
        return ir.WalkResult.ADVANCE

    row: Row = {}
    with module.context:
        module.operation.walk(visit)
        for name, op in found:
            types = Emitted(
                any(str(v.type) in results for v in op.operands),
                any(str(v.type) in operands for v in op.results),
                bool(operands - results),
            )
            row[name] = row.get(name, types) & types
    return row


def derivatives() -> Iterator[tuple[str, Row]]:
    for function, args in itertools.chain(samples(), updates()):
        if (primitive := primitive_of(function, args)) is None:
            continue
        differentiable = [i for i, x in enumerate(args) if is_differentiable(x)]
        for size in range(1, len(differentiable) + 1):
            for chosen in itertools.combinations(differentiable, size):
                both = differentiated(function, chosen)
                yield primitive, emitted(primitive, both, args)
                stacked = tuple(jnp.stack([x, x]) if i in chosen else x for i, x in enumerate(args))
                for batch in (
                    batched(both, args, chosen),
                    differentiated(batched(function, args, chosen), chosen),
                ):
                    yield primitive, dict.fromkeys(emitted(primitive, batch, stacked), Emitted(only_batched=True))


# --- The table -------------------------------------------------------------------------------------------------------------


def read() -> dict[str, Row]:
    if not TABLE.exists():
        return {}
    rows = re.findall(r'\{"([^"]+)",((?:\s*"[^"]*")+)\}', TABLE.read_text())
    return {name: dict(map(_parse, " ".join(re.findall(r'"([^"]*)"', texts)).split())) for name, texts in rows}


def write(table: dict[str, Row]) -> None:
    lines = [HEADER + "constexpr DerivativeText kDerivatives[] = {"]
    for primitive, row in sorted(table.items()):
        names = " ".join(_text(name, row[name]) for name in sorted(row))
        parts = textwrap.wrap(names, 88, break_long_words=False, break_on_hyphens=False) or [""]
        joined = "".join(f'\n        "{part} "' for part in parts[:-1]) + f'\n        "{parts[-1]}"'
        lines.append(f'    {{"{primitive}",{joined}}},')
    TABLE.write_text("\n".join(lines) + "\n};\n// clang-format on\n")


def _parse(text: str) -> tuple[str, Emitted]:
    return text.strip("~^<>"), Emitted("<" in text, ">" in text, "^" in text, "~" in text)


def _text(name: str, types: Emitted) -> str:
    return "~" * types.only_batched + "^" * types.broadcasts + "<" * types.takes + name + ">" * types.makes


def update(table: dict[str, Row]) -> list[str]:
    """Adds what this JAX emits. Returns what was not there."""
    found = []
    for primitive, emissions in derivatives():
        row = table.setdefault(primitive, {})
        for name, types in sorted(emissions.items()):
            known = row.get(name, types) & types
            if row.get(name) != known:
                row[name] = known
                found.append(f"{primitive}: {_text(name, known)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="add it to the table")
    table = read()
    print("\n".join(update(table)) or "nothing new")
    if parser.parse_args().write:
        write(table)


if __name__ == "__main__":
    main()
