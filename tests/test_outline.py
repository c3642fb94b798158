# SPDX-License-Identifier: Apache-2.0
"""hlotag-outline, -apply-policies and -stats on modules that JAX lowers: they stay valid, and compute the same bits."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib.mlir import ir

import hlotag
from hlotag import DEFAULT_PIPELINE

X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
OUTLINE = DEFAULT_PIPELINE + ",hlotag-outline{key=MUST_FUSE}"


def softmax(x):
    with hlotag.tagged({"MUST_FUSE": "softmax"}):
        return jax.nn.softmax(x)


def plain_softmax(x):
    shifted = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def around(x):
    y = jnp.tanh(x)
    with hlotag.tagged({"MUST_FUSE": "softmax"}):
        z = plain_softmax(y * 2.0)
    return z @ y.T


def twice(x):
    with hlotag.tagged({"MUST_FUSE": "a"}):
        y = plain_softmax(x)
    with hlotag.tagged({"MUST_FUSE": "b"}):
        return plain_softmax(y + x)


def in_scan(x):
    def step(carry, row):
        with hlotag.tagged({"MUST_FUSE": "step"}):
            carry = jnp.sin(carry) * row + x[0]
        return carry, carry.sum()

    return jax.lax.scan(step, x[0], x)


def gradient(x):
    return jax.grad(lambda x: around(x).sum())(x)


def gradient_with_ids(x):
    def loss(x):
        with hlotag.tagged({"MUST_FUSE": "forward"}, grad={"MUST_FUSE": "backward"}):
            return plain_softmax(jnp.sin(x)).max()

    return jax.grad(loss)(x)


PROGRAMS = [softmax, around, twice, in_scan, gradient, gradient_with_ids]


def lower(f, pipeline):
    jax.clear_caches()
    with hlotag.stage(pipeline):
        return jax.jit(f).lower(X)


def bits(lowered):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(lowered.compile()(X))]


def functions(lowered):
    """Name -> operations of each function of the module."""
    module = lowered.compiler_ir()
    return {
        f.operation.attributes["sym_name"].value: list(f.operation.regions[0].blocks[0].operations)
        for f in module.body.operations
        if f.operation.name == "func.func"
    }


def value_of(op):
    if "mhlo.frontend_attributes" not in op.attributes:
        return None
    entries = op.attributes["mhlo.frontend_attributes"]
    return entries["MUST_FUSE"].value if "MUST_FUSE" in entries else None


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_outlined_program_computes_the_same_bits(program):
    before, after = lower(program, DEFAULT_PIPELINE), lower(program, OUTLINE)
    assert after.compiler_ir().operation.verify()
    assert bits(after) == bits(before)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_second_run_changes_nothing(program):
    module = lower(program, OUTLINE).compiler_ir()
    once = module.operation.get_asm(enable_debug_info=True)
    hlotag.run_passes(module, "hlotag-outline{key=MUST_FUSE}")
    assert module.operation.get_asm(enable_debug_info=True) == once


@pytest.mark.parametrize(
    ("program", "values"), [(around, {"softmax"}), (twice, {"a", "b"}), (gradient_with_ids, {"forward", "backward"})]
)
def test_each_group_is_one_call_and_its_operations_are_in_one_function(program, values):
    by_name = functions(lower(program, OUTLINE))
    calls = {value_of(op): op for op in by_name["main"] if op.operation.name == "func.call" and value_of(op)}
    assert set(calls) == values
    for value, call in calls.items():
        *body, last = by_name[call.attributes["callee"].value]
        assert last.operation.name == "func.return"
        assert len(body) > 1
        assert {value_of(op) for op in body} == {value}
    rest = [op for op in by_name["main"] if op.operation.name != "func.call"]
    assert not any(value_of(op) for op in rest)


def test_the_body_of_a_scan_is_outlined_in_place():
    module = lower(in_scan, OUTLINE).compiler_ir()
    found = []

    def visit(op):
        if op.name == "func.call" and value_of(op):
            found.append((op.parent.name, value_of(op), op.attributes["callee"].value))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert [value for _, value, _ in found] == ["step"]


def test_operations_keep_names_and_source_in_the_executable():
    compiled = lower(around, OUTLINE).compile().as_text()
    assert re.search(r"exponential\(.*op_name=\"jit\(around\)/exp\"", compiled)


def test_a_group_that_depends_on_itself_through_others_is_refused_and_nothing_changes():
    def f(x):
        x = around(x)  # a group that is outlined, and taken back
        with hlotag.tagged({"MUST_FUSE": "1"}):
            y = jnp.sin(x)
        z = jnp.cos(y)
        with hlotag.tagged({"MUST_FUSE": "1"}):
            return y + z

    with pytest.raises(hlotag.PassError, match=r"test_outline\.py.*is not in the group, but uses.*stablehlo\.add"):
        lower(f, OUTLINE)
    module = lower(f, DEFAULT_PIPELINE).compiler_ir()
    before = module.operation.get_asm(enable_debug_info=True)
    with pytest.raises(hlotag.PassError, match="cannot outline the 2 operations with MUST_FUSE"):
        hlotag.run_passes(module, "hlotag-outline")
    assert module.operation.get_asm(enable_debug_info=True) == before


def test_effects_do_not_change_their_order():
    def f(x):
        with hlotag.tagged({"MUST_FUSE": "1"}):
            y = jnp.sin(x)
            jax.debug.print("first", ordered=True)
        jax.debug.print("second", ordered=True)
        with hlotag.tagged({"MUST_FUSE": "1"}):
            jax.debug.print("third", ordered=True)
            return y + 1.0

    with pytest.raises(hlotag.PassError, match=r"is not in the group, (but uses a result|and side effects)"):
        lower(f, OUTLINE)


def test_stats_of_a_gradient(tmp_path):
    output = tmp_path / "a file.json"
    module = lower(gradient_with_ids, DEFAULT_PIPELINE).compiler_ir()
    before = str(module)
    hlotag.run_passes(module, f'hlotag-stats{{output="{output}"}}')
    assert str(module) == before
    stats = json.loads(output.read_text())
    assert stats["ops"] == stats["tagged"] + stats["untagged"]
    values = stats["keys"]["MUST_FUSE"]["values"]
    assert set(values["forward"]["phases"]) == {"forward"}
    # All but the constant that the gradient starts from, whose name says nothing.
    assert values["backward"]["phases"] == {"backward": values["backward"]["ops"] - 1, "forward": 1}
    assert sum(value["ops"] for value in values.values()) == stats["keys"]["MUST_FUSE"]["ops"]
    for value in values.values():
        for counts in ("kinds", "phases", "functions"):
            assert sum(value[counts].values()) == value["ops"]


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
