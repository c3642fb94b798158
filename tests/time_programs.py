# SPDX-License-Identifier: Apache-2.0
"""Programs whose time by tag is compared with the truth: each a function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from time_truth import part

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def random(*shape: int, seed: int = 0, dtype: Any = jnp.float32) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(0, 0.05, shape), dtype)


def _attention(w: dict[str, jax.Array], x: jax.Array, key: jax.Array | None = None) -> jax.Array:
    with part("qkv"):
        q, k, v = (x @ w[name] for name in ("q", "k", "v"))
    with part("logits"):
        logits = jnp.einsum("btd,bsd->bts", q, k) / 8
        weights = jax.nn.softmax(logits)
    if key is not None:
        with part("dropout"):
            weights = jnp.where(jax.random.bernoulli(key, 0.9, weights.shape), weights / 0.9, 0.0)
    with part("out"):
        return jnp.einsum("bts,bsd->btd", weights, v) @ w["o"]


def _block_weights(d: int, seed: int) -> dict[str, jax.Array]:
    names = {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    return {name: random(*shape, seed=seed + n) for n, (name, shape) in enumerate(names.items())}


def _norm(x: jax.Array) -> jax.Array:
    with part("norm"):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _block(w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    x = x + _attention(w, _norm(x))
    with part("up"):
        h = _norm(x) @ w["up"]
    with part("gelu"):
        h = jax.nn.gelu(h)
    with part("down"):
        return x + h @ w["down"]


def transformer() -> Program:
    def loss(ws: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
        for w in ws:
            x = _block(w, x)
        return (x**2).mean()

    return jax.grad(loss), ([_block_weights(64, n * 10) for n in range(2)], random(8, 128, 64))


def scanned() -> Program:
    def loss(ws: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        body = jax.checkpoint(lambda x, w: (_block(w, x), None))
        return (lax.scan(body, x, ws)[0] ** 2).mean()

    ws = jax.tree.map(lambda *w: jnp.stack(w), *[_block_weights(64, n * 10) for n in range(3)])
    return jax.grad(loss), (ws, random(8, 128, 64))


def convolutions() -> Program:
    def loss(ws: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in ws:
            with part("conv"):
                x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            with part("bn"):
                x = (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5)
            with part("relu"):
                x = jax.nn.relu(x)
            with part("pool"):
                x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        with part("head"):
            return (x.mean((1, 2)) ** 2).sum()

    return jax.grad(loss), ([random(3, 3, 8, 16), random(3, 3, 16, 16, seed=1)], random(8, 32, 32, 8, seed=2))


def dropout() -> Program:
    def loss(w: dict[str, jax.Array], x: jax.Array, key: jax.Array) -> jax.Array:
        return (_attention(w, x, key) ** 2).mean()

    return jax.grad(loss), (_block_weights(64, 0), random(8, 128, 64), jax.random.key(0))


def bfloat16() -> Program:
    def loss(ws: list[jax.Array], x: jax.Array) -> jax.Array:
        for n, w in enumerate(ws):
            with part(f"layer{n}"):
                x = jnp.tanh(x @ w.astype(jnp.bfloat16))
        with part("loss"):
            return (x.astype(jnp.float32) ** 2).mean()

    def step(ws: list[jax.Array], ms: list[jax.Array], x: jax.Array) -> Any:
        grads = jax.grad(loss)(ws, x)
        with part("optimizer"):
            ms = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, ms, grads)
            return jax.tree.map(lambda w, m: w - 0.1 * m / (jnp.abs(m) + 1e-3), ws, ms), ms

    ws = [random(256, 256, seed=n) for n in range(3)]
    return step, (ws, [0 * w for w in ws], random(32, 256, dtype=jnp.bfloat16))


def loops() -> Program:
    def step(x: jax.Array, a: jax.Array) -> Any:
        with part("loop"):
            y = lax.fori_loop(0, 200, lambda _, c: c * 0.999 + jnp.sin(c), x)
        with part("recurrence"):
            z, _ = lax.scan(lambda c, t: (0.9 * c + t, None), jnp.zeros(16), jnp.broadcast_to(y[:16], (400, 16)))
        with part("product"):
            return a @ a + z.sum()

    return step, (random(1024), random(128, 128))


def moved() -> Program:
    def step(x: jax.Array, w: jax.Array) -> Any:
        with part("dot"):
            y = x @ w
        with part("act"):
            return jnp.sin(jnp.cos(y)).transpose(0, 2, 1), y

    return step, (random(8, 256, 16), random(16, 512))


def experts() -> Program:
    def loss(w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        with part("router"):
            gates, chosen = lax.top_k(jax.nn.softmax(x @ w["gate"]), 2)
        with part("dispatch"):
            onehot = jax.nn.one_hot(chosen, 4) * gates[..., None]
            dispatched = jnp.einsum("tke,td->etd", onehot, x)
        with part("expert"):
            made = jnp.einsum("etf,efd->etd", jax.nn.relu(jnp.einsum("etd,edf->etf", dispatched, w["in"])), w["out"])
        with part("combine"):
            return (made.sum(0) ** 2).mean()

    return jax.grad(loss), (
        {"gate": random(64, 4), "in": random(4, 64, 128, seed=1), "out": random(4, 128, 64, seed=2)},
        random(256, 64, seed=3),
    )


def embedding() -> Program:
    def loss(table: jax.Array, w: jax.Array, tokens: jax.Array) -> jax.Array:
        with part("index"):
            tokens = (tokens * 7 + 3) % 4096
        with part("embed"):
            x = table[tokens]
        with part("cumsum"):
            x = jnp.cumsum(x, 0)
        with part("head"):
            logits = x @ w
        with part("loss"):
            return -jax.nn.log_softmax(logits)[:, 0].mean()

    return jax.grad(loss, argnums=(0, 1)), (random(4096, 128), random(128, 256, seed=1), jnp.arange(512))


def state_space() -> Program:
    def loss(w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        with part("in"):
            u = jax.nn.silu(x @ w["in"])
        with part("scan"):
            decay = jax.nn.sigmoid(u)
            _, s = lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (decay, u), axis=1)
        with part("fft"):
            s = s + jnp.fft.irfft(jnp.fft.rfft(s, axis=1) * 0.5, axis=1)
        with part("sort"):
            s = s + jnp.sort(s, axis=-1)
        with part("out"):
            return ((s @ w["out"]) ** 2).mean()

    return jax.grad(loss), ({"in": random(32, 64), "out": random(64, 32, seed=1)}, random(4, 256, 32, seed=2))


PROGRAMS: dict[str, Callable[[], Program]] = {
    made.__name__: made
    for made in (*(transformer, scanned, convolutions, dropout, bfloat16, loops, moved, experts, embedding, state_space),)
}
