# SPDX-License-Identifier: Apache-2.0
"""Train steps on four devices: data, tensor and pipeline parallel, and with sharded parameters.

Each under `shard_map`, with collectives of its own, and under `jit` with shardings, where XLA's partitioner makes them.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

N = 4
BATCH, WIDTH, HIDDEN = 16, 20, (44, 52)
SHAPES = [((WIDTH, hidden), (hidden, WIDTH)) for hidden in HIDDEN]
STAGES = (N, WIDTH, HIDDEN[0]), (N, HIDDEN[0], WIDTH)

# A function of parameters, inputs and targets, the shapes of parameters, and how these are sharded.
Program = tuple[Callable[..., Any], Any, Any]


def _layer(x, up, down):
    return x + jax.nn.gelu(x @ up) @ down


def _loss(parameters, x, y):
    for up, down in parameters:
        x = _layer(x, up, down)
    return jnp.square(x - y).mean()


def _updated(parameters, gradients):
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def _step(loss):
    def step(parameters, x, y):
        value, gradients = jax.value_and_grad(loss)(parameters, x, y)
        return _updated(parameters, gradients), value

    return step


def _mapped(body, mesh, specs, data) -> Callable[..., Any]:
    return jax.shard_map(body, mesh=mesh, in_specs=(specs, data, data), out_specs=(specs, P()))


def _data_shard_map(mesh: Mesh) -> Program:
    def body(parameters, x, y):
        varying = jax.tree.map(lambda p: lax.pcast(p, "i", to="varying"), parameters)
        value, gradients = jax.value_and_grad(_loss)(varying, x, y)
        return _updated(parameters, jax.tree.map(lambda g: lax.pmean(g, "i"), gradients)), lax.pmean(value, "i")

    specs = [(P(), P())] * 2
    return _mapped(body, mesh, specs, P("i")), SHAPES, specs


def _tensor_shard_map(mesh: Mesh) -> Program:
    def loss(parameters, x, y):
        for up, down in parameters:
            x = x + lax.psum(jax.nn.gelu(x @ up) @ down, "i")
        return jnp.square(x - y).mean()

    specs = [(P(None, "i"), P("i"))] * 2
    return _mapped(_step(loss), mesh, specs, P()), SHAPES, specs


def _sharded_shard_map(mesh: Mesh) -> Program:
    def loss(parameters, x, y):
        return _loss(jax.tree.map(lambda p: lax.all_gather(p, "i", tiled=True), parameters), x, y)

    def body(parameters, x, y):
        parameters, value = _step(loss)(parameters, x, y)
        return parameters, lax.pmean(value, "i")

    specs = [(P("i"), P("i"))] * 2
    return _mapped(body, mesh, specs, P("i")), SHAPES, specs


def _sharded_jit(mesh: Mesh) -> Program:
    def step(parameters, x, y):
        parameters, value = _step(_loss)(parameters, x, y)
        return lax.with_sharding_constraint(parameters, NamedSharding(mesh, P("i"))), value

    return step, SHAPES, [(P("i"), P("i"))] * 2


def _pipeline_shard_map(mesh: Mesh) -> Program:
    """A stage on each device, which hands its result to the next."""

    def loss(parameters, x, y):
        up, down = (p[0] for p in parameters)
        index = lax.axis_index("i")
        parts = x.reshape(N, BATCH // N, WIDTH)

        def tick(carry, t):
            state, out = carry
            state = _layer(jnp.where(index == 0, parts[jnp.minimum(t, N - 1)], state), up, down)
            out = jnp.where(index == N - 1, out.at[jnp.maximum(t - N + 1, 0)].set(state), out)
            return (lax.ppermute(state, "i", [(i, (i + 1) % N) for i in range(N)]), out), None

        start = lax.pcast((jnp.zeros((BATCH // N, WIDTH)), jnp.zeros((N, BATCH // N, WIDTH))), "i", to="varying")
        (_, out), _ = lax.scan(tick, start, jnp.arange(2 * N - 1))
        return lax.psum(jnp.where(index == N - 1, jnp.square(out.reshape(BATCH, WIDTH) - y).mean(), 0.0), "i")

    specs = P("i"), P("i")
    return _mapped(_step(loss), mesh, specs, P()), STAGES, specs


def _pipeline_jit(mesh: Mesh) -> Program:
    """All stages at once, in a dimension that is sharded."""

    def loss(parameters, x, y):
        parts = x.reshape(N, BATCH // N, WIDTH)

        def tick(state, t):
            state = lax.with_sharding_constraint(state.at[0].set(parts[jnp.minimum(t, N - 1)]), NamedSharding(mesh, P("i")))
            state = jax.vmap(_layer)(state, *parameters)
            return jnp.roll(state, 1, axis=0), state[N - 1]

        _, out = lax.scan(tick, jnp.zeros((N, BATCH // N, WIDTH)), jnp.arange(2 * N - 1))
        return jnp.square(out[N - 1 :].reshape(BATCH, WIDTH) - y).mean()

    return _step(loss), STAGES, (P("i"), P("i"))


PROGRAMS: dict[str, Callable[[Mesh], Program]] = {
    "data shard_map": _data_shard_map,
    "data jit": lambda _: (_step(_loss), SHAPES, [(P(), P())] * 2),
    "tensor shard_map": _tensor_shard_map,
    "tensor jit": lambda _: (_step(_loss), SHAPES, [(P(None, "i"), P("i"))] * 2),
    "sharded shard_map": _sharded_shard_map,
    "sharded jit": _sharded_jit,
    "pipeline shard_map": _pipeline_shard_map,
    "pipeline jit": _pipeline_jit,
}


def lower(name: str, devices: tuple[Any, ...]) -> Any:
    """A program, as `jax.jit(...).lower` gives it for four devices."""
    mesh = Mesh(np.array(devices), ("i",))
    step, shapes, specs = PROGRAMS[name](mesh)

    def argument(shape: tuple[int, ...], spec: P) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    parameters = jax.tree.map(argument, shapes, specs, is_leaf=lambda s: isinstance(s, tuple) and isinstance(s[0], int))
    data = argument((BATCH, WIDTH), P("i") if name.startswith(("data", "sharded")) else P())
    return jax.jit(step).lower(parameters, data, data)
