# SPDX-License-Identifier: Apache-2.0
"""More programs for measuring how much of what autodiff derived is found.

Those in `DEVELOPMENT` were looked at while the analysis was written. Those in `HELD_OUT` never were: only their totals.

`python tests/derivative_programs.py [program ...]` prints the table of both.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import ground_truth
from ground_truth import Program


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 0.3


X, W, V, B = _array(4, 8), _array(8, 8, seed=1), _array(8, 8, seed=2), _array(8, seed=3)
IMAGE, KERNEL = _array(2, 3, 8, 8, seed=4), _array(3, 3, 3, 3, seed=5)


def hessian_vector(function: Callable[..., Any]) -> Callable[..., Any]:
    """Forward over reverse, of the first argument."""

    def product(x: Any, *rest: Any) -> Any:
        return jax.jvp(lambda x: jax.grad(function)(x, *rest), (x,), (x,))[1]

    return product


def second_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Reverse over reverse, of the first argument."""
    return jax.grad(lambda *args: (jax.grad(function)(*args) ** 2).sum())


def each(function: Callable[..., Any]) -> Callable[..., Any]:
    """vmap(grad) over the first argument."""
    return lambda x, *rest: jax.vmap(jax.grad(function), in_axes=(0,) + (None,) * len(rest))(jnp.stack([x, x]), *rest)


def of_batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """grad(vmap) over the first argument."""

    def batched(x: Any, *rest: Any) -> Any:
        return jax.vmap(function, in_axes=(0,) + (None,) * len(rest))(jnp.stack([x, x]), *rest).sum()

    return jax.grad(batched)


