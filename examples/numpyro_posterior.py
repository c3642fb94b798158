# SPDX-License-Identifier: Apache-2.0
"""A NumPyro model: the gradient of its log density, as a sampler asks for it.

The densities of its sites have different tags.
"""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer.util import potential_energy
from show import show

import hlotag

RULES = [
    hlotag.Rule({"part": "density"}, source="*/numpyro/distributions/continuous.py", grad={"part": "score"}),
    hlotag.Rule({"part": "transform"}, source="*/numpyro/distributions/transforms.py"),
]


def model(x, y):
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.StudentT(5.0, x @ weights, scale), obs=y)


@jax.jit
def step(parameters, x, y):
    return jax.value_and_grad(lambda p: potential_energy(model, (x, y), {}, p))(parameters)


def main():
    x = jax.random.normal(jax.random.key(0), (64, 3))
    show(step, {"weights": jnp.zeros(3), "scale": jnp.zeros(())}, x, x @ jnp.array([1.0, 2.0, 3.0]), rules=RULES)


if __name__ == "__main__":
    main()
