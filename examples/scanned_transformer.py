# SPDX-License-Identifier: Apache-2.0
"""A transformer whose layers are one `lax.scan` with rematerialization, as MaxText builds them.

Its scheduling groups differ between the forward and the backward pass. Without hlotag that needs a
`custom_vjp` around each projection. Here each group is one line in the model, and a rule tags the
attention core.
"""

import jax
import jax.numpy as jnp
from show import show

import hlotag

LAYERS, BATCH, LENGTH, HEADS, WIDTH = 4, 2, 16, 4, 32
RULES = [hlotag.Rule({"part": "attention"}, scope="attention/core")]


def in_groups(value, forward, backward):
    return hlotag.tag(value, {"_scheduling_group_id": str(forward)}, grad={"_scheduling_group_id": str(backward)})


def normalize(x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


@jax.named_scope("attention")
def attention(x, weights):
    q, k, v = jnp.split(in_groups(normalize(x) @ weights["qkv"], 40, 50), 3, -1)
    q, k, v = (a.reshape(BATCH, LENGTH, HEADS, -1) for a in (q, k, v))
    with jax.named_scope("core"):
        context = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    return in_groups(context @ weights["out"], 41, 51)


@jax.named_scope("mlp")
def mlp(x, weights):
    hidden = jax.nn.silu(in_groups(normalize(x) @ weights["up"], 42, 52))
    return in_groups(hidden @ weights["down"], 43, 53)


def layer(x, weights):
    x = x + attention(x, weights)
    return x + mlp(x, weights), None


def loss(weights, x):
    policy = jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims
    x, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, weights)
    return (normalize(x) ** 2).mean()


step = jax.jit(jax.value_and_grad(loss))


def main():
    sizes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    key = jax.random.key(0)
    weights = {name: jax.random.normal(key, (LAYERS, *size)) * 0.1 for name, size in sizes.items()}
    show(step, weights, jax.random.normal(key, (BATCH, LENGTH, WIDTH)), rules=RULES)


if __name__ == "__main__":
    main()