def everything(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jax.grad(function, argnums=tuple(range(len(args))))(*args)


def with_value(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jax.value_and_grad(function, argnums=tuple(range(len(args))))(*args)


# --- Development -----------------------------------------------------------------------------------------------------------


def cross_entropy(x, w, v):
    hidden = jax.nn.silu(x @ w) * (x @ v)
    logits = hidden @ w.T
    return (jax.nn.logsumexp(logits, -1) - logits[:, 0]).mean()


def residual_tower(x, w, v):
    for _ in range(3):
        x = x + jax.nn.relu(x @ w) @ v
        x = x / jnp.sqrt((x**2).sum(-1, keepdims=True) + 1e-3)
    return jnp.abs(x).sum()


def lstm(x, w, v):
    def step(carry, row):
        h, c = carry
        gates = row @ w + h @ v
        i, f = jax.nn.sigmoid(gates[:4]), jax.nn.sigmoid(gates[4:])
        c = jnp.concatenate([f, i]) * c + jnp.tanh(gates)
        h = jnp.tanh(c) * jax.nn.sigmoid(gates)
        return (h, c), h

    (h, _), rows = lax.scan(step, (jnp.zeros(8), jnp.zeros(8)), x)
    return (rows.mean(0) * h).sum()


def image_classifier(image, kernel):
    y = lax.conv_general_dilated(image, kernel, (2, 2), "SAME")
    mean, var = y.mean((0, 2, 3), keepdims=True), y.var((0, 2, 3), keepdims=True)
    y = jax.nn.relu((y - mean) / jnp.sqrt(var + 1e-5))
    y = lax.reduce_window(y, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4.0
    return jax.nn.log_softmax(y.reshape(2, -1)).max()


def euler(x, w, v):
    def force(x):
        return jnp.sin(x @ w) - 0.1 * x

    def body(_, x):
        k1 = force(x)
        k2 = force(x + 0.05 * k1)
        return x + 0.1 * k2

    return (lax.fori_loop(0, 3, body, x) @ v).sum()


def quotients(x, w, v):
    """Each division's derivative has a one that is divided by a square; the last division itself is dead code."""
    z = x @ (v * 0.5)
    for _ in range(3):
        z = z + z / (z**2 + 1.0)
    return (z @ w).sum()


def routed(x, w, v):
    weights, experts = lax.top_k(jax.nn.softmax(x @ w), 2)
    stacked = jnp.stack([w, v, w + v, w - v, w, v, w, v])
    y = jnp.einsum("nd,nkde->nke", x, stacked[experts])
    return (y * weights[..., None]).sum()


def squares(x, w, v):
    y = [jnp.square(row @ w) for row in x]
    total = sum(y[1:], y[0])
    return (total @ v).max()


def conditional_loop(x, w, v):
    def step(x, flag):
        return lax.cond(flag, lambda x: jnp.tanh(x @ w), lambda x: x * 0.5, x), x.sum()

    x, sums = lax.scan(step, x, jnp.array([True, False, True]))
    return (x @ v).sum() + sums.sum()


def online_softmax(x, w, v):
    keys = (x @ w).reshape(2, 2, 8)

    def step(carry, block):
        best, total, out = carry
        scores = x @ block.T
        new = jnp.maximum(best, scores.max(-1))
        p = jnp.exp(scores - new[:, None])
        scale = jnp.exp(best - new)
        return (new, total * scale + p.sum(-1), out * scale[:, None] + p @ block), None

    (_, total, out), _ = lax.scan(step, (jnp.full(4, -1e9), jnp.zeros(4), jnp.zeros((4, 8))), keys)
    return ((out / total[:, None]) @ v).sum()


# --- Held out --------------------------------------------------------------------------------------------------------------


def gru(x, w, v):
    def step(h, row):
        z = jax.nn.sigmoid(row @ w + h @ v)
        r = jax.nn.sigmoid(row @ v + h @ w)
        candidate = jnp.tanh(row @ w + (r * h) @ v)
        return (1 - z) * h + z * candidate, z

    h, _ = lax.scan(step, jnp.zeros(8), x)
    return (h**2).sum()


def rotary_attention(x, w, v):
    def rotate(q):
        a, b = jnp.split(q, 2, axis=-1)
        angle = jnp.arange(4.0)[:, None] * 0.1
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)

    q, k = rotate(x @ w), rotate(x @ v)
    scores = jnp.where(np.tri(4, dtype=bool), q @ k.T, -1e9)
    return (jax.nn.softmax(scores) @ x).mean()


def residual_images(image, kernel):
    for i in range(2):
        with jax.named_scope(f"stage_{i}"):
            y = jax.nn.gelu(lax.conv_general_dilated(image, kernel, (1, 1), "SAME"))
            image = image + lax.conv_general_dilated(y, kernel, (1, 1), "SAME")
    return image.mean((2, 3)).std()


def messages(x, w, v):
    senders, receivers = jnp.array([0, 1, 2, 3, 0]), jnp.array([1, 2, 3, 0, 2])
    for _ in range(2):
        sent = jax.nn.relu(x[senders] @ w)
        x = x + jax.ops.segment_sum(sent, receivers, num_segments=4) @ v
    return jnp.linalg.norm(x)


def autoencoder(x, w, v):
    mean, log_variance = x @ w, jnp.clip(x @ v, -2.0, 2.0)
    noise = jax.random.normal(jax.random.key(0), mean.shape)
    z = mean + jnp.exp(0.5 * log_variance) * noise
    rebuilt = jax.nn.sigmoid(z @ w.T)
    divergence = 0.5 * (jnp.exp(log_variance) + mean**2 - 1.0 - log_variance).sum()
    return ((rebuilt - x) ** 2).sum() + divergence


def runge_kutta(x, w, v):
    def force(x):
        return jnp.tanh(x @ w) * v[0]

    for _ in range(2):
        k1 = force(x)
        k2 = force(x + 0.5 * k1)
        k3 = force(x + 0.5 * k2)
        x = x + (k1 + 2 * k2 + k3) / 6.0
    return (x**2).mean()


def remat_mix(x, w, v):
    @jax.checkpoint
    def half(x, w):
        return x + jnp.tanh(jax.nn.softplus(x @ w) @ w.T)

    @partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    def other(x, w):
        return x * jax.nn.sigmoid(x @ w)

    for _ in range(2):
        x = other(half(x, w), v)
    return jnp.log(1.0 + x**2).sum()


def quantiles(x, w, v):
    y = jnp.sort(x @ w, axis=-1)
    low, high = y[:, 2], y[:, 5]
    running = lax.cumsum(y * v[0], axis=1)
    return ((high - low) ** 2).sum() + jnp.minimum(running, 1.0).sum()


@jax.custom_vjp
def _scaled(x, w):
    return jnp.tanh(x @ w)


_scaled.defvjp(lambda x, w: (_scaled(x, w), (x, w)), lambda res, g: ((g @ res[1].T) * 0.5, jnp.cos(res[0]).T @ g))


def custom(x, w, v):
    for m in (w, v):
        x = _scaled(x, m) + jax.nn.relu(x)
    return (x * x).sum()


@jax.jit
def _mixer(x, w):
    y = x + jax.nn.gelu(x.T @ x @ jnp.ones((8, 4)) * 0.1).T
    return y @ w


def shared_mixer(x, w, v):
    for m in (w, v, w):
        x = _mixer(x, m)
    return (x**4).mean()


def switched(x, w, v):
    def deep(x):
        for _ in range(2):
            x = jnp.sin(x @ w) + x
        return x

    y = lax.switch(jnp.argmax(x[0]) % 3, [deep, lambda x: x * jnp.exp(-x), lambda x: jnp.tanh(x @ v)], x)
    return lax.cond(y.sum() > 0, lambda y: y.sum(), lambda y: (y**2).mean(), y)


_MATRICES, _IMAGES = (X, W, V), (IMAGE, KERNEL)


def _programs(table: list[tuple[Callable[..., Any], Callable[..., Any]]]) -> dict[str, Program]:
    named = {}
    for function, transform in table:
        args = _IMAGES if "image" in function.__name__ else _MATRICES
        named[f"{function.__name__}, {transform.__name__}"] = Program(function, args, transform)
    return named


DEVELOPMENT = _programs(
    [(f, everything) for f in (cross_entropy, residual_tower, lstm, image_classifier, euler, routed, squares, conditional_loop)]
    + [(cross_entropy, each), (residual_tower, of_batch), (lstm, each), (image_classifier, of_batch), (routed, with_value)]
    + [(online_softmax, with_value)]
    + [(cross_entropy, hessian_vector), (residual_tower, second_gradient), (euler, hessian_vector), (lstm, second_gradient)]
    + [(quotients, hessian_vector), (quotients, second_gradient)]
)
HELD_OUT = _programs(
    [(f, everything) for f in (gru, rotary_attention, residual_images, messages, autoencoder, runge_kutta, remat_mix)]
    + [(f, with_value) for f in (quantiles, custom, shared_mixer, switched)]
    + [(rotary_attention, each), (autoencoder, of_batch), (gru, each), (residual_images, of_batch), (shared_mixer, of_batch)]
    + [(rotary_attention, hessian_vector), (custom, second_gradient), (gru, hessian_vector), (remat_mix, hessian_vector)]
    + [(runge_kutta, second_gradient), (messages, each), (switched, of_batch)]
)


if __name__ == "__main__":
    ground_truth.main(sys.argv[1:], DEVELOPMENT | HELD_OUT)
