# SPDX-License-Identifier: Apache-2.0
"""Tensor and data parallelism on 8 host devices, with collectives that a rule tags.

`jit` shards the layers, and one block is a `shard_map`.
"""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from show import show

import hlotag

RULES = [
    hlotag.Rule({"part": "reduction"}, op="all_reduce", grad={"part": "reduction_backward"}),
    hlotag.Rule({"part": "up"}, scope="up", grad={"part": "up_backward"}),
]
mesh = jax.make_mesh((2, 4), ("data", "model"))


@jax.shard_map(mesh=mesh, in_specs=(P("data", "model"), P("model", None)), out_specs=P("data", None))
def down(hidden, weights):
    return jax.lax.psum(hidden @ weights, "model")


@jax.jit
def step(weights, x):
    def loss(weights):
        with jax.named_scope("up"):
            hidden = jax.nn.relu(x @ weights["up"])
        return (down(hidden, weights["down"]) ** 2).mean()

    return jax.value_and_grad(loss)(weights)


def main():
    def put(value, *spec):
        return jax.device_put(value, NamedSharding(mesh, P(*spec)))

    key = jax.random.key(0)
    weights = {
        "up": put(jax.random.normal(key, (16, 32)), None, "model"),
        "down": put(jax.random.normal(key, (32, 16)), "model", None),
    }
    show(step, weights, put(jax.random.normal(key, (8, 16)), "data", None), rules=RULES)


if __name__ == "__main__":
    main()
