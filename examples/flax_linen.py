# SPDX-License-Identifier: Apache-2.0
"""A Flax (Linen) transformer with an Optax optimizer, tagged by rules: the model stays as it is.

Linen puts a scope with the module's name around every call. So a rule finds `SelfAttention_0`, or a
Dense named `up`, by scope.
"""

import flax.linen as nn
import jax
import optax
from show import show

import hlotag

VOCABULARY, WIDTH, LAYERS = 32, 16, 2
RULES = [
    hlotag.Rule({"part": "attention"}, scope="SelfAttention_*", grad={"part": "attention_backward"}),
    hlotag.Rule({"part": "up"}, scope="up", op="dot_general"),
    hlotag.Rule({"part": "optimizer"}, source="*/optax/*"),
]


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x + nn.SelfAttention(num_heads=2)(nn.LayerNorm()(x))
        hidden = nn.gelu(nn.Dense(4 * WIDTH, name="up")(nn.LayerNorm()(x)))
        return x + nn.Dense(WIDTH, name="down")(hidden)


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(VOCABULARY, WIDTH)(tokens)
        for _ in range(LAYERS):
            x = Block()(x)
        return nn.Dense(VOCABULARY, name="head")(x)


model, optimizer = Model(), optax.adamw(1e-3)


@jax.jit
def step(parameters, state, tokens):
    def loss(parameters):
        logits = model.apply(parameters, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()

    value, gradients = jax.value_and_grad(loss)(parameters)
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


def main():
    tokens = jax.random.randint(jax.random.key(1), (4, 8), 0, VOCABULARY)
    parameters = model.init(jax.random.key(0), tokens)
    show(step, parameters, optimizer.init(parameters), tokens, rules=RULES)


if __name__ == "__main__":
    main()
