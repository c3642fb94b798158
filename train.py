import jax
import jax.numpy as jnp

import hlotag

FORWARD, BACKWARD = {"_scheduling_group_id": "1"}, {"_scheduling_group_id": "2"}

def loss(w, x):
    y = hlotag.tag(x @ w, FORWARD)
    return jnp.tanh(y).sum()

def step():
    return jax.grad(loss), (jnp.ones((4, 4)), jnp.ones((2, 4)))
