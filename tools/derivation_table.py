# SPDX-License-Identifier: Apache-2.0
"""Records what differentiating and transposing each primitive emits, for `hlotag-propagate-autodiff`.

`python tools/derivation_table.py` says what the JAX that runs it emits and cpp/lib/derivation/table.inc does not have; with
`--write`, adds it. The table has the rows of all supported versions: a program has nodes of one version only.

A row is a list of nodes, `mul(T,O1)>0`: a product of the cotangent (T) with operand 1 is the cotangent of operand 0. Inputs are
also the result (R), constants (C) and other nodes, by number. `(T)>0` hands the cotangent on as it is.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax import lax

TABLE = Path(__file__).parents[1] / "cpp" / "lib" / "derivation" / "table.inc"
MOST_NODES = 24  # of a form of a derivative; longer ones are written-out algorithms
MOST_NAMES = 12  # of an expansion
HEADER = "// Made by tools/derivation_table.py from JAX: do not edit.\n// clang-format off\n"

Sample = tuple[Callable[..., Any], tuple[Any, ...]]
Form = list[tuple[str, tuple[str, ...], list[int]]]  # primitive, inputs, operands whose cotangent it is
Expansion = tuple[str, int, tuple[str, ...]]  # primitive, number of operands, names


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


def _open(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def _cotangents(results: Any) -> Any:
    def of(x: Any) -> Any:
        return jnp.ones(x.shape, x.dtype) if jnp.issubdtype(x.dtype, jnp.inexact) else np.zeros(x.shape, jax.dtypes.float0)

    return jax.tree.map(of, results)


def pulled_back(function: Callable[..., Any], args: tuple[Any, ...], chosen: tuple[int, ...]) -> Any:
    """The jaxpr of the function's results, and its derivative by the chosen arguments; of arguments and cotangents."""

    def both(args: Any, cotangents: Any) -> Any:
        def of_chosen(*values: Any) -> Any:
            replaced = dict(zip(chosen, values, strict=True))
            return function(*(replaced.get(i, x) for i, x in enumerate(args)))

        results, pullback = jax.vjp(of_chosen, *(args[i] for i in chosen))
        return results, pullback(cotangents)

    return jax.make_jaxpr(both)(args, _cotangents(jax.eval_shape(function, *args)))


def form(function: Callable[..., Any], args: tuple[Any, ...], chosen: tuple[int, ...]) -> tuple[str, Form] | None:
    """The primitive of the function's only equation, and what its derivative emits; None if there are several."""
    plain = _open(jax.make_jaxpr(function)(*args))
    if len(plain.eqns) != 1:
        return None
    primitive, operands = plain.eqns[0].primitive.name, plain.eqns[0].invars
    number_of = {plain.invars.index(v): n for n, v in enumerate(operands) if not is_literal(v) and v in plain.invars}
    whole = _open(pulled_back(function, args, chosen))
    names = {v: f"O{number_of[i]}" if i < len(args) else "T" for i, v in enumerate(whole.invars)}
    nodes: Form = []
    is_made = False
    for equation in whole.eqns:
        inputs = tuple("C" if is_literal(v) else names.get(v, "C") for v in equation.invars)
        if equation.primitive.name == primitive and not is_made and all(i[0] in "OC" for i in inputs) and not nodes:
            is_made = True
            names |= dict.fromkeys(equation.outvars, "R")
            continue
        names |= dict.fromkeys(equation.outvars, str(len(nodes)))
        nodes.append((equation.primitive.name, inputs, []))
    results = len(jax.tree.leaves(jax.eval_shape(function, *args)))
    for i, v in zip(chosen, whole.outvars[results:], strict=True):
        name = "C" if is_literal(v) else names.get(v, "C")
        if name == "T":
            nodes.append(("", ("T",), [number_of[i]]))
        elif name.isdigit():
            nodes[int(name)][2].append(number_of[i])
    return primitive, nodes


def is_literal(v: Any) -> bool:
    return isinstance(v, jax.extend.core.Literal)


def forms() -> Iterator[tuple[str, Form]]:
    for function, args in samples():
        differentiable = [i for i, x in enumerate(args) if is_differentiable(x)]
        for size in range(1, len(differentiable) + 1):
            for chosen in itertools.combinations(differentiable, size):
                try:
                    found = form(function, args, chosen)
                except (TypeError, ValueError, NotImplementedError):
                    continue  # these shapes, or this operand's derivative, are not supported
                if found and found[1] and len(found[1]) <= MOST_NODES:
                    yield found


