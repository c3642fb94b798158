# SPDX-License-Identifier: Apache-2.0
"""How much of a step does time by tag put into a wrong part? All programs of the tests, and five of other libraries.

    python benchmarks/profile_truth.py [NAME ...]

The truth is that of `tests/time_truth.py`. The other libraries are those of the extra `examples`.

  wrong     in a part or phase other than the truth's
  vanished  idle, although an instruction ran
  untold    not judged: XLA made the instruction, or names do not tell
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import jax
import jax.numpy as jnp

from time_programs import PROGRAMS, Program, random
from time_programs_new import NEW, OF_LIBRARIES
from time_truth import judge_program, part, show


def flax_transformer() -> Program:
    """Flax's attention and norms, each module a part, trained by optax's AdamW."""
    import optax
    from flax import linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
            return x + nn.Dense(128)(nn.gelu(nn.Dense(512)(nn.LayerNorm()(x))))

    model = nn.Sequential([Block(), Block(), nn.Dense(64)])
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def named(call: Callable[..., Any], arguments: Any, options: Any, context: nn.module.InterceptorContext) -> Any:
        with part(type(context.module).__name__.lower()):
            return call(*arguments, **options)

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        with nn.intercept_methods(named):
            logits: Any = model.apply(weights, x)
        with part("loss"):
            return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.zeros(logits.shape[:-1], int)).mean()

    def step(weights: Any, state: Any, x: jax.Array) -> Any:
        grads = jax.grad(loss)(weights, x)
        with part("optimizer"):
            updates, state = optimizer.update(grads, state, weights)
            return optax.apply_updates(weights, updates), state

    x = random(4, 64, 128)
    weights = model.init(jax.random.key(0), x)
    return step, (weights, optimizer.init(weights), x)


def flax_recurrent() -> Program:
    """Flax's LSTM in a loop, and its convolution and pool."""
    from flax import linen as nn

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            with part("conv"):
                x = nn.relu(nn.Conv(32, (5,))(x))
            with part("pool"):
                x = nn.avg_pool(x, (2,), (2,))
            with part("lstm"):
                x = nn.RNN(nn.OptimizedLSTMCell(64))(x)
            with part("head"):
                return nn.Dense(8)(x)

    model, x = Model(), random(16, 64, 8)
    weights = model.init(jax.random.key(0), x)
    return jax.grad(lambda weights, x: jnp.square(jnp.asarray(model.apply(weights, x))).mean()), (weights, x)


def haiku_resnet() -> Program:
    """Haiku's residual network; each kind of module is a part."""
    import haiku as hk

    def forward(x: Any) -> Any:
        blocks = {"blocks_per_group": (1, 1, 1, 1), "bottleneck": False, "channels_per_group": (8, 16, 16, 32)}
        return hk.nets.ResNet(num_classes=8, **blocks, use_projection=(True,) * 4)(x, is_training=True)

    def named(call: Callable[..., Any], arguments: Any, options: Any, context: hk.MethodContext) -> Any:
        with part(type(context.module).__name__.lower()):
            return call(*arguments, **options)

    model = hk.transform_with_state(forward)
    x = random(4, 32, 32, 3)
    weights, state = model.init(jax.random.key(0), x)

    def loss(weights: Any, state: Any, x: jax.Array) -> jax.Array:
        with hk.intercept_methods(named):
            logits, _ = model.apply(weights, state, None, x)
        with part("loss"):
            return jax.nn.logsumexp(logits, axis=-1).mean()

    return jax.grad(loss), (weights, state, x)


def equinox_attention() -> Program:
    """Equinox's modules, which are batched by `vmap`."""
    import equinox as eqx

    keys = jax.random.split(jax.random.key(0), 3)
    attention = eqx.nn.MultiheadAttention(4, 64, key=keys[0])
    mlp = eqx.nn.MLP(64, 64, 256, 2, key=keys[1])
    norm = eqx.nn.LayerNorm(64)
    weights, static = eqx.partition((attention, mlp, norm), eqx.is_array)

    def loss(weights: Any, x: jax.Array, key: jax.Array) -> jax.Array:
        attention, mlp, norm = eqx.combine(weights, static)

        def forward(x: jax.Array) -> jax.Array:
            with part("norm"):
                hidden = jax.vmap(norm)(x)
            with part("attention"):
                x = x + attention(hidden, hidden, hidden)
            with part("dropout"):
                x = eqx.nn.Dropout(0.1)(x, key=key)
            with part("mlp"):
                return x + jax.vmap(mlp)(x)

        y = jax.vmap(forward)(x)
        with part("loss"):
            return jnp.abs(y).mean()

    return jax.grad(loss), (weights, random(16, 64, 64), jax.random.key(1))


def numpyro_inference() -> Program:
    """A step of NumPyro's variational inference in a regression."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    def model(x: jax.Array, y: jax.Array) -> None:
        w = numpyro.sample("w", dist.Normal(jnp.zeros(256), 1.0).to_event(1))
        scale = numpyro.sample("scale", dist.Gamma(2.0, 2.0))
        with part("mean"):
            mean = jnp.tanh(x @ jnp.asarray(w))
        with part("likelihood"):
            numpyro.sample("y", dist.StudentT(4.0, mean, scale).to_event(1), obs=y)

    guide = AutoNormal(model)

    def guided(x: jax.Array, y: jax.Array) -> Any:
        with part("guide"):
            return guide(x, y)

    inference = SVI(model, guide, numpyro.optim.Adam(0.01), Trace_ELBO(num_particles=4))
    x, y = random(4096, 256), random(4096, seed=1)
    state = inference.init(jax.random.key(0), x, y)
    inference.guide = guided
    return inference.update, (state, x, y)


OTHERS: dict[str, Callable[[], Program]] = {
    made.__name__: made for made in (flax_transformer, flax_recurrent, haiku_resnet, equinox_attention, numpyro_inference)
}


def main() -> None:
    """Prints a line for each program."""
    programs = {**PROGRAMS, **NEW, **OF_LIBRARIES, **OTHERS}
    for name in sys.argv[1:] or programs:
        with tempfile.TemporaryDirectory() as folder:
            print(show(name, judge_program(programs[name], Path(folder))), flush=True)


if __name__ == "__main__":
    main()
