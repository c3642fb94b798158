# SPDX-License-Identifier: Apache-2.0
"""How long does XLA's CPU code take for an element of each opcode? The tables of `hlotag.profiles.weights`.

The unit is an element of a simple operation: the mean of an addition, a subtraction, a product and a maximum in one loop. The
last column is that of `float32` in fusions that YNNPACK computes: sums, and what they read.

python benchmarks/weights.py [--types float32 float64]
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
from jax import lax

_ELEMENTS, _CHAIN = 4096, 4  # values that stay in the first cache; operations after each other
_WIDTH = 64  # of a matrix with these elements
_SECONDS, _BEST_OF = 0.002, 40

# Each keeps values between about 0.3 and 3, so that none is special.
UNARY = {
    "abs": lax.abs,
    "cbrt": lax.cbrt,
    "ceil": lax.ceil,
    "cosine": lax.cos,
    "erf": lax.erf,
    "exponential": lax.exp,
    "exponential-minus-one": lax.expm1,
    "floor": lax.floor,
    "log": lax.log,
    "log-plus-one": lax.log1p,
    "logistic": lax.logistic,
    "negate": lax.neg,
    "round-nearest-even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "rsqrt": lax.rsqrt,
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "tan": lax.tan,
    "tanh": lax.tanh,
}
BINARY = {
    "add": lax.add,
    "atan2": lax.atan2,
    "divide": lax.div,
    "maximum": lax.max,
    "multiply": lax.mul,
    "power": lax.pow,
    "remainder": lax.rem,
    "subtract": lax.sub,
}


def _square(x):
    return lax.reshape(x, (_WIDTH, _WIDTH))


def _product(x, y):
    """A product of matrices, `2 * _WIDTH` flops for each element."""
    return lax.reshape(lax.dot(_square(x), _square(y)), x.shape)


def _row_sums(x, y):
    sums = lax.reduce_sum(_square(x), axes=(1,))
    return lax.reshape(_square(y) * lax.broadcast_in_dim(sums * (1 / _WIDTH), (_WIDTH, _WIDTH), (0,)), x.shape)


def seconds_of(body, x, y) -> float:
    """The best time of an element in a loop whose body is `body`: one kernel, whose values stay in the cache."""
    trips = 64
    while True:
        run = jax.jit(lambda x, y, trips=trips: lax.fori_loop(0, trips, lambda _, x: body(x, y), x)).lower(x, y).compile()
        took = min(_once(run, x, y) for _ in range(_BEST_OF))
        if took > _SECONDS:
            return took / trips / _ELEMENTS
        trips *= 4


def _once(run, x, y) -> float:
    start = time.perf_counter()
    jax.block_until_ready(run(x, y))
    return time.perf_counter() - start


def measure(dtype, *, is_ynn: bool = False) -> dict[str, float]:
    """By opcode, the time of an element as a multiple of that of a simple operation."""
    x, y = jnp.linspace(1.1, 1.9, _ELEMENTS, dtype=dtype), jnp.linspace(0.6, 0.9, _ELEMENTS, dtype=dtype)

    def chain(step, count):
        def body(x, y):
            start = x
            for _ in range(count):
                x = step(x, y)
            if is_ynn:
                return start + 1e-6 * jnp.repeat(lax.reduce_sum(_square(x), axes=(1,)), _WIDTH)
            return lax.max(x, y)

        return body

    def slope(step):
        short, long = (seconds_of(chain(step, count), x, y) for count in (_CHAIN, 3 * _CHAIN))
        return max(0.0, long - short) / (2 * _CHAIN)

    # An operation and what brings its result back; less the time of that.
    back = slope(lambda x, y: lax.add(lax.mul(x, y), y))
    simple = slope(lambda x, y: lax.max(lax.sub(lax.mul(lax.add(x, y), y), y), y)) / 4
    found = {name: slope(lambda x, y, of=of: lax.add(lax.mul(of(x), y), y)) - back for name, of in UNARY.items()}
    found |= {name: slope(lambda x, y, of=of: lax.add(lax.mul(of(x, y), y), y)) - back for name, of in BINARY.items()}
    if is_ynn:
        short, long, whole = 4, 256, _ELEMENTS
        found["reduce a row"] = (row_sums(short) - row_sums(long)) / (1 / short - 1 / long)
        found["reduce"] = row_sums(whole) - seconds_of(lambda x, y: x + 1e-6 * y, x, y)
    else:
        found |= {"dot": slope(_product) / (2 * _WIDTH), "reduce": slope(_row_sums) - back}
    print(f"# {jnp.dtype(dtype).name}: {simple * 1e9:.3f} ns for an element of a simple operation")
    return {name: max(seconds, 0.0) / simple for name, seconds in found.items()}


def row_sums(length: int) -> float:
    """The time of an element in a loop that adds to each row its sum."""
    x = jnp.linspace(0.6, 0.9, _ELEMENTS, dtype=jnp.float32).reshape(-1, length)
    return seconds_of(lambda x, _: x + 1e-6 * lax.reduce_sum(x, axes=(1,))[:, None], x, x)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--types", nargs="+", default=["float32", "float64"])
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    tables = {name: measure(jnp.dtype(name)) for name in arguments.types}
    tables["YNNPACK"] = measure(jnp.dtype("float32"), is_ynn=True)
    for opcode in sorted({opcode for table in tables.values() for opcode in table}):
        print(f"{opcode:24}", *(f"{table.get(opcode, float('nan')):8.2f}" for table in tables.values()))


if __name__ == "__main__":
    main()
