# SPDX-License-Identifier: Apache-2.0
"""Programs whose audits are compared with the truth (`audit_truth.py`): each has something that XLA does to operations."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from programs import PROGRAMS, B, W, X


def mix(x, w, b):
    order = jnp.argsort(x[:, 0])
    rows = x[order] @ w
    spectrum = jnp.abs(jnp.fft.rfft(rows, axis=1))
    top, _ = lax.top_k(spectrum, 3)
    return jnp.cumsum(jnp.sort(rows, 0), 1).at[1, jnp.array([0, 3])].add(b[:2]).sum() + top.sum() + jax.nn.relu(rows).sum()


def solver(x, w, b):
    def is_far(carry):
        return (carry[1] > 1e-3) & (carry[2] < 20)

    def step(carry):
        y = carry[0] - 0.1 * (w @ carry[0] - b)
        return y, jnp.abs(w @ y - b).max(), carry[2] + 1

    y, _, count = lax.while_loop(is_far, step, (jnp.zeros_like(b), jnp.inf, 0))
    z = lax.fori_loop(0, 4, lambda i, z: jnp.sin(z + x[i]), y)
    return lax.cond(count > 3, lambda z: z @ w, lambda z: jnp.cos(z) * 2, z)


def quantised(x, w, b):
    def rounded(x):
        scale = jnp.abs(x).max() / 127.0
        return jnp.round(x / scale).astype(jnp.int8), scale

    (left, s), (right, t) = rounded(x), rounded(w)
    product = lax.dot(left, right, preferred_element_type=jnp.int32).astype(jnp.float32) * s * t + b
    narrow = lax.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    return product, narrow, product.astype(jnp.float8_e4m3fn).astype(jnp.float32) @ w


def hoisted(x, w, b):
    """A constant in a loop, equal to one outside."""

    def step(state, row):
        state = jnp.sin(state) + jnp.eye(w.shape[0])
        return state, row @ state

    return lax.scan(step, jnp.eye(w.shape[0]), x)


def normalized(x, w, b):
    """The mean is computed twice, with dimensions of size one and without."""
    y = jnp.tanh(x @ w + b)
    return (y - y.mean(0)) * lax.rsqrt(jnp.square(y - y.mean(0, keepdims=True)).mean(0) + 1e-5)


def determinant(x, w, b):
    """Its sign, which takes a loop, is needed by nobody."""
    return jnp.linalg.slogdet(x.T @ x + w.T @ w)[1]


def repeated(x, w, b):
    """The same loop twice, and what is computed of both."""

    def solve():
        return lax.scan(lambda y, row: (jnp.sin(y + row) * jnp.cos(row) + jnp.tanh(y), None), b, x)[0]

    return jnp.exp(solve()) + x @ w, jnp.exp(solve()) * 2.0


def one_place(x, w, b):
    """Scatters to one place, which become updates of a slice and what checks the bounds."""
    return x.at[:, 1].set(2.0) @ w.at[1].add(b), x.at[jnp.argmax(b)].set(b)


def scanned(x, w, b):
    """Slices of what is nearly empty, which become equal when they are simplified, and pads with less than nothing."""
    return lax.associative_scan(lambda a, c: (a[0] * c[0], a[1] * c[0] + c[1]), (x, x + 1)), lax.cummax(w)


def noise(x, w, b):
    """Random bits of a constant key: what is computed of it becomes equal when constants are folded."""
    left, right = jax.random.split(jax.random.key(0))
    return jnp.where(jax.random.bernoulli(left, 0.5, x.shape), x / 0.5, 0) @ w, jax.random.uniform(right, (8,)) + b


def waves(x, w, b):
    """The conversion of an operand is needed no more, and hands its tag on, beside a call that is inlined."""
    z = x + 1j * x[::-1]
    return jnp.abs(z), jnp.angle(z), (z @ w).real, jnp.exp(z), z * jnp.conj(z), lax.complex(x, x) / z


def curvature(x, w, b):
    """Broadcasts that only relabel what a slice makes, and are that slice's instruction."""
    return jax.hessian(lambda b: jnp.sin(jnp.outer(b, b)).sum() * jnp.prod(b))(b)


def heads(x, w, b):
    """Scalings that changes of shape are moved past, whose broadcast has its place in their names."""
    y = (x @ w).reshape(4, 2, 4).transpose(1, 0, 2)
    return (0.1 * y) @ (0.2 * y).transpose(0, 2, 1) + 0.1 * y


