# SPDX-License-Identifier: Apache-2.0
"""The join of instructions to operations, on HLO texts that have what XLA's compilers for CPU, GPU and TPU make."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from hlotag import _compat
from hlotag.hlo import HloModule, join
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


def joined(function, text: str, *arguments, by=join) -> dict[str, list[str]]:
    """By instruction of HLO text, the names of its operations' values."""
    origins, names, module = numbered(function, text, *arguments)
    return {instruction.name: [names[number] for number in numbers] for instruction, numbers in by(module, origins).items()}


PRODUCTS = """
HloModule products
ENTRY main {
  x = f32[4,8] parameter(0)
  v = f32[8,8] parameter(1)
  w = f32[8,6] parameter(2)
  both = f32[8,14] concatenate(v, w), dimensions={1}
  product = f32[4,14] dot(x, both), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general1}
  turned = f32[14,4] transpose(product), dimensions={1,0}
  left = f32[8,4] slice(turned), slice={[0:8], [0:4]}, {dot_general1}
  right = f32[6,4] slice(turned), slice={[8:14], [0:4]}, {dot_general1}
  sine = f32[8,4] sine(left), {sine}
  cosine = f32[6,4] cosine(right), {cosine}
  sines = f32[4,8] transpose(sine), dimensions={1,0}
  cosines = f32[4,6] transpose(cosine), dimensions={1,0}
  ROOT results = (f32[4,8], f32[4,6]) tuple(sines, cosines)
}
"""


def test_one_contraction_that_xla_makes_of_two_is_of_both():
    """As GPU's compiler does: it has the name of one of them."""
    found = joined(lambda x, v, w: (jnp.sin(x @ v), jnp.cos(x @ w)), PRODUCTS, X, W, W[:, :6])
    assert found["product"] == ["dot_general1", "dot_general"]
    assert (found["left"], found["right"]) == (["dot_general"], ["dot_general1"])


MASK = """
HloModule mask
either { a = u16[] parameter(0) b = u16[] parameter(1) ROOT or = u16[] or(a, b) }
ENTRY main {
  x = f32[4,8] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4,8] broadcast(zero), dimensions={}
  sine = f32[4,8] sine(x), {sine}
  positive = pred[4,8] compare(sine, zeros), direction=GT, {compare}
  bit = u16[4,8] convert(positive)
  column = u16[4,8] iota(), iota_dimension=1
  shifted = u16[4,8] shift-left(bit, column)
  none = u16[] constant(0)
  packed = u16[4] reduce(shifted, none), dimensions={1}, to_apply=either
  rows = u16[4,8] broadcast(packed), dimensions={0}
  taken = u16[4,8] and(column, rows)
  mask = pred[4,8] convert(taken), {compare}
  ROOT kept = f32[4,8] select(mask, sine, zeros), {select}
}
"""


def test_what_helps_an_operation_does_not_take_its_operands():
    """TPU's compiler packs a mask that a backward pass needs: the words are of the comparison, not of what it compares."""
    found = joined(lambda x: lax.select((y := jnp.sin(x)) > 0, y, jnp.zeros_like(y)), MASK, X)
    assert found["packed"] == found["rows"] == found["taken"] == ["compare"]
    assert found["sine"] == ["sine"]


LOOP = """
HloModule loop
both { a = pred[] parameter(0) b = pred[] parameter(1) ROOT and = pred[] and(a, b) }
body {
  state = (s32[], f32[4,8], s32[2]) parameter(0)
  round = s32[] get-tuple-element(state), index=0
  x = f32[4,8] get-tuple-element(state), index=1
  limits = s32[2] get-tuple-element(state), index=2
  place = s32[2] broadcast(round), dimensions={}
  yes = pred[] constant(true)
  within = pred[2] compare(limits, place), direction=GE
  is_within = pred[] reduce(within, yes), dimensions={0}, to_apply=both
  chosen = pred[4,8] broadcast(is_within), dimensions={}
  opposite = f32[4,8] negate(x)
  written = f32[4,8] select(chosen, opposite, x)
  one = s32[] constant(1)
  next = s32[] add(round, one)
  ROOT states = (s32[], f32[4,8], s32[2]) tuple(next, written, limits)
}
condition {
  last = (s32[], f32[4,8], s32[2]) parameter(0)
  done = s32[] get-tuple-element(last), index=0
  end = s32[] constant(8)
  ROOT is_left = pred[] compare(done, end), direction=LT
}
ENTRY main {
  argument = f32[4,8] parameter(0)
  zero = s32[] constant(0)
  ends = s32[2] constant({4, 8})
  first = (s32[], f32[4,8], s32[2]) tuple(zero, argument, ends)
  rounds = (s32[], f32[4,8], s32[2]) while(first), condition=condition, body=body, NAME
  ROOT result = f32[4,8] get-tuple-element(rounds), index=1
}
"""


