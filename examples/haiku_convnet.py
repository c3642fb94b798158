# SPDX-License-Identifier: Apache-2.0
"""A Haiku convolutional network, tagged by rules.

Haiku's module names are scopes, so rules follow them into the backward pass.
"""

import haiku as hk
import jax
from show import show

import hlotag

RULES = [
    hlotag.Rule({"part": "convolution"}, scope="conv2_d", grad={"part": "convolution_backward"}),
    hlotag.Rule({"part": "pool"}, scope="avg_pool", grad="drop"),
    hlotag.Rule({"part": "mlp"}, scope="*mlp*"),
]


@hk.without_apply_rng
@hk.transform
def network(images):
    layers = [hk.Conv2D(8, 3), jax.nn.relu, hk.AvgPool(2, 2, "SAME"), hk.Flatten(), hk.nets.MLP([32, 4])]
    return hk.Sequential(layers)(images)


@jax.jit
def step(parameters, images):
    return jax.value_and_grad(lambda p: (network.apply(p, images) ** 2).mean())(parameters)


def main():
    images = jax.random.normal(jax.random.key(1), (4, 8, 8, 1))
    show(step, network.init(jax.random.key(0), images), images, rules=RULES)


if __name__ == "__main__":
    main()
