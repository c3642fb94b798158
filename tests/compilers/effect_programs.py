# SPDX-License-Identifier: Apache-2.0
"""Small programs for each key that compilers for GPU and TPU read, beside those of `key_probes.py`."""

from functools import partial

import jax
import jax.numpy as jnp
import key_probes
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import block, mapped

GROUP = {"_scheduling_group_id": "7"}
OFFLOADING = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"], offload_src="device", offload_dst="pinned_host"
)


@hlotag.xla_metadata_call(_xla_stream_annotation="1", inlineable="false", **GROUP)
def streamed_product(x, w):
    return x @ w


def group_with_stream(*arrays):
    return key_probes.layers(*arrays, gather=GROUP, multiply=streamed_product)


def broken_group(x, *weights):
    """A product outside of the group needs one of its products, and another needs that one."""

    def run(x, first, second, _):
        with block(**GROUP):
            gathered = jax.lax.all_gather(second, "i", tiled=True)
            hidden = x @ first
        between = jnp.tanh(hidden) @ first
        with block(**GROUP):
            return between @ gathered

    return mapped(run, key_probes.LAYERS, P("i"))(x, *weights)


def gradient(metadata, derived):
    """The gradient of a call with metadata, and with other metadata for the calls that autodiff derives."""
    activation = hlotag.xla_metadata_call2(lambda x: jnp.tanh(x) * x, metadata, ad_metadata=derived)
    return jax.value_and_grad(lambda x: activation(x).sum())


def offloaded(x, w):
    @partial(jax.checkpoint, policy=OFFLOADING)
    def layer(x, w):
        return jnp.sin(checkpoint_name(jnp.tanh(x @ w), "hidden") @ w), None

    return jax.grad(lambda w: jax.lax.scan(layer, x, w)[0].sum())(w)


def offloaded_at_once(x, weights):
    """Layers of a Python loop, whose activations wait in the host's memory."""

    @partial(jax.checkpoint, policy=OFFLOADING)
    def layer(x, w):
        return x + jax.nn.silu(checkpoint_name(jnp.tanh(x @ w), "hidden") @ w) @ w

    def loss(weights):
        y = x
        for w in weights:
            y = layer(y, w)
        return jnp.square(y).mean()

    return jax.grad(loss)(list(weights))


def gather_and_product(a, b, x):
    """A gather beside a product, and their gradients in another group."""
    grouped = partial(hlotag.tag, attrs=GROUP, grad={"_scheduling_group_id": "8"})

    def loss(a, b, x):
        gathered = grouped(jax.lax.all_gather(b, "i", tiled=True))
        return jax.lax.pmean((jnp.tanh(grouped(x @ a)) @ gathered).sum(), "i")

    return jax.value_and_grad(mapped(loss, (P(), P("i"), P("i")), P()), argnums=(0, 1))(a, b, x)


def product_and_gradient(w, x):
    """The step of the README."""
    y = partial(hlotag.tag, attrs={"_scheduling_group_id": "1"}, grad={"_scheduling_group_id": "2"})
    return jax.grad(lambda w, x: jnp.tanh(y(x @ w)).sum(), (0, 1))(w, x)


def sharded_layers(*weights_and_x):
    """Each layer's weights are gathered while the layer before computes: a group for each."""

    def forward(*weights_and_x):
        *weights, x = weights_and_x
        current = jax.lax.all_gather(weights[0], "i", tiled=True)
        for number, shard in enumerate(weights[1:]):
            with block(_scheduling_group_id=str(number)):
                following = jax.lax.all_gather(shard, "i", tiled=True)
                x = x @ current
            x, current = jnp.tanh(x), following
        return jnp.square((x @ current).astype(jnp.float32)).mean()

    return mapped(jax.grad(forward, (0, 1, 2)), (P("i"),) * 4, (P("i"),) * 3)(*weights_and_x)


def gather_after_its_product(a, w, x):
    def run(a, w, x):
        with block(**GROUP):
            gathered, hidden = jax.lax.all_gather(a, "i", tiled=True), x @ w
        return jnp.tanh(hidden) @ gathered

    return mapped(run, (P("i"), P(), P("i")), P("i"))(a, w, x)


def two_calls_in_a_row(w, x):
    call = hlotag.xla_metadata_call(lambda x, w: jnp.tanh(x @ w), _xla_stream_annotation="1", inlineable="false")
    return call(call(x, w[0]), w[1]).sum()


def host_with_two_results(w, x, m):
    @hlotag.xla_metadata_call(_xla_compute_type="host")
    def update(w, m, gradient):
        m = 0.9 * m + gradient
        return w - 0.1 * m, m

    gradient = jnp.tanh(x).T @ x
    return *update(w, m, gradient), gradient.sum()
