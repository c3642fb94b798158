# SPDX-License-Identifier: Apache-2.0
"""How often each instruction runs: held against XLA's own counts, and programs whose runs are known by construction."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlotag
from hlotag import _compat
from hlotag.hlo.collectives import find_starts
from hlotag.hlo.module import HloModule, of_executable
from hlotag.hlo.trips import Trips
from hlotag.hlo.work import find_callers, measure

X = jnp.ones((64, 64))
PRODUCT = 2 * 64**3  # flops


def compiled(f):
    return jax.jit(f).lower(X).compile()


def flops_of(audit):
    return sum(row.flops for row in audit.costs_by("operation"))


def twice(x):
    return x @ x @ x


CONDITIONALS = {
    "cond": lambda x: lax.cond(x.sum() > 0, lambda x: x @ x, twice, x),
    "reversed": lambda x: lax.cond(x.sum() > 0, twice, lambda x: x @ x, x),
    "switch": lambda x: lax.switch(jnp.int32(x.sum()), [lambda x, n=n: x @ (x + n) for n in range(8)], x),
    "nested": lambda x: lax.cond(x.sum() > 0, lambda x: lax.cond(x[0, 0] > 1, lambda x: x @ x, twice, x), lambda x: x @ x, x),
}


@pytest.mark.parametrize("name", CONDITIONALS)
def test_a_conditional_counts_as_xla_counts_it(name):
    totals = compiled(CONDITIONALS[name]).cost_analysis()
    audit = hlotag.audit(CONDITIONALS[name], X, effects=False)
    assert flops_of(audit) == totals["flops"] + totals.get("transcendentals", 0)
    assert any(each.runs == 0 and each.most_runs == 1 for each in audit.instructions if each.opcode == "dot")


def counted(condition, change, start):
    return lambda x: lax.while_loop(lambda s: condition(s[0]), lambda s: (change(s[0]), s[1] @ s[1]), (start, x))[1]


LOOPS = {
    "fori": (lambda x: lax.fori_loop(0, 7, lambda _, x: x @ x, x), [7]),
    "scan": (lambda x: lax.scan(lambda c, y: (jnp.tanh(c @ x) + y, c.sum()), x, jnp.arange(12.0)), [12]),
    "from 2": (lambda x: lax.fori_loop(2, 9, lambda _, x: x @ x, x), [7]),
    "down by 3": (counted(lambda i: i > 0, lambda i: i - 3, 20), [7]),
    "at most": (counted(lambda i: i <= 20, lambda i: i + 5, 0), [5]),
    "unequal": (counted(lambda i: i != 8, lambda i: i + 2, 0), [4]),
    "nested": (lambda x: lax.fori_loop(0, 3, lambda _, x: lax.fori_loop(0, 5, lambda _, x: jnp.sin(x @ x), x), x), [3, 5]),
    "by data": (lambda x: lax.fori_loop(0, jnp.int32(x.sum()), lambda _, x: x @ x, x), [None]),
    "by a value": (lambda x: lax.while_loop(lambda x: x.sum() > 0, lambda x: x @ x - 1, x), [None]),
}


@pytest.mark.parametrize("name", LOOPS)
def test_trips_are_read_from_the_condition_where_xla_does_not_count_them(name):
    """Held against the program, and against XLA's count: the text is the same without that."""
    function, expected = LOOPS[name]
    (module,) = of_executable(compiled(function))
    loops = [i for i in module.instructions() if i.opcode == "while"]
    assert sorted(map(str, map(Trips(module).of, loops))) == sorted(map(str, expected))
    for loop in loops:
        loop.proto.backend_config = b""
    assert sorted(map(str, map(Trips(module).of, loops))) == sorted(map(str, expected))


def test_a_loop_of_unknown_trips_has_a_note():
    audit = hlotag.audit(LOOPS["by data"][0], X, effects=False)
    assert flops_of(audit) == pytest.approx(PRODUCT, rel=0.02)
    (note,) = [note for note in audit.notes if "unknown trips" in note]
    assert "while" in note and "test_runs.py:" in note
    assert not [note for note in hlotag.audit(LOOPS["fori"][0], X, effects=False).notes if "unknown" in note]


SHARED = """HloModule m

inner {
  p = f32[64,64] parameter(0)
  ROOT d = f32[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

body {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  called = f32[64,64] call(x), to_apply=inner
  ROOT made = (s32[], f32[64,64]) tuple(next, called)
}

condition {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(5)
  ROOT less = pred[] compare(i, limit), direction=LT
}

ENTRY main {
  x = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  state = (s32[], f32[64,64]) tuple(zero, x)
  loop = (s32[], f32[64,64]) while(state), condition=condition, body=body
  left = f32[64,64] get-tuple-element(loop), index=1
  a = f32[64,64] call(left), to_apply=inner
  ROOT b = f32[64,64] call(a), to_apply=inner
}
"""


def runs_in(text):
    module = HloModule(_compat.runtime.hlo_from_text(text))
    callers = find_callers(module, measure(module))
    return {computation.name: callers[computation.id].runs for computation in module.computations.values()}


def test_a_computation_that_several_calls_run_counts_the_sum_of_their_runs():
    assert runs_in(SHARED) == {"inner": 7, "body": 5, "condition": 5, "main": 1}


ASYNCHRONOUS = """HloModule m

inner {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p)
}

ENTRY main {
  x = f32[8] parameter(0)
  start = ((f32[8]), f32[8], u32[]) async-start(x), calls=inner
  update = ((f32[8]), f32[8], u32[]) async-update(start)
  ROOT done = f32[8] async-done(update)
}
"""


def test_an_asynchronous_computation_runs_once():
    assert runs_in(ASYNCHRONOUS) == {"inner": 1, "main": 1}


CHAIN = """HloModule m

start {
  p = f32[8] parameter(0)
  ROOT a = f32[64] all-gather(p), dimensions={0}, replica_groups={}, frontend_attributes={chain_id="0"}
}

beside {
  p = f32[8] parameter(0)
  ROOT b = f32[64] all-gather(p), dimensions={0}, replica_groups={}, frontend_attributes={chain_id="0"}
}

ENTRY main {
  x = f32[8] parameter(0)
  first = f32[64] fusion(x), kind=kCustom, calls=start
  second = f32[64] fusion(x), kind=kCustom, calls=beside
  alone = f32[64] all-gather(x), dimensions={0}, replica_groups={}
  ROOT all = (f32[64], f32[64], f32[64]) tuple(first, second, alone)
}
"""


def test_a_collective_in_several_fusions_starts_once():
    """TPU's compiler writes it into the fusions that it starts in, runs beside, and ends in."""
    module = HloModule(_compat.runtime.hlo_from_text(CHAIN))
    assert find_starts(module.list_as_run()) == {"a": "a", "b": "a"}
