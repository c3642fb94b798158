# SPDX-License-Identifier: Apache-2.0
"""The work that audits list, for GPU and TPU: flops as XLA counts them, products where they are, tags of fusions by work."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from key_probes import PLATFORM

import hlotag
from hlotag.audits.collect import Audited, audit_and_compile
from hlotag.hlo.module import of_executable
from time_programs import PROGRAMS
from time_truth import part
from work_invariants import find_fusions_that_disagree, find_products_not_held, find_products_of_others

# XLA merges operations of two parts into one instruction, whose tag is the first one's, and whose work both share.
_MERGED = 0.05
# v5e's compiler sums by a window as wide as the array, and its cost analysis leaves that out.
_NOT_COUNTED = {"dropout"}


@pytest.fixture(scope="module", params=list(PROGRAMS))
def program(request, compiler) -> Audited:
    function, arguments = PROGRAMS[request.param]()
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage():
        return audit_and_compile(function, compiler.shapes(arguments), {})


def test_products_are_where_products_are_computed(program):
    assert find_products_not_held(program.audit, of_executable(program.compiled)[0]) == set()
    assert find_products_of_others(program.audit) == set()


def test_a_fusion_has_the_tag_of_most_work_in_it(program):
    assert find_fusions_that_disagree(program.audit, of_executable(program.compiled)[0], "part", _MERGED) == []


@pytest.mark.skipif(PLATFORM == "gpu", reason="a compile-only client for GPU has no cost analysis")
def test_listed_flops_are_those_that_xla_counts(program, request):
    counted = program.compiled.cost_analysis()
    if request.node.callspec.params["program"] in _NOT_COUNTED:
        return
    counted = counted[0] if isinstance(counted, list) else counted
    expected = counted["flops"] + counted.get("transcendentals", 0.0)
    assert sum(each.flops for each in program.audit.instructions) == pytest.approx(expected, rel=0.1)


def test_kernels_that_xla_names_anew_are_those_of_their_operations(compiler):
    """TPU's compiler makes a kernel of a ragged product, and gives it a name after the HLO pass. XLA counts its estimate."""

    def loss(w, x, sizes):
        with part("experts"):
            return lax.ragged_dot(x, w, sizes).astype(jnp.float32).sum()

    shapes = ((4, 256, 512), jnp.bfloat16), ((512, 256), jnp.bfloat16), ((4,), jnp.int32)
    arguments = [jax.ShapeDtypeStruct(*each) for each in shapes]
    jax.clear_caches()
    with hlotag.stage():
        found = audit_and_compile(jax.grad(loss), compiler.shapes(arguments), {})
    audit = found.audit
    names = {i.name for i in of_executable(found.compiled)[0].instructions()}
    assert {name for tag in audit.tags for name in tag.instructions} <= names
    products = [each for each in audit.instructions if each.flops > 1e7]
    assert products and all(audit.ops[op].scope == "part_experts" for each in products for op in each.owners)
    assert all(each.owners for each in products)
    if PLATFORM == "tpu":
        counted = found.compiled.cost_analysis()["flops"]
        assert sum(each.flops for each in audit.instructions) == pytest.approx(counted, rel=0.1)
