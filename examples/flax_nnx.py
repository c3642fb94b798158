# SPDX-License-Identifier: Apache-2.0
"""A Flax (NNX) model, tagged by scopes and by the library file that an operation comes from.

NNX writes no scopes of its own. `jax.named_scope` marks the parts that a rule should tell apart, and
`source` finds the rest.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from show import show

import hlotag

RULES = [
    hlotag.Rule({"part": "up"}, scope="up", grad={"part": "up_backward"}),
    hlotag.Rule({"part": "normalization"}, source="*/flax/nnx/nn/normalization.py"),
    hlotag.Rule({"part": "optimizer"}, source="*/optax/*"),
]


class MLP(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(8, 32, rngs=rngs)
        self.normalization = nnx.LayerNorm(32, rngs=rngs)
        self.down = nnx.Linear(32, 4, rngs=rngs)

    def __call__(self, x):
        with jax.named_scope("up"):
            hidden = self.up(x)
        return self.down(nnx.gelu(self.normalization(hidden)))


graph, weights = nnx.split(MLP(nnx.Rngs(0)))
optimizer = optax.adam(1e-3)


@jax.jit
def step(weights, state, x, y):
    def loss(weights):
        return ((nnx.merge(graph, weights)(x) - y) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    updates, state = optimizer.update(gradients, state, weights)
    return optax.apply_updates(weights, updates), state, value


def main():
    x = jax.random.normal(jax.random.key(0), (16, 8))
    show(step, weights, optimizer.init(weights), x, jnp.zeros((16, 4)), rules=RULES)


if __name__ == "__main__":
    main()