@pytest.mark.parametrize(
    ("function", "operation"),
    [(lambda x: x.at[0].add(1.0), "scatter"), (lambda x: lax.fori_loop(0, 8, lambda i, x: jnp.sin(x) * i, x), "while")],
)
def test_the_loop_of_an_expanded_operation_is_its_own(function, operation):
    found = joined(function, LOOP.replace("NAME", f"{{{operation}}}"), X)
    assert found["rounds"] == [operation]
    helpers = [operation] if operation == "scatter" else []  # A loop of the program has operations of its own.
    assert found["is_within"] == found["written"] == found["next"] == found["is_left"] == helpers


PARTS = """
HloModule parts
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT added = f32[] add(a, b) }
ENTRY main {
  x = f32[8,5] parameter(0)
  w = f32[2,7] parameter(1)
  place = s32[] parameter(2)
  zero = s32[] constant(0)
  whole = f32[8,5] all-reduce(x), replica_groups={}, to_apply=sum
  part = f32[2,5] dynamic-slice(whole, place, zero), dynamic_slice_sizes={2,5}
  ROOT product = f32[5,7] dot(part, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}, {dot_general}
}
"""


def test_a_collective_is_found_by_the_product_of_its_parts():
    """A contraction's operands may be swapped, and a gradient's are of the forward pass's `shard_map`."""

    def mapped(function, *specs):
        mesh = Mesh(np.array(jax.devices()[:4]), ("i",))
        return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=P("i"))

    def f(x, w):
        h = mapped(lambda x: lax.psum_scatter(x, "i", tiled=True), P("i"))(x)
        return mapped(lambda w, h: jnp.sin(w).T @ h, P("i"), P("i"))(w, h)

    found = joined(f, PARTS, np.ones((32, 5), np.float32), np.ones((8, 7), np.float32))
    assert (found["product"], found["whole"]) == (["dot_general"], ["reduce_scatter"])


CALLED = """
HloModule called
ENTRY main {
  x = f32[4,8] parameter(0)
  w = f32[8,8] parameter(1)
  product = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general}
  ROOT expanded = f32[4,8] dot(product, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {call}
}
"""


def sources_of(module: HloModule, origins: Origins):
    """As an audit joins them."""
    return sources(module, origins.program, (origins.ids_of(i.op_name) for i in module.instructions()))


@pytest.mark.parametrize("by", [join, sources_of])
def test_what_is_named_after_a_call_is_not_what_the_call_takes(by):
    """TPU's compiler makes products of an FFT, and names them after the call that holds it."""
    found = joined(lambda x, w: jax.jit(jnp.sin)(x @ w), CALLED, X, W, by=by)
    assert (found["product"], found["expanded"]) == (["dot_general"], [])


PIECES = """
HloModule pieces
start { w1 = f32[2,8] parameter(0) ROOT begun = f32[8,8] all-gather(w1), channel_id=7, dimensions={0}, replica_groups={} }
beside {
  x = f32[4,8] parameter(0)
  v = f32[8,8] parameter(1)
  w2 = f32[2,8] parameter(2)
  first = f32[4,8] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general}
  running = f32[8,8] all-gather(w2), channel_id=7, dimensions={0}, replica_groups={}
  ROOT both = (f32[4,8], f32[8,8]) tuple(first, running)
}
done {
  begun1 = f32[8,8] parameter(0)
  w3 = f32[2,8] parameter(1)
  ended = f32[8,8] all-gather(w3), channel_id=7, dimensions={0}, replica_groups={}
  ROOT gathered = f32[8,8] custom-call(begun1, ended), custom_call_target="AsyncCollectiveDone"
}
ENTRY main {
  x1 = f32[4,8] parameter(0)
  v1 = f32[8,8] parameter(1)
  w = f32[2,8] parameter(2)
  started = f32[8,8] fusion(w), kind=kLoop, calls=start
  between = (f32[4,8], f32[8,8]) fusion(x1, v1, w), kind=kOutput, calls=beside
  hidden = f32[4,8] get-tuple-element(between), index=0
  weights = f32[8,8] fusion(started, w), kind=kLoop, calls=done
  ROOT second = f32[4,8] dot(hidden, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general1}
}
"""


def test_the_pieces_of_a_collective_are_of_what_takes_its_value():
    """TPU's compiler puts a piece into the fusion of the product that runs meanwhile; a channel tells what belongs together."""
    found = joined(lambda x, v, w: x @ v @ w, PIECES, X, W, W)
    assert found["begun"] == found["running"] == found["ended"] == ["dot_general1"]
    assert found["first"] == ["dot_general"]
