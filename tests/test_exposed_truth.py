# SPDX-License-Identifier: Apache-2.0
"""Exposed communication of real programs whose overlap is known by construction: their operations sleep.

A device sleeps before it starts its reductions, and beside them, for as long as it is told. A sleep needs no processor, so a busy
machine does not change what overlaps.
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
from time_truth import exposed, parse

_UNIT = 0.2  # seconds
_BUILT = 2 * _UNIT  # a step: what its slowest device sleeps
_STEPS = 3
_TOLERANCE = 0.05  # of a step


def _wait(seconds: np.ndarray) -> np.ndarray:
    time.sleep(float(seconds[0]))
    return np.float32(seconds)


def _sleep(seconds: jax.Array) -> jax.Array:
    return jax.pure_callback(_wait, jax.ShapeDtypeStruct((1,), jnp.float32), seconds)


def _step(before: jax.Array, beside: jax.Array, collectives: int) -> jax.Array:
    """Reductions over devices, which wait for one sleep. Another sleep needs none of them."""
    slept = _sleep(before)
    # XLA combines reductions of one kind.
    return sum((reduction(slept, "x") for reduction in (jax.lax.psum, jax.lax.pmax, jax.lax.pmin)[:collectives]), _sleep(beside))


# By name: the units that each device sleeps before the reductions and beside them, how many these are, and the exposed part of a
# step.
CASES = {
    "nobody waits": ([2, 2], [0, 0], 1, 0),
    "one waits": ([2, 0], [0, 0], 1, 1 / 2),
    "one waits and computes as long": ([2, 0], [0, 2], 1, 0),
    "one waits and computes half as long": ([2, 0], [0, 1], 1, 1 / 4),
    "two devices wait for a slow third": ([2, 0, 0], [0, 0, 0], 1, 2 / 3),
    "two wait for a slow third, and one computes": ([2, 0, 0], [0, 2, 0], 1, 1 / 3),
    "two in flight": ([2, 0], [0, 0], 2, 1 / 2),
    "two in flight beside half as much": ([2, 0], [0, 1], 2, 1 / 4),
    "three in flight": ([2, 0], [0, 0], 3, 1 / 2),
}
_QUICK = {"one waits and computes half as long", "two devices wait for a slow third"}


@pytest.mark.parametrize("case", [pytest.param(case, marks=() if case in _QUICK else pytest.mark.slow) for case in CASES])
def test_exposed_is_what_it_is_by_construction(case, tmp_path):
    before, beside, collectives, expected = CASES[case]
    count = len(beside)
    mesh = jax.make_mesh((count,), ("x",), devices=jax.devices()[:count])
    step = lambda before, beside: _step(before, beside, collectives)
    f = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"), check_vma=False))
    placed = [jax.device_put(np.array(units, np.float32) * _UNIT, NamedSharding(mesh, P("x"))) for units in (before, beside)]
    compiled = f.lower(*placed).compile()
    jax.block_until_ready(compiled(*placed))
    with jax.profiler.trace(tmp_path):
        for number in range(_STEPS):
            with jax.profiler.StepTraceAnnotation("step", step_num=number):
                jax.block_until_ready(compiled(*placed))
    found = hlotag.read_profile(tmp_path, by="operation")
    shown = found.exposed / _BUILT
    counted = exposed(tmp_path, found.name, parse(compiled.as_text()), len(found.steps)) * found.total_seconds / _BUILT
    print(f"{case:48}exposed {shown:6.1%}   by construction {expected:6.1%}   counted {counted:6.1%}")
    assert shown == pytest.approx(expected, abs=_TOLERANCE)
    assert counted == pytest.approx(expected, abs=_TOLERANCE)
