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


# Layers with weights of their own.
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
    for name, program in PROGRAMS.items():
        if not names or any(part in name for part in names):
            for by in ("kind", "line"):
                found = measure(program, by)
                shares = f"{found.total:7}{found.recall:8.1%} right{found.products_missed:7} products missed{found.wrong:7} wrong"
                print(f"{name:44}{by:6}{shares}")


if __name__ == "__main__":
    main(sys.argv[1:])
