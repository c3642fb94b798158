# SPDX-License-Identifier: Apache-2.0
"""Value tags against ground truth: every primal equation is tagged with its own number, and every op must bear the right one.

Ground truth comes from JAX alone: each equation of the primal jaxpr is evaluated in a block that sets an `id`, and JAX carries
equation contexts through its transformations. The same jaxpr is then evaluated with the stage on, and each equation's results
are value-tagged after they were made.
"""

import jax
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from modules import ops_of
from programs import FORWARD_MODE, PROGRAMS, TRANSFORMS, evaluate


def in_block(i, bind):
    with set_xla_metadata(id=str(i)):
        return bind()


def by_value(i, bind):
    return set_xla_metadata(bind(), id=str(i))


# JAX itself refuses forward mode of a custom_vjp function.
CASES = [(p, t) for p in PROGRAMS for t in TRANSFORMS if not (p == "custom_vjp" and t in FORWARD_MODE)]
# One of each kind: reverse, forward, batched, second order, recomputed.
QUICK = {"grad", "jvp", "vmap_grad", "hessian", "grad_checkpoint"}


@pytest.mark.parametrize(
    ("program", "transform"), [pytest.param(p, t, marks=() if t in QUICK else pytest.mark.slow) for p, t in CASES]
)
def test_every_op_bears_the_tag_of_its_equation(program, transform):
    function, args = PROGRAMS[program]
    primal = jax.make_jaxpr(lambda *args: function(*args) ** 2)(*args)  # Squared, so that no second derivative is zero.

    def lowered(run):
        return jax.jit(TRANSFORMS[transform](lambda *args: evaluate(primal, args, run)[0])).lower(*args)

    truth = ops_of(lowered(in_block))
    with hlotag.stage():
        tagged = ops_of(lowered(by_value))
    assert [op.name for op in tagged] == [op.name for op in truth]
    ids = [(op.name, op.entries.get("id"), other.entries.get("id")) for op, other in zip(truth, tagged, strict=True)]
    known = [found for found in ids if found[1] is not None]
    assert [(name, true, found) for name, true, found in known if true != found] == []
