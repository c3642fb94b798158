# SPDX-License-Identifier: Apache-2.0
"""An Equinox model under `vmap`: rules find its linear layers by the library file that makes them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from show import show

import hlotag

RULES = [
    hlotag.Rule({"part": "linear"}, source="*/equinox/nn/_linear.py", grad={"part": "linear_backward"}),
    hlotag.Rule({"part": "optimizer"}, source="*/optax/*"),
]

model = eqx.nn.MLP(in_size=8, out_size=4, width_size=32, depth=2, key=jax.random.key(0))
weights, rest = eqx.partition(model, eqx.is_inexact_array)
optimizer = optax.sgd(1e-2, momentum=0.9)


@jax.jit
def step(weights, state, x, y):
    def loss(weights):
        return ((jax.vmap(eqx.combine(weights, rest))(x) - y) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    updates, state = optimizer.update(gradients, state, weights)
    return optax.apply_updates(weights, updates), state, value


def main():
    x = jax.random.normal(jax.random.key(1), (16, 8))
    show(step, weights, optimizer.init(weights), x, jnp.zeros((16, 4)), rules=RULES)


if __name__ == "__main__":
    main()
