# SPDX-License-Identifier: Apache-2.0
"""How long does an opcode take for an element here and now? The truth's own measurement; it uses nothing of hlotag.

XLA's CPU compiler has two code generators for fusions: LLVM loops, and YNNPACK for sums and what they read. Their costs of a
sine differ tenfold, so each is measured.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
from jax import lax

_SIZE = 64  # of a square matrix: it stays in the first cache, and one thread computes it
_SHORT, _LONG = 4, 20  # links of a chain
_SUMMED = 4096  # elements of the shorter sum
_RUNS, _ROUNDS = 200, 7

_Chained = Callable[[jax.Array], jax.Array]
_OPCODES: dict[str, _Chained] = {
    "atan2": lambda x: lax.atan2(x, x + 1),
    "cbrt": lax.cbrt,
    "ceil": lax.ceil,
    "cosine": lax.cos,
    "divide": lambda x: 1.5 / x,
    "erf": lax.erf,
    "exponential": lax.exp,
    "exponential-minus-one": lax.expm1,
    "floor": lax.floor,
    "log": lax.log,
    "log-plus-one": lax.log1p,
    "logistic": lax.logistic,
    "maximum": lambda x: lax.max(x, 0.7),
    "minimum": lambda x: lax.min(x, 1.3),
    "power": lambda x: lax.pow(x, x),
    "remainder": lambda x: lax.rem(x, 0.9),
    "rsqrt": lax.rsqrt,
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "tan": lax.tan,
    "tanh": lax.tanh,
}


def _back(x: jax.Array) -> jax.Array:
    """Brings a result back to values around 1, for which no function is special."""
    return x * 0.1 + 1.0


@cache
def simple_seconds(*, is_ynn: bool) -> float:
    """The seconds of a multiplication or an addition of the matrix."""
    links = 8
    return _slope(lambda x: functools.reduce(lambda x, _: _back(x), range(links), x), is_ynn=is_ynn) / links / 2


@cache
def cost_of(opcode: str, *, is_ynn: bool) -> float:
    """The time of an opcode for an element in units of `multiply` and `add`, by one code generator. Not below 0."""
    if opcode not in _OPCODES:
        return 1.0
    chained, simple = _OPCODES[opcode], simple_seconds(is_ynn=is_ynn)
    return max(0.0, _slope(lambda x: _back(chained(x)), is_ynn=is_ynn) / simple - 2)


@cache
def product_cost() -> float:
    """The time of a flop of a product of matrices."""
    links = _slope(lambda x: _back(x @ x), is_ynn=False) - _slope(_back, is_ynn=False)
    return links / (2 * _SIZE) / simple_seconds(is_ynn=False)


@cache
def reduction_cost(length: int, *, is_minor: bool, is_ynn: bool) -> float:
    """The time of an element that is summed with others: `length` together, along the minor dimension or across it.

    YNNPACK sums floats, and LLVM loops integers.
    """
    count = max(1, _SUMMED // length)

    def matrix(count: int) -> jax.Array:
        return jnp.ones((count, length) if is_minor else (length, count), "float32" if is_ynn else "int32")

    more = 4
    run = jax.jit(lambda x: x.sum(int(is_minor)))
    seconds = _difference((run, matrix(count)), (run, matrix(more * count))) / (more - 1) / (count * length)
    return seconds / (simple_seconds(is_ynn=is_ynn) / _SIZE**2)


def _slope(chained: _Chained, *, is_ynn: bool) -> float:
    """The seconds that one more link of a chain takes for the matrix."""

    def chain(count: int) -> _Chained:
        def run(x: jax.Array) -> jax.Array:
            for _ in range(count):
                x = chained(x)
            return x.sum(-1) if is_ynn else x

        return jax.jit(run)

    x = jnp.linspace(0.8, 1.2, _SIZE * _SIZE).reshape(_SIZE, _SIZE)
    return _difference((chain(_SHORT), x), (chain(_LONG), x)) / (_LONG - _SHORT)


def _difference(short: tuple[_Chained, jax.Array], long: tuple[_Chained, jax.Array]) -> float:
    """How many seconds longer a call takes than another: the median of rounds, in each the least of runs in turns."""
    for function, x in (short, long):
        jax.block_until_ready(function(x))
    found: list[float] = []
    for _ in range(_ROUNDS):
        runs = [(_seconds(*short), _seconds(*long)) for _ in range(_RUNS)]
        least, most = (min(times) for times in zip(*runs, strict=True))
        found.append(most - least)
    return max(0.0, statistics.median(found))


def _seconds(function: _Chained, x: jax.Array) -> float:
    start = time.perf_counter()
    jax.block_until_ready(function(x))
    return time.perf_counter() - start
