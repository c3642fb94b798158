# SPDX-License-Identifier: Apache-2.0
"""Programs on which no rule of time by tag was tuned: five written here, and five of functions of JAX's libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.optimize
from jax import lax
from jax.experimental.ode import odeint

from time_programs import Program, random
from time_truth import part


def recurrent() -> Program:
    """A recurrent network whose loop is differentiated."""

    def loss(w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        def cell(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            with part("gates"):
                reset, update = jnp.split(jax.nn.sigmoid(x @ w["xg"] + h @ w["hg"]), 2, axis=-1)
            with part("candidate"):
                new = jnp.tanh(x @ w["xc"] + (reset * h) @ w["hc"])
            with part("mix"):
                h = update * h + (1 - update) * new
            return h, h

        _, states = lax.scan(cell, jnp.zeros((x.shape[1], 128)), x)
        with part("loss"):
            return jax.nn.logsumexp(states, axis=-1).mean()

    shapes = {"xg": (64, 256), "hg": (128, 256), "xc": (64, 128), "hc": (128, 128)}
    return jax.grad(loss), ({name: random(*shape, seed=n) for n, (name, shape) in enumerate(shapes.items())}, random(64, 32, 64))


def graph() -> Program:
    """Messages along the edges of a graph: gathers, scatters and a softmax by node."""

    def loss(w: dict[str, jax.Array], nodes: jax.Array, edges: tuple[jax.Array, jax.Array]) -> jax.Array:
        senders, receivers = edges
        for _ in range(2):
            with part("message"):
                message = jnp.tanh(jnp.concatenate([nodes[senders], nodes[receivers]], -1) @ w["message"])
            with part("weigh"):
                score = (message @ w["score"])[:, 0]
                score = jnp.exp(score - jax.ops.segment_max(score, receivers, 512)[receivers])
                score = score / (jax.ops.segment_sum(score, receivers, 512)[receivers] + 1e-6)
            with part("aggregate"):
                nodes = nodes + jax.ops.segment_sum(message * score[:, None], receivers, 512)
        with part("readout"):
            return (nodes @ w["readout"]).var()

    shapes = {"message": (128, 64), "score": (64, 1), "readout": (64, 32)}
    weights = {name: random(*shape, seed=n) for n, (name, shape) in enumerate(shapes.items())}
    numbers = jnp.arange(4096)
    return jax.grad(loss), (weights, random(512, 64, seed=5), (numbers * 37 % 512, numbers * 101 % 512))


def particles() -> Program:
    """Forces between particles: many different functions of few values, which XLA fuses."""

    def step(x: jax.Array, v: jax.Array) -> Any:
        with part("distance"):
            offset = x[:, None] - x[None]
            r = jnp.sqrt((offset**2).sum(-1) + 0.1)
        with part("screened"):
            force = jnp.exp(-r) / r**2
        with part("wave"):
            force = force + 0.01 * jnp.sin(4 * r) * jnp.cos(r)
        with part("sum"):
            a = (force[..., None] * offset).sum(1)
        with part("advance"):
            v = 0.99 * v + 0.01 * jnp.tanh(a)
            return x + 0.01 * v, v

    return step, (random(512, 3), random(512, 3, seed=1))


def branches() -> Program:
    """A batched branch, which computes both sides, and one that is taken."""

    def step(x: jax.Array, w: jax.Array) -> Any:
        def far(row: jax.Array) -> jax.Array:
            with part("far"):
                return jnp.log1p(jnp.abs(row @ w))

        def near(row: jax.Array) -> jax.Array:
            with part("near"):
                return jnp.tanh(row @ w.T)

        rows = jax.vmap(lambda row: lax.cond(row[0] > 0, far, near, row))(x)

        def mend(rows: jax.Array) -> jax.Array:
            with part("mend"):
                return rows @ w

        rows = lax.cond(rows.sum() < 1e9, mend, lambda rows: rows, rows)
        with part("order"):
            return jnp.sort(rows, axis=-1)[:, :8]

    return step, (random(256, 256), random(256, 256, seed=1))


def mixture() -> Program:
    """A training step with a random sample, a mixture density and Adam."""

    def loss(w: list[jax.Array], x: jax.Array, key: jax.Array) -> jax.Array:
        with part("sample"):
            x = x + 0.1 * jax.random.normal(key, x.shape)
        with part("network"):
            h = jax.nn.gelu(x @ w[0]) @ w[1]
        with part("density"):
            logits, mean, scale = jnp.split(h, 3, axis=-1)
            log = -0.5 * ((x[:, :1] - mean) * jnp.exp(-scale)) ** 2 - scale + jax.nn.log_softmax(logits)
            return -jax.nn.logsumexp(log, axis=-1).mean()

    def step(w: list[jax.Array], state: Any, x: jax.Array, key: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(w, x, key)
        with part("norm"):
            norm = jnp.sqrt(sum((g**2).sum() for g in grads))
            grads = [g / jnp.maximum(norm, 1.0) for g in grads]
        with part("adam"):
            first = [0.9 * m + 0.1 * g for m, g in zip(state[0], grads, strict=True)]
            second = [0.99 * m + 0.01 * g**2 for m, g in zip(state[1], grads, strict=True)]
            w = [p - 0.001 * m / (jnp.sqrt(s) + 1e-8) for p, m, s in zip(w, first, second, strict=True)]
        return value, w, (first, second)

    w = [random(64, 256), random(256, 3 * 64, seed=1)]
    zeros = [jnp.zeros_like(each) for each in w]
    return step, (w, (zeros, zeros), random(1024, 64, seed=2), jax.random.key(0))


def library_attention() -> Program:
    """`jax.nn.dot_product_attention` and what is around it in a network."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        with part("project"):
            q, k, v = jnp.split((jax.nn.standardize(x) @ w).reshape(4, 128, 4, 96), 3, axis=-1)
        with part("attention"):
            y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        with part("glu"):
            y = jax.nn.glu(y.reshape(4, 128, 128))
        with part("loss"):
            return jax.nn.softplus(y).mean()

    return jax.grad(loss, argnums=(0, 1)), (random(128, 384), random(4, 128, 128, seed=1))


