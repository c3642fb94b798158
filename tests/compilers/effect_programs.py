# SPDX-License-Identifier: Apache-2.0
"""Small programs for each key that compilers for GPU and TPU read."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import block, mapped

Program = Callable[..., Any]


def layers(x, first, second, third, *, product: Program, group: dict[str, str]):
    """Two layers and a projection, with sharded weights: the second one's are gathered while the first one computes."""
    with block(**group):
        gathered = jax.lax.all_gather(second, "i", tiled=True)
    hidden = jnp.tanh(product(x, first))
    last = jax.lax.all_gather(third, "i", tiled=True)
    return jnp.tanh(hidden @ gathered) @ last


GROUP = {"_scheduling_group_id": "7"}
LAYERS = ((P("i"), P(), P("i"), P("i")), P("i"))


def plain_product(x, w):
    with block(**GROUP):
        return x @ w


@hlotag.xla_metadata_call(_xla_stream_annotation="1", inlineable="false", **GROUP)
def streamed_product(x, w):
    return x @ w


def group(x, *weights):
    return mapped(partial(layers, product=plain_product, group=GROUP), *LAYERS)(x, *weights)


def group_with_stream(x, *weights):
    return mapped(partial(layers, product=streamed_product, group=GROUP), *LAYERS)(x, *weights)


def broken_group(x, *weights):
    """A product outside of the group needs one of its products, and another needs that one."""

    def run(x, first, second, _):
        with block(**GROUP):
            gathered = jax.lax.all_gather(second, "i", tiled=True)
            hidden = x @ first
        between = jnp.tanh(hidden) @ first
        with block(**GROUP):
            return between @ gathered

    return mapped(run, *LAYERS)(x, *weights)


def gradient(metadata: dict[str, str], derived: Any) -> Program:
    """The gradient of a call with metadata, and with other metadata for the calls that autodiff derives."""
    activation = hlotag.xla_metadata_call2(lambda x: jnp.tanh(x) * x, metadata, ad_metadata=derived)
    return jax.value_and_grad(lambda x: activation(x).sum())


def called(**attrs: str) -> Program:
    """A call with the tags, between operations without."""

    @hlotag.xla_metadata_call(**attrs)
    def inner(x, w):
        return jnp.tanh(x @ w)

    def run(x, w):
        y = jnp.sin(x)
        return inner(y, w) + jnp.cos(y @ y)

    return run


def pointwise(**attrs: str) -> Program:
    def run(x):
        y = jnp.sin(x)
        with block(**attrs):
            z = jnp.tanh(y)
        return jnp.exp(z) + 1

    return run


def sums(x, y):
    def both(x, y):
        a = jax.lax.psum(jnp.sin(x), "i")
        with block(combiner_key="a"):
            return a, jax.lax.psum(jnp.cos(y), "i")

    return mapped(both, (P("i"), P("i")), (P(), P()))(x, y)


def once(x):
    with block(**{"skip-simplify-while-loops_trip-count-one": "true"}):
        return jax.lax.fori_loop(0, 1, lambda _, y: jnp.sin(y @ y), x)


def often(x):
    with block(_xla_loop_unroll_strategy="full"):
        return jax.lax.fori_loop(0, 8, lambda _, y: jnp.sin(y @ y), x)


def offloaded(x, w):
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"], offload_src="device", offload_dst="pinned_host"
    )

    def layer(x, w):
        return jnp.sin(checkpoint_name(jnp.tanh(x @ w), "hidden") @ w), None

    return jax.grad(lambda w: jax.lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].sum())(w)


def gather_and_product(a, b, x):
    """A gather beside a product, and their gradients in another group."""
    groups = {"attrs": GROUP, "grad": {"_scheduling_group_id": "8"}}

    def loss(a, b, x):
        gathered = hlotag.tag(jax.lax.all_gather(b, "i", tiled=True), **groups)
        hidden = hlotag.tag(x @ a, **groups)
        return jax.lax.pmean((jnp.tanh(hidden) @ gathered).sum(), "i")

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


def offloaded_at_once(x, weights):
    """Layers of a Python loop, whose activations wait in the host's memory."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"], offload_src="device", offload_dst="pinned_host"
    )

    def layer(x, w):
        return x + jax.nn.silu(checkpoint_name(jnp.tanh(x @ w), "hidden") @ w) @ w

    def loss(weights):
        y = x
        for w in weights:
            y = jax.checkpoint(layer, policy=policy)(y, w)
        return jnp.square(y).mean()

    return jax.grad(loss)(list(weights))
