# SPDX-License-Identifier: Apache-2.0
"""hlotag-apply-policies on modules that JAX lowers: backward operations get other ids, or none."""

import jax
import jax.numpy as jnp
import numpy as np

import hlotag
from hlotag import DEFAULT_PIPELINE

X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)


def plain_softmax(x):
    shifted = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def lower(f, pipeline):
    jax.clear_caches()
    with hlotag.stage(pipeline):
        return jax.jit(f).lower(X)


def functions(lowered):
    """Name -> operations of each function of the module."""
    module = lowered.compiler_ir()
    return {
        f.operation.attributes["sym_name"].value: list(f.operation.regions[0].blocks[0].operations)
        for f in module.body.operations
        if f.operation.name == "func.func"
    }


def test_policies_give_the_backward_pass_other_ids():
    def loss(x):
        with hlotag.tagged({"_scheduling_group_id": "40", "k": "v"}, grad="same"):
            return plain_softmax(jnp.sin(x)).max()

    def phases(policies):
        module = lower(jax.grad(loss), f"{DEFAULT_PIPELINE},hlotag-apply-policies{{{policies}}},hlotag-verify")
        found = {"forward": set(), "backward": set()}
        for ops in functions(module).values():
            for op in ops:
                if "mhlo.frontend_attributes" in op.attributes:
                    phase = "backward" if "transpose(" in str(op.location) else "forward"
                    found[phase] |= {(a.name, a.attr.value) for a in op.attributes["mhlo.frontend_attributes"]}
        return found

    same = {("_scheduling_group_id", "40"), ("k", "v")}
    assert phases("") == {"forward": same, "backward": same}
    assert phases("defaults=true") == {"forward": same, "backward": {("k", "v")}}
    retag = 'policies=\'[{key = "_scheduling_group_id", derived = "retag", offset = 10}, {key = "k", derived = "drop"}]\''
    assert phases(retag) == {"forward": same, "backward": {("_scheduling_group_id", "50")}}
