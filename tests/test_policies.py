# SPDX-License-Identifier: Apache-2.0
"""Checkpoint policies save and offload tagged values as they do without hlotag, and no tag of JAX alone is missing."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import xla_metadata

import hlotag
from modules import ops_of
from programs import of_scan, of_shard_map

BUILT_IN = jax.checkpoint_policies
# The arguments of those that make a policy. All others in the module are policies themselves.
ARGUMENTS = {
    "offload_dot_with_no_batch_dims": ("device", "pinned_host"),
    "save_and_offload_only_these_names": {
        "names_which_can_be_saved": ["a"],
        "names_which_can_be_offloaded": ["b"],
        "offload_src": "device",
        "offload_dst": "pinned_host",
    },
    "save_any_names_but_these": ("a",),
    "save_anything_except_these_names": ("a",),
    "save_from_both_policies": (BUILT_IN.dots_saveable, BUILT_IN.save_only_these_names("a")),
    "save_only_these_names": ("a",),
}


def built_in(name):
    make = getattr(BUILT_IN, name)
    arguments = ARGUMENTS.get(name)
    if arguments is None:
        return make
    return make(**arguments) if isinstance(arguments, dict) else make(*arguments)


def saves(primitive):
    return lambda found, *_, **__: found.name == primitive


POLICIES = {name: built_in(name) for name in dir(BUILT_IN) if not name.startswith("_")}
POLICIES |= {
    f"only {name}": saves(name) for name in ("xla_metadata_value", "name", "sin", "dot_general", "reduce_precision", "jit")
}
POLICIES |= {"no policy": None, "all but value tags": lambda found, *_, **__: found.name != "xla_metadata_value"}

X = np.ones((4, 4), np.float32)


def by_value(module, x):
    return module.set_xla_metadata(jnp.sin(x), value="v")


def by_block(module, x):
    with module.set_xla_metadata(block="b"):
        return jnp.cos(x @ x.T @ x)


def named(module, x):
    return by_block(module, checkpoint_name(by_value(module, checkpoint_name(x, "b")), "a"))


def unnamed(module, x):
    return module.set_xla_metadata(jax.nn.gelu(by_block(module, by_value(module, x))), _scheduling_group_id="7")


def tags_in(body, around, policy):
    """The entries of a gradient's operations, by kind of operation."""
    within = around(jax.checkpoint(body, policy=policy))
    lowered = jax.jit(jax.grad(lambda x: jnp.sum(within(x) ** 2))).lower(X)
    return Counter((op.name, *entry) for op in ops_of(lowered) for entry in op.entries.items())


# Where a saved value comes back. JAX alone attaches a value tag to whatever owns the value there; hlotag to what computes it.
HANDS_ON = "stablehlo.optimization_barrier"


def is_kept(entry):
    """Whether an entry of JAX alone is the program's own. By default, derived operations have no scheduling group."""
    op, key, _ = entry
    return op != HANDS_ON and (key != "_scheduling_group_id" or op in ("stablehlo.sine", "stablehlo.cosine"))


@pytest.mark.parametrize("around", [jax.jit, of_scan, of_shard_map])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_fails_or_loses_a_tag(policy, around):
    rules = [hlotag.Rule({"rule": "r"}, op="sine"), hlotag.Rule({"rule": "r"}, op="dot_general")]
    for body in (named, unnamed):
        run = lambda module, body=body: tags_in(lambda x: body(module, x), around, POLICIES[policy])
        alone = Counter({entry: n for entry, n in run(xla_metadata).items() if is_kept(entry)})
        for module in (xla_metadata, hlotag):
            with hlotag.stage(rules=rules):
                found = run(module)
            assert {key for _, key, _ in found} >= {"value", "block", "rule"}
            assert not any(key.startswith("hlotag.") for _, key, _ in found)
            assert alone - found == Counter()
