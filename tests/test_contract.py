# SPDX-License-Identifier: Apache-2.0
"""What a tag means: everything in a block is tagged, helper operations included, and nothing else; JAX's own tags are there.

`random_programs.check` knows by the names of scopes what is in a block. `test_fidelity.py` and `test_rule_is_block.py` say the
same of value tags and rules, `test_every_primitive.py` of each primitive of JAX.
"""

import jax
import numpy as np
import pytest
import random_programs
from jax import lax

import hlotag
from modules import ops_of

BODY = [("binary", "matmul", 0, 1), ("unary", "tanh", 0), ("unary", "scale", 0)]
# What is in a block, between operations that are not.
PROGRAMS = {
    "inline": BODY,
    "helpers": [("unary", "softmax", 0), ("unary", "cumsum", 0), ("unary", "index", 0)],
    **{kind: [("nested", kind, BODY, 0, 1)] for kind in random_programs.NESTED},
    **{f"{a} in {b}": [("nested", b, [("nested", a, BODY, 0, 1)], 0, 1)] for a in ("jit", "checkpoint") for b in ("jit", "scan")},
    **{kind: [("unary", kind, 0)] for kind in ("custom_jvp", "custom_vjp")},
}


@pytest.mark.parametrize("transform", random_programs.TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_in_a_block_and_nothing_else(program, transform):
    random_programs.check([("unary", "sin", 0), ("tagged", 0, PROGRAMS[program]), ("unary", "sin", 0)], transform)


def test_the_mesh_that_a_tagged_call_declares_is_no_operation():
    mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    sums = jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())
    with hlotag.stage(rules=[hlotag.Rule({"rule": "v"}, op="*")]):
        lowered = jax.jit(hlotag.tagged({"k": "v"})(sums)).lower(np.ones((4, 4), np.float32))
    assert all(op.entries == {"k": "v", "rule": "v"} for op in ops_of(lowered))
    meshes = [str(op) for op in lowered.compiler_ir().body.operations if op.operation.name == "sdy.mesh"]
    assert meshes and not any("frontend_attributes" in text for text in meshes)
