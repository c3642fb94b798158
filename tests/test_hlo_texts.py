# SPDX-License-Identifier: Apache-2.0
"""The join of instructions to operations, as an audit of dumps does it; `join_test.cpp` has the rules."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from hlotag import _compat
from hlotag.hlo import HloModule
from hlotag.hlo.join import sources
from hlotag.hlo.origins import Origins
from hlotag.mlir.modules import copy_of

X, W = np.ones((4, 8), np.float32), np.ones((8, 8), np.float32)


def numbered(function, text: str, *arguments) -> tuple[Origins, list[str], HloModule]:
    """A program, the names of its operations, and HLO text named after them: `{sine}` there is the name of the only sine."""
    origins = Origins(copy_of(jax.jit(function).lower(*arguments).compiler_ir("stablehlo")))
    names: list[str] = []
    for origin in origins:
        base = origin.op.rpartition(".")[2]
        names.append(next(name for k in itertools.count() if (name := f"{base}{k or ''}") not in names))
        text = text.replace(f"{{{names[-1]}}}", f'metadata={{op_name="\x01{origins.token}:{origin.id}\x01/{base}"}}')
    return origins, names, HloModule(_compat.runtime.hlo_from_text(text))


CALLED = """
HloModule called
ENTRY main {
  x = f32[4,8] parameter(0)
  w = f32[8,8] parameter(1)
  product = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general}
  ROOT expanded = f32[4,8] dot(product, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {call}
}
"""


def test_what_is_named_after_a_call_is_not_what_the_call_takes():
    """TPU's compiler makes products of an FFT, and names them after the call that holds it."""
    origins, names, module = numbered(lambda x, w: jax.jit(jnp.sin)(x @ w), CALLED, X, W)
    found = sources(module, origins.program, (origins.ids_of(i.op_name) for i in module.instructions()))
    by_name = {instruction.name: [names[number] for number in numbers] for instruction, numbers in found.items()}
    assert (by_name["product"], by_name["expanded"]) == (["dot_general"], [])