def expansions() -> Iterator[Expansion]:
    """Primitives that lower to operations with other names: `logistic`."""
    seen: set[Any] = set()

    def names_of(equation: Any) -> tuple[str, ...]:
        avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
        lowered = jax.jit(lambda *x: equation.primitive.bind(*x, **equation.params)).lower(*avals)
        found = []
        for function in lowered.compiler_ir().body.operations:
            for op in function.regions[0].blocks[0].operations:
                if op.operation.name not in ("stablehlo.constant", "func.return"):
                    name = re.match(r'loc\("([^"]*)"', str(op.operation.location))
                    found.append(name.group(1).rpartition("/")[2] if name else "")
        return tuple(found)

    for function, args in samples():
        chosen = tuple(i for i, x in enumerate(args) if is_differentiable(x))
        try:
            equations = _open(pulled_back(function, args, chosen)).eqns
        except (TypeError, ValueError, NotImplementedError):
            continue
        for equation in equations:
            key = (equation.primitive.name, str(equation.params), tuple(len(v.aval.shape) for v in equation.invars))
            if key in seen or equation.primitive.name in ("jit", "custom_jvp_call"):
                continue
            seen.add(key)
            names = names_of(equation)
            is_other = any(name != equation.primitive.name for name in names)
            if is_other and len(set(names)) > 1 and len(names) <= MOST_NAMES and not any("(" in name for name in names):
                yield equation.primitive.name, len(equation.invars), names


# --- The table -------------------------------------------------------------------------------------------------------------


@dataclass
class Table:
    rows: dict[str, Form] = field(default_factory=dict)
    expansions: list[Expansion] = field(default_factory=list)

    @classmethod
    def read(cls) -> Table:
        table = cls()
        if not TABLE.exists():
            return table
        rows, _, expanded = TABLE.read_text().partition("kExpansions[]")
        for name, texts in re.findall(r'\{"([^"]+)",((?:\s*"[^"]*")+)\}', rows):
            nodes = " ".join(re.findall(r'"([^"]*)"', texts)).split()
            table.rows[name] = [_parse(node) for node in nodes]
        for name, arity, names in re.findall(r'\{"([^"]+)", (\d+), "([^"]*)"\}', expanded):
            table.expansions.append((name, int(arity), tuple(names.split())))
        return table

    def add(self, primitive: str, nodes: Form) -> None:
        """Adds a form of a derivative; equal nodes are one."""
        row = self.rows.setdefault(primitive, [])
        numbers: list[str] = []
        for name, inputs, operands in nodes:
            taken = tuple(numbers[int(i)] if i.isdigit() else i for i in inputs)
            at = next((i for i, (n, t, _) in enumerate(row) if (n, t) == (name, taken)), len(row))
            if at == len(row):
                row.append((name, taken, []))
            row[at][2].extend(o for o in operands if o not in row[at][2])
            numbers.append(str(at))

    def write(self) -> None:
        lines = [HEADER + "constexpr RowText kRows[] = {"]
        for name, row in sorted(self.rows.items()):
            parts = textwrap.wrap(" ".join(map(_text, row)), 88, break_long_words=False, break_on_hyphens=False)
            joined = "".join(f'\n        "{part} "' for part in parts[:-1]) + f'\n        "{parts[-1]}"'
            lines.append(f'    {{"{name}",{joined}}},')
        lines.append("};\nconstexpr ExpansionText kExpansions[] = {")
        lines += [f'    {{"{name}", {arity}, "{" ".join(names)}"}},' for name, arity, names in sorted(self.expansions)]
        TABLE.write_text("\n".join(lines) + "\n};\n// clang-format on\n")


def _parse(node: str) -> tuple[str, tuple[str, ...], list[int]]:
    name, inputs, operands = re.fullmatch(r"([^(]*)\(([^)]*)\)(?:>([\d,]+))?", node).groups()  # type: ignore[union-attr]
    return name, tuple(filter(None, inputs.split(","))), [int(i) for i in (operands or "").split(",") if i]


def _text(node: tuple[str, tuple[str, ...], list[int]]) -> str:
    name, inputs, operands = node
    return f"{name}({','.join(inputs)})" + (">" + ",".join(map(str, operands)) if operands else "")


def update(table: Table) -> list[str]:
    """Adds what this JAX emits. Returns what was not there."""
    before = {name: [_text(node) for node in row] for name, row in table.rows.items()}
    for primitive, nodes in forms():
        table.add(primitive, nodes)
    found = [
        f"{name}: {_text(node)}" for name, row in table.rows.items() for node in row if _text(node) not in before.get(name, ())
    ]
    for expansion in expansions():
        if expansion not in table.expansions:
            table.expansions.append(expansion)
            found.append(f"{expansion[0]} is written out as {' '.join(expansion[2])}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="add it to the table")
    table = Table.read()
    print("\n".join(update(table)) or "nothing new")
    if parser.parse_args().write:
        table.write()


if __name__ == "__main__":
    main()
