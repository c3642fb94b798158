# SPDX-License-Identifier: Apache-2.0
"""Rematerialization with host offload, for TPU and CPU alike.

Rules tag the transfers between device and host that a policy of `jax.checkpoint` makes.
"""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from show import show

import hlotag

LAYERS, BATCH, WIDTH = 3, 8, 32
RULES = [
    hlotag.Rule({"part": "offload"}, op="custom_call"),
    hlotag.Rule({"part": "mlp"}, scope="mlp", op="dot_general", grad={"part": "mlp_backward"}),
]


def layer(x, weights):
    with jax.named_scope("attention"):
        hidden = checkpoint_name(jnp.tanh(x @ weights["a"]), "offloaded")
    with jax.named_scope("mlp"):
        y = checkpoint_name(hidden @ weights["b"], "kept")
    return x + jax.nn.gelu(y), None


@jax.jit
def step(weights, x):
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["kept"],
        names_which_can_be_offloaded=["offloaded"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def loss(weights):
        y, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, weights)
        return (y**2).mean()

    return jax.value_and_grad(loss)(weights)


def main():
    weights = {name: jnp.full((LAYERS, WIDTH, WIDTH), 0.01) for name in "ab"}
    x = jnp.ones((BATCH, WIDTH))
    with hlotag.stage(rules=RULES):  # No TPU is needed to look at what one would be given.
        for_tpu = step.trace(weights, x).lower(lowering_platforms=("tpu",)).as_text()
    moves = [line for line in for_tpu.splitlines() if "annotate_device_placement" in line]
    tagged = sum('part = "offload"' in move for move in moves)
    print(f"for TPU: {len(moves)} moves between device and host, {tagged} of them tagged")
    show(step, weights, x, rules=RULES)


if __name__ == "__main__":
    main()
