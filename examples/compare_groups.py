# SPDX-License-Identifier: Apache-2.0
"""FSDP on four devices: does it help to gather the next layer's weights as one scheduling group with a layer's product?

    hlotag compare examples/compare_groups.py:step --rules none --rules examples/compare_groups.toml
    hlotag compare examples/compare_groups.py:v5e --rules none --rules examples/compare_groups.toml

The first command runs on four devices of the CPU, whose compiler does not read the key: a control. The second one asks TPU v5e's
compiler, without a TPU: pip install 'jax[tpu]'.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
LAYERS = 3


def gather(w):
    return jax.lax.all_gather(w, "devices", tiled=True)


def forward(weights, x):
    gathered = gather(weights[0])
    for number in range(LAYERS):
        with jax.named_scope(f"layer_{number}"):
            following = gather(weights[number + 1]) if number + 1 < LAYERS else None
            x, gathered = jnp.tanh(x @ gathered), following
    return x


def on(devices, width):
    """The layers on some devices, and the shapes of their arguments."""
    mesh = Mesh(np.array(devices), ("devices",))
    function = jax.shard_map(forward, mesh=mesh, in_specs=P("devices"), out_specs=P("devices"))
    shape = jax.ShapeDtypeStruct((width, width), jnp.float32, sharding=NamedSharding(mesh, P("devices")))
    return function, ([shape] * LAYERS, shape)


def step():
    function, shapes = on(jax.devices(), 256)
    return function, jax.tree.map(lambda s: jax.device_put(jnp.full(s.shape, 0.01), s.sharding), shapes)


def v5e():
    return on(topologies.get_topology_desc("v5e:2x2", platform="tpu").devices, 2048)
