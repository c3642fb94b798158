# SPDX-License-Identifier: Apache-2.0
"""What XLA's compilers for GPU and TPU obey: the rows of docs/effects.md, a small program for each key."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import FOUR, KINDS, ONE, Compiler, block, is_here, mapped
from hlotag.audit import Effect

PLATFORM = os.environ["HLOTAG_COMPILERS"]
X = np.ones((512, 512), np.float32)
LARGE = np.ones((2048, 2048), np.float32)

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


# With jax 0.10.2, the compiler makes one fusion of both calls.
ONE_ID = (False, "operations in 2 instructions") if jax.__version_info__ >= (0, 12) else (True, "operations in ")


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
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def layer(x, w):
        return jnp.sin(checkpoint_name(jnp.tanh(x @ w), "hidden") @ w), None

    return jax.grad(lambda w: jax.lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].sum())(w)


WEIGHTS = np.ones((3, 512, 512), np.float32)
NOT_READ, NOT_SEEN = "does not read it", "was not seen to read it"

# By name: devices, the program, its arguments, and by compiler and key whether it obeys, with a part of what is said.
ROWS: dict[str, tuple[int, Program, tuple[Any, ...], dict[str, dict[str, tuple[bool | None, str]]]]] = {
    "group": (
        FOUR,
        group,
        (LARGE,) * 4,
        {
            "gpu": {"_scheduling_group_id=7": (False, "XLA removed the key from")},
            "tpu": {"_scheduling_group_id=7": (True, "beside async-collective-start")},
        },
    ),
    "group with a stream": (
        FOUR,
        group_with_stream,
        (LARGE,) * 4,
        {
            "gpu": {
                "_scheduling_group_id=7": (True, "call-start, call-done beside all-gather-start"),
                "_xla_stream_annotation=1": (True, "stream 1: call-start to call-done"),
                "inlineable=false": (True, "is a call"),
            },
            "tpu": {
                "_scheduling_group_id=7": (True, "beside async-collective-start"),
                "_xla_stream_annotation=1": (None, NOT_READ),
            },
        },
    ),
    "stream": (
        ONE,
        called(_xla_stream_annotation="1", inlineable="false"),
        (X, X),
        {
            "gpu": {"_xla_stream_annotation=1": (True, "beside gemm_fusion_dot.1")},
            "tpu": {"_xla_stream_annotation=1": (None, NOT_READ)},
        },
    ),
    "stream of a call that is inlined": (
        ONE,
        called(_xla_stream_annotation="1"),
        (X, X),
        {
            "gpu": {"_xla_stream_annotation=1": (False, "inlineable='false'")},
            "tpu": {"_xla_stream_annotation=1": (None, NOT_READ)},
        },
    ),
    "host": (
        ONE,
        pointwise(_xla_compute_type="host"),
        (X,),
        {name: {"_xla_compute_type=host": (True, "on the host, run by host-call")} for name in ("gpu", "tpu")},
    ),
    "offload": (
        ONE,
        offloaded,
        (X, WEIGHTS),
        {
            name: {
                "_xla_buffer_placement=pinned_host": (True, "1 move into the host's memory (S(5))"),
                "_xla_buffer_placement=device": (True, "1 move out of the host's memory (S(5))"),
            }
            for name in ("gpu", "tpu")
        },
    ),
    "must fuse": (
        ONE,
        called(MUST_FUSE="a"),
        (X, X),
        {"gpu": {"MUST_FUSE=a": (None, NOT_READ)}, "tpu": {"MUST_FUSE=a": (True, "3 operations in fusion")}},
    ),
    "must fuse, one id in both passes": (
        ONE,
        gradient({"MUST_FUSE": "a"}, "same"),
        (X,),
        {"gpu": {"MUST_FUSE=a": (None, NOT_READ)}, "tpu": {"MUST_FUSE=a": ONE_ID}},
    ),
    "must fuse, an id for each pass": (
        ONE,
        gradient({"MUST_FUSE": "a"}, {"MUST_FUSE": "b"}),
        (X,),
        {
            "gpu": {f"MUST_FUSE={name}": (None, NOT_READ) for name in "ab"},
            "tpu": {f"MUST_FUSE={name}": (True, "operations in ") for name in "ab"},
        },
    ),
    "fusion limit": (
        ONE,
        pointwise(FUSE_LIMIT="true"),
        (X,),
        {"gpu": {"FUSE_LIMIT=true": (None, NOT_READ)}, "tpu": {"FUSE_LIMIT=true": (True, "at the end of sine_tanh_fusion")}},
    ),
    "call": (
        ONE,
        called(inlineable="false"),
        (X, X),
        {"gpu": {"inlineable=false": (True, "is a call")}, "tpu": {"inlineable=false": (None, NOT_SEEN)}},
    ),
    "combiner": (
        FOUR,
        sums,
        (X, X),
        {
            "gpu": {"combiner_key=a": (True, "combined with none but its own")},
            "tpu": {"combiner_key=a": (None, "was not seen to read it; read by gpu")},
        },
    ),
    "loop that runs once": (
        ONE,
        once,
        (X,),
        {name: {"skip-simplify-while-loops_trip-count-one=true": (True, "is a loop")} for name in ("gpu", "tpu")},
    ),
    "unrolled loop": (
        ONE,
        often,
        (X,),
        {
            "gpu": {"_xla_loop_unroll_strategy=full": (None, NOT_SEEN)},
            "tpu": {"_xla_loop_unroll_strategy=full": (None, NOT_READ)},
        },
    ),
}


@pytest.fixture(scope="module")
def compilers() -> list[Compiler]:
    assert is_here(PLATFORM), "make test-compilers"
    return [make() for make in KINDS[PLATFORM].values()]


def effects(compiler: Compiler, program: Program, *arguments: Any) -> dict[str, Effect]:
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage():
        found = hlotag.audit(compiler.lower(program, *arguments)).effects
    return {f"{effect.key}={effect.value}": effect for effect in found}


@pytest.mark.parametrize("name", ROWS)
def test_effect(name, compilers):
    devices, program, arguments, expected = ROWS[name]
    found = effects(compilers[devices], program, *arguments)
    for key, (obeyed, said) in expected[PLATFORM].items():
        assert found[key].obeyed is obeyed, found[key]
        assert said in str(found[key])


def test_a_broken_group(compilers):
    if PLATFORM == "tpu":
        with pytest.raises(jax.errors.JaxRuntimeError, match="annotation groups with gaps"):
            effects(compilers[FOUR], broken_group, *(LARGE,) * 4)
    else:
        effect = effects(compilers[FOUR], broken_group, *(LARGE,) * 4)["_scheduling_group_id=7"]
        assert effect.obeyed is False
        assert effect.evidence.startswith("2 of 3 in one run")
        assert effect.reason.startswith("a dependence through gemm_fusion_dot")
