# SPDX-License-Identifier: Apache-2.0
"""Programs for measuring how much of what autodiff derived is found.

`python tests/derivative_programs.py [program ...]` prints the shares.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import programs
from ground_truth import Program, array, measure

X, W, V = array(4, 8), array(8, 8, seed=1), array(8, 8, seed=2)
IMAGE, KERNEL = array(2, 3, 8, 8, seed=4), array(3, 3, 3, 3, seed=5)


def hessian_vector(function: Callable[..., Any]) -> Callable[..., Any]:
    """Forward over reverse, of the first argument."""
    return lambda x, *rest: jax.jvp(lambda x: jax.grad(function)(x, *rest), (x,), (x,))[1]


def second_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Reverse over reverse, of the first argument."""
    return jax.grad(lambda *args: (jax.grad(function)(*args) ** 2).sum())


def each(function: Callable[..., Any]) -> Callable[..., Any]:
    """vmap(grad) over the first argument."""
    return lambda x, *rest: jax.vmap(jax.grad(function), in_axes=(0,) + (None,) * len(rest))(jnp.stack([x, x]), *rest)


def of_batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """grad(vmap) over the first argument."""
    return jax.grad(lambda x, *rest: jax.vmap(function, in_axes=(0,) + (None,) * len(rest))(jnp.stack([x, x]), *rest).sum())


def everything(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jax.grad(function, argnums=tuple(range(len(args))))(*args)


def with_value(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jax.value_and_grad(function, argnums=tuple(range(len(args))))(*args)


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


TRANSFORMS = {
    cross_entropy: (everything, each, hessian_vector),
    residual_tower: (everything, of_batch, second_gradient),
    lstm: (everything, each, second_gradient),
    image_classifier: (everything, of_batch),
    euler: (everything, hessian_vector),
    routed: (everything, with_value),
    quotients: (hessian_vector, second_gradient),
    **dict.fromkeys((squares, conditional_loop), (everything,)),
    online_softmax: (with_value,),
}
OTHERS = {
    f"{f.__name__}, {transform.__name__}": Program(f, (IMAGE, KERNEL) if f is image_classifier else (X, W, V), transform)
    for f, transforms in TRANSFORMS.items()
    for transform in transforms
}


# --- Transformers, each layer with weights of its own --------------------------------------------------------------------------

TOKENS, EMBEDDING = np.array([1, 0, 3, 2]), array(6, 8, seed=99)


def weights(layers: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(array(8, 8, seed=i), array(8, seed=i)) for i in range(layers)]


def loss_of(x: Any, embedding: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x @ embedding.T), TOKENS[:, None], axis=1).mean()


def small_layers(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return (x**2).mean()


def deep(remat: bool = False) -> Program:
    """Twelve layers of a Python loop, each in a scope of its own."""
    layer = jax.checkpoint(programs.layer) if remat else programs.layer

    def loss(params, embedding):
        x = embedding[TOKENS]
        for i, (w, b) in enumerate(params):
            with jax.named_scope(f"layer_{i}"):
                x = layer(x, w, b)
        return loss_of(x, embedding)

    return Program(loss, (weights(12), EMBEDDING))


def scanned(unroll: int = 1, **checkpoint: Any) -> Program:
    """A loop over layers, as large models have. JAX repeats the frames of its function in what the loop is written out as."""
    layer = jax.checkpoint(programs.layer, prevent_cse=False, **checkpoint) if checkpoint else programs.layer

    def model(params, embedding):
        return lax.scan(lambda x, p: (layer(x, *p), None), embedding[TOKENS], params, unroll=unroll)[0]

    def loss(params, embedding):
        return loss_of(model(params, embedding), embedding)

    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *weights(6))
    return Program(loss, (stacked, EMBEDDING), runs_repeatedly=unroll > 1)


BUT_PRODUCTS = jax.checkpoint_policies.dots_saveable
PROGRAMS = {
    "deep transformer": deep(),
    "deep transformer, remat": deep(remat=True),
    "scan": scanned(),
    "scan, unrolled": scanned(unroll=3),
    "scan, remat": scanned(policy=None),
    "scan, remat but for products": scanned(policy=BUT_PRODUCTS),
    "scan, remat, unrolled": scanned(unroll=3, policy=None),
    "scan, remat but for products, unrolled": scanned(unroll=3, policy=BUT_PRODUCTS),
    **{name: Program(*case, programs.TRANSFORMS["grad"]) for name, case in programs.PROGRAMS.items()},
    "mlp, grad_vmap": Program(*programs.PROGRAMS["mlp"], programs.TRANSFORMS["grad_vmap"]),
    "small layers, hessian": Program(small_layers, (weights(2), X), jax.hessian),
}


def main(names: list[str]) -> None:
    for name, program in (PROGRAMS | OTHERS).items():
        if not names or any(part in name for part in names):
            for by in ("kind", "line"):
                found = measure(program, by)
                shares = f"{found.total:7}{found.recall:8.1%} right{found.products_missed:7} products missed{found.wrong:7} wrong"
                print(f"{name:44}{by:6}{shares}")


if __name__ == "__main__":
    main(sys.argv[1:])