def masked(x, w, b):
    """Broadcasts of iotas, which become iotas, some of them one."""
    position = jnp.broadcast_to(jnp.arange(4), (2, 4))
    mask = position[:, :, None] >= position[:, None, :]
    return jnp.where(mask, x @ x.T, -1.0), jax.nn.one_hot((b > 0).astype(jnp.int32), 8) @ w


def twice(x, w, b):
    """Of equal indices, and of equal products of a matrix and a vector, one is left, under no name of its own."""

    def step(centres, _):
        nearest = jnp.argmin(jnp.square(w[:, None] - centres).sum(-1), 1)
        count, total = jnp.zeros(4).at[nearest].add(1.0), jnp.zeros_like(centres).at[nearest].add(w)
        return total / jnp.maximum(count, 1.0)[:, None], jnp.sin(centres @ b) - jnp.cos(centres @ b)

    return lax.scan(step, x, None, length=2)


def diagonal(x, w, b):
    """What a function makes is an argument of another, which does not read it."""
    return jax.grad(lambda w: jnp.log(jnp.diag(w @ w.T + x.T @ x)).sum())(w)


def turned(x, w, b):
    """A negation is merged into a product, which is not its instruction."""
    branches = [lambda row: row * 2, jnp.cos, lambda row: row @ w]
    return jax.grad(lambda row: lax.switch((row[0] > 0).astype(int), branches, row).sum())(x[1])


def counted(x, w, b):
    """Running sums under no name of their own, carried by a bitcast beside the broadcast that wraps negative indices."""
    return w[jnp.cumsum(b > 0)] + x[jnp.cumsum(b[::-1].astype(jnp.int32))].sum()


def halved(x, w, b):
    """Divisions by powers of two, which become shifts by another constant."""
    index = jnp.argsort(b)
    return index // 4, index % 2, b[index // 2]


def placed(x, w, b):
    """A reshape under the name of what is converted before it."""

    def step(carry, _):
        state, i = carry
        at = jnp.argmax(x[:, i])
        return (state.at[:, i + 1].set(at), i + 1), None

    return lax.scan(step, (jnp.zeros((3, 6), jnp.int32).at[:, 0].set(1), 0), None, length=4)


def clipped(x, w, b):
    """A scale is folded into the broadcast of another, under the name of what it scales."""
    scale = jnp.minimum(1.0, 1.0 / (jnp.sqrt((b * b).sum()) + 1e-6))
    return w - 1e-2 * (w @ w) * scale, x - 1e-2 * jnp.sin(x) * scale


def narrow(x, w, b):
    """Values of a narrow type in a function that a loop calls, which CPU's compiler converts under the name of the call."""

    @jax.checkpoint
    def layer(y, w):
        return jnp.tanh(y @ w.astype(jnp.bfloat16)) * y, None

    return jax.grad(lambda w: lax.scan(layer, x.astype(jnp.bfloat16), w)[0].astype(jnp.float32).sum())(jnp.stack([w, w]))


spread = jax.jit(lambda mask: jnp.broadcast_to(mask, (2, 4, 4)))


def carried(x, w, b):
    """A function's broadcast, which is an operand of a loop."""
    mask = spread(jnp.arange(4)[:, None] >= jnp.argmax(x, 1))
    return lax.scan(lambda y, row: (jnp.tanh(y + jnp.where(mask, row[:4], -1.0).sum(0)), None), x[:, :4], w)[0]


def angles(x, w, b):
    """Divisions of a broadcast by another, which have one name."""
    scale = 1e4 ** (2 * jnp.arange(4) / 8)
    left, right = x[:, :1, None, None] / scale, w[:, :1, None, None] / scale
    return jnp.sin(left), jnp.cos(right)


bounded = jax.jit(lambda i: jnp.maximum(i * 2, 1) + i)


def shared(x, w, b):
    """Running sums under no name of their own, which only a function with several calls uses."""
    return bounded(jnp.cumsum(b > 0)), bounded(jnp.cumsum(b < 0))


def programs() -> dict[str, tuple[Any, tuple]]:
    names = {"mlp": "mlp", "conv": "convolution", "rnn": "rnn", "shard_map": "sharded"}
    scalars = {title: PROGRAMS[name][0] for title, name in names.items()} | {"mix": mix}
    others = (
        *(solver, quantised, hoisted, normalized, determinant, repeated, one_place, scanned, noise, waves, heads, masked),
        *(twice, diagonal, turned, counted, halved, placed, shared, carried, angles, clipped, narrow),
    )
    functions = {title: jax.grad(function, (0, 1, 2)) for title, function in scalars.items()} | {f.__name__: f for f in others}
    return {title: (function, (X, W, B)) for title, function in functions.items()}
