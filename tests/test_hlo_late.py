# SPDX-License-Identifier: Apache-2.0
"""Tags that are given back before the scheduler, on HLO texts as the compilers have them there."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from hlotag import _compat
from hlotag.hlo import HloModule
from hlotag.hlo.inserted import InsertedRules
from hlotag.hlo.late import Late
from hlotag.hlo.origins import Origins
from hlotag.hlo.restore import Rules
from hlotag.mlir.modules import copy_of
from hlotag.tagging.rules import Rule

KEYS = ("_scheduling_group_id", "keep_original_sequence_order_in_group", "scheduler_hint")
GROUP = {"_scheduling_group_id": "1", "keep_original_sequence_order_in_group": "true"}
X = np.ones((4, 4), np.float32)

TEXT = """
HloModule late
ENTRY main {
  x = f32[4,4] parameter(0)
  w = f32[1,4] parameter(1)
  first = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general}
  between = f32[4,4] sine(BETWEEN), {sine}
  second = f32[4,4] dot(between, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general1}
  gathered = f32[4,4] all-gather(w), dimensions={0}, replica_groups={}
  ROOT all = (f32[4,4], f32[4,4]) tuple(second, gathered)
}
"""


def given(*rules: Rule, entries: dict[str, str], between: str = "x"):
    """The `Late`, and by instruction what it adds, if XLA's passes have dropped all tags of two products."""

    def product(x):
        with set_xla_metadata(**entries):
            return x @ x

    def products(x):
        return product(jnp.sin(product(x)))

    origins = Origins(copy_of(jax.jit(products).lower(X).compiler_ir("stablehlo")))
    text = TEXT.replace("BETWEEN", between)
    names = {"dot_general": "dot_general", "sine": "sine", "dot_general1": "dot_general"}
    for (name, base), origin in zip(names.items(), [o for o in origins if o.op.endswith(tuple(names.values()))], strict=True):
        text = text.replace(f"{{{name}}}", f'metadata={{op_name="\x01{origins.token}:{origin.id}\x01/jit(f)/{base}"}}')
    late = Late(origins, Rules(origins.program.entries(), KEYS), InsertedRules({rule.name(0): rule for rule in rules}))
    after = late.add_tags(_compat.runtime.hlo_from_text(text))
    instructions = HloModule(after).instructions() if after is not None else ()
    return late, {i.name: dict(i.attributes) for i in instructions if i.attributes}


GATHER = Rule(GROUP, op="all-gather", inserted=True)


def test_a_lost_key_is_given_back_to_its_operation_alone():
    _, found = given(entries={"scheduler_hint": "force_early"})
    assert found == {name: {"scheduler_hint": "force_early"} for name in ("first", "second")}


def test_members_are_given_back_to_a_group_with_a_collective():
    late, found = given(GATHER, entries=GROUP)
    assert found == dict.fromkeys(("first", "second", "gathered"), GROUP)
    assert not late.gaps


def test_a_group_without_a_collective_gets_no_member():
    assert given(entries=GROUP)[1] == {}


def test_a_group_with_a_gap_gets_no_member_and_is_named():
    late, found = given(GATHER, entries=GROUP, between="first")
    assert (found, late.gaps) == ({}, {"1"})


def test_a_module_that_lacks_nothing_is_left_alone():
    assert given(entries={"k": "v"})[1] == {}
