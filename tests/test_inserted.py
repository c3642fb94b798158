# SPDX-License-Identifier: Apache-2.0
"""Rules for collectives that XLA's partitioner inserts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
from hlotag.errors import ArgumentError, TagIgnoredWarning
from hlotag.hlo.module import of_executable
from hlotag.passes.rules import attach
from hlotag.profiles.program import Program

LAYERS = 3


def loss(weights, x):
    for number, w in enumerate(weights):
        with jax.named_scope(f"layer_{number}"):
            x = jnp.tanh(x @ w)
    return jnp.square(x).mean()


def arguments():
    """Weights and examples, sharded by rows: XLA gathers the weights, and sums their gradients."""
    mesh = jax.make_mesh((4,), ("i",))
    sharded = jax.ShapeDtypeStruct((64, 64), np.float32, sharding=NamedSharding(mesh, P("i")))
    return [sharded] * LAYERS, sharded


def compiled(*rules, function=loss, **options):
    with hlotag.stage(rules=rules, **options):
        return jax.jit(jax.value_and_grad(function)).lower(*arguments()).compile()


def tags_of(*rules, **options):
    """By opcode, the tags `k` of the collectives, in the order of the module."""
    found: dict[str, list[str | None]] = {}
    for instruction in of_executable(compiled(*rules, **options))[0].instructions():
        if instruction.opcode.startswith(("all-", "reduce-scatter")):
            found.setdefault(instruction.opcode, []).append(instruction.attributes.get("k"))
    return found


def rule(value="v", **patterns):
    return hlotag.Rule({"k": value}, inserted=True, **patterns)


GATHERS = {"op": "all-gather"}


@pytest.mark.parametrize(
    ("rules", "gathers"),
    [
        ([rule(**GATHERS)], ["v", "v", "v"]),
        ([rule(**GATHERS, scope="layer_1")], [None, "v", None]),
        ([rule("{n}", **GATHERS, scope="layer_{n}")], ["0", "1", "2"]),
        ([rule(**GATHERS, unless={"scope": "layer_0"})], [None, "v", "v"]),
        ([rule(source="test_inserted.py", phase="forward")], ["v", "v", "v"]),
        ([rule("all", op="*"), rule("later", **GATHERS, scope="layer_2")], ["all", "all", "later"]),
    ],
)
def test_a_gather_is_named_by_what_takes_its_value(rules, gathers):
    assert tags_of(*rules)["all-gather"] == gathers


def test_a_combined_sum_has_the_values_of_its_parts():
    attrs = {"k": "{n}", "_scheduling_group_id": "{n}"}
    rule = hlotag.Rule(attrs, op="all-reduce", scope="layer_{n}", phase="backward", inserted=True)
    found = [i.attributes for i in of_executable(compiled(rule))[0].instructions()]
    assert "0,1,2" in {attributes.get("k") for attributes in found}
    assert {attributes.get("_scheduling_group_id") for attributes in found} == {None, "0"}


def test_the_collectives_of_the_program_are_left_to_other_rules():
    def own(weights, x):
        mesh = jax.make_mesh((4,), ("i",))
        return jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())(x).sum()

    with pytest.warns(TagIgnoredWarning, match="rule 1 matched no collective"):
        found = tags_of(rule(op="*"), function=own)
    assert not any(tag for tags in found.values() for tag in tags)


def test_a_rule_that_matches_nothing_warns_once():
    with pytest.warns(TagIgnoredWarning, match="rule 2 matched no collective that XLA inserted") as said:
        compiled(rule(**GATHERS), rule(op="all-to-all"))
    assert len(said) == 1


def test_a_program_of_one_device_is_left_alone():
    with hlotag.stage(rules=[rule(op="*")]):
        assert "frontend_attributes" not in jax.jit(jnp.sin).lower(np.ones(4)).compile().as_text()


UNCOMPILED = {
    "a function": (lambda: rule(function="f"), "'function' has no meaning"),
    "grad": (lambda: rule(op="*", grad="drop"), "'grad' has no meaning"),
    "unless": (lambda: rule(op="*", unless={"function": "f"}), "'function' has no meaning"),
    "StableHLO's name": (lambda: rule(op="stablehlo.all_gather"), "'all-gather'"),
    "a flag": (lambda: hlotag.Rule({"k": "v"}, op="*", inserted="yes"), "'inserted' must be True or False"),
    "no HLO pass": (lambda: hlotag.stage(rules=[rule(op="*")], hlo=False), "hlo=False"),
    "no compiler": (lambda: attach([rule(op="*")]), "rule 1 is for collectives"),
    "an illegal value": (
        lambda: compiled(hlotag.Rule({"_scheduling_group_id": "{n}"}, scope="{n}", op="all-gather", inserted=True)),
        "rule 1, where n is 'layer_",
    ),
}


@pytest.mark.parametrize("case", UNCOMPILED)
def test_rules_that_are_refused(case):
    make, message = UNCOMPILED[case]
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_file_of_rules_may_have_one(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text('[[rule]]\nattrs = { k = "v" }\nop = "all-gather"\ninserted = true\n')
    assert hlotag.load_rules(file) == (rule(**GATHERS),)


def test_results_stay_the_same():
    weights, x = jax.tree.map(lambda a: jax.device_put(np.full(a.shape, 0.5, a.dtype), a.sharding), arguments())
    plain = jax.jit(jax.value_and_grad(loss))(weights, x)
    with hlotag.stage(rules=[rule("{n}", op="*", scope="layer_{n}")]):
        tagged = jax.jit(jax.value_and_grad(loss))(weights, x)
    assert jax.tree.all(jax.tree.map(np.array_equal, plain, tagged))


def test_an_audit_lists_inserted_collectives_with_their_tags():
    with hlotag.stage(rules=[rule("{n}", **GATHERS, scope="layer_{n}")]):
        audit = hlotag.audit(jax.value_and_grad(loss), *arguments())
    tags = [(tag.key, tag.value, tag.op.name, tag.op.scope, str(tag.state)) for tag in audit.tags]
    assert tags == [("k", str(n), "all-gather", f"layer_{n}", "kept") for n in range(LAYERS)]
    by_name = {instruction.name: instruction for instruction in audit.instructions}
    for tag in audit.tags:
        assert tag.op.inserted and [audit.ops[n].name for n in tag.op.derived_from] == ["stablehlo.dot_general"]
        assert {by_name[name].ops for name in tag.instructions} == {(tag.op.id,)}


def test_an_inserted_collective_takes_time_for_what_it_serves():
    def tagged(weights, x):
        with hlotag.tagged({"part": "all"}):
            return loss(weights, x)

    with hlotag.stage(rules=[rule(**GATHERS)]):
        audit = hlotag.audit(tagged, *arguments())
    program = Program(audit)
    gathers = [instruction.name for instruction in audit.instructions if instruction.opcode == "all-gather"]
    assert len(gathers) == LAYERS
    for name in gathers:
        (part,) = program.parts(name)
        assert (part.op.name, program.values(part.op)) == ("all-gather", {"part": "all", "k": "v"})
