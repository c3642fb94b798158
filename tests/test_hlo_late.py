# SPDX-License-Identifier: Apache-2.0
"""Tags that are given back before the scheduler, on HLO texts as the compilers have them there."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
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


def numbered(function, text: str, *arguments) -> tuple[Origins, HloModule]:
    """A program, and HLO text named after its operations: `{sine}` there is the name of the only sine."""
    origins = Origins(copy_of(jax.jit(function).lower(*arguments).compiler_ir("stablehlo")))
    names: list[str] = []
    for origin in origins:
        base = origin.op.rpartition(".")[2]
        names.append(next(name for k in itertools.count() if (name := f"{base}{k or ''}") not in names))
        text = text.replace(f"{{{names[-1]}}}", f'metadata={{op_name="\x01{origins.token}:{origin.id}\x01/{base}"}}')
    return origins, HloModule(_compat.runtime.hlo_from_text(text))


def given(*rules: Rule, entries: dict[str, str], between: str = "x"):
    """The `Late`, and by instruction what it adds, if XLA's passes have dropped all tags of two products."""

    def product(x):
        with set_xla_metadata(**entries):
            return x @ x

    def products(x):
        return product(jnp.sin(product(x)))

    origins, module = numbered(products, TEXT.replace("BETWEEN", between), X)
    late = Late(origins, Rules(origins.program.entries(), KEYS), InsertedRules({rule.name(0): rule for rule in rules}))
    after = late.add_tags(module.to_bytes())
    instructions = HloModule(after).instructions() if after is not None else ()
    return late, {i.name: dict(i.attributes) for i in instructions if i.attributes}


GATHER = Rule(GROUP, op="all-gather", inserted=True)


HINT = {"scheduler_hint": "force_early"}
CASES = {
    "a lost key goes back to its operation alone": ([], HINT, "x", {"first": HINT, "second": HINT}, set()),
    "a group with a collective gets its members": (
        [GATHER],
        GROUP,
        "x",
        dict.fromkeys(("first", "second", "gathered"), GROUP),
        set(),
    ),
    "a group without a collective gets no member": ([], GROUP, "x", {}, set()),
    "a group with a gap gets no member and is named": ([GATHER], GROUP, "first", {}, {"1"}),
    "a module that lacks nothing is left alone": ([], {"k": "v"}, "x", {}, set()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_given_back(case):
    rules, entries, between, expected, gaps = CASES[case]
    late, found = given(*rules, entries=entries, between=between)
    assert (found, set(late.gaps)) == (expected, gaps)