def conjugate_gradient() -> Program:
    """`jax.scipy.sparse.linalg.cg`, and a Cholesky factor as a check."""

    def step(x: jax.Array, b: jax.Array) -> Any:
        with part("kernel"):
            k = jnp.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(-1)) + jnp.eye(384)
        with part("cg"):
            iterated, _ = jax.scipy.sparse.linalg.cg(lambda v: k @ v, b, tol=1e-6, maxiter=50)
        with part("cholesky"):
            solved = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(k, lower=True), b)
        with part("compare"):
            return jnp.abs(iterated - solved).max(), solved

    return step, (random(384, 8), random(384, seed=1))


def resized() -> Program:
    """`jax.image.resize` and `map_coordinates` between convolutions."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        with part("up"):
            x = jax.image.resize(x, (4, 64, 64, 8), "cubic")
        with part("conv"):
            x = jax.nn.silu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        with part("warp"):
            rows, columns = jnp.mgrid[0:64, 0:64] * 0.9 + 1.5
            warp = lambda image: jax.scipy.ndimage.map_coordinates(image, [rows, columns], order=1)
            x = jax.vmap(jax.vmap(warp, -1, -1))(x)
        with part("down"):
            x = jax.image.resize(x, (4, 16, 16, 8), "linear")
        with part("loss"):
            return (x**2).mean()

    return jax.grad(loss), (random(3, 3, 8, 8), random(4, 32, 32, 8, seed=1))


def differential_equation() -> Program:
    """`jax.experimental.ode.odeint` and its adjoint: loops whose trips only the data decides."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        def field(x: jax.Array, t: jax.Array, w: jax.Array) -> jax.Array:
            with part("field"):
                return jnp.tanh(x @ w) * jnp.cos(t) - 0.1 * x

        with part("solver"):
            states = odeint(field, x, jnp.linspace(0.0, 1.0, 3), w, rtol=1e-3)
        with part("loss"):
            return (states[-1] ** 2).mean()

    return jax.grad(loss), (random(256, 256), random(128, 256, seed=1))


def minimized() -> Program:
    """`jax.scipy.optimize.minimize` of a function of a network's weights."""

    def step(w: jax.Array, x: jax.Array, y: jax.Array) -> Any:
        def loss(w: jax.Array) -> jax.Array:
            with part("model"):
                made = jnp.tanh(x @ w.reshape(32, 16)).sum(-1)
            with part("error"):
                return ((made - y) ** 2).mean() + 0.01 * (w**2).sum()

        with part("bfgs"):
            found = jax.scipy.optimize.minimize(loss, w, method="BFGS", options={"maxiter": 8})
        return found.x, found.fun

    return step, (random(512), random(2048, 32, seed=1), random(2048, seed=2))


NEW: dict[str, Callable[[], Program]] = {made.__name__: made for made in (recurrent, graph, particles, branches, mixture)}
OF_LIBRARIES: dict[str, Callable[[], Program]] = {
    made.__name__: made for made in (library_attention, conjugate_gradient, resized, differential_equation, minimized)
}
