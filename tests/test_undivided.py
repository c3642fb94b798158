# SPDX-License-Identifier: Apache-2.0
"""Time that a trace does not divide: an event with a branch, or a loop of unknown trips, beside other work."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import hlotag
from hlotag.profiles.program import Program

X, N = jnp.ones(4096), jnp.int32(0)


def heavy(x):
    with hlotag.tagged({"layer": "heavy"}):
        return jnp.sin(jnp.exp(x) * 1.1)


def light(x):
    with hlotag.tagged({"layer": "light"}):
        return x * 1.01 + 0.5


def rest(x):
    with hlotag.tagged({"layer": "rest"}):
        return jnp.cos(x) + 1


def branch_beside(x, n):
    return lax.fori_loop(0, 3, lambda _, x: rest(lax.cond(n > 0, heavy, light, x)), x)


def loop_beside(x, n):
    return lax.fori_loop(0, 3, lambda _, x: rest(lax.fori_loop(0, n, lambda _, x: light(x), x)), x)


def branches_of_one_layer(x, n):
    return lax.fori_loop(0, 3, lambda _, x: rest(lax.cond(n > 0, rest, lambda x: rest(rest(x)), x)), x)


def loop_alone(x, n):
    return lax.fori_loop(0, n, lambda _, x: rest(light(x)), x)


def whole_loops(function, by="layer"):
    """For each instruction that runs a whole loop, whether its parts are sure."""
    with hlotag.stage():
        program = Program(hlotag.audit(function, X, N, effects=False))
    groups = program.grouping(by)
    runs = {each.caller for each in program.audit.instructions if each.caller}
    inner = {each.kernel for each in program.audit.instructions if each.caller}
    return [bool(program.sure_parts(name, groups)) for name in runs - inner if program.parts(name)]


def test_a_branch_beside_other_work_is_not_divided():
    assert whole_loops(branch_beside) == [False]
    assert whole_loops(branches_of_one_layer) == [True]
    assert whole_loops(branches_of_one_layer, "operation") == [False]


def test_a_loop_of_unknown_trips_beside_other_work_is_not_divided():
    assert whole_loops(loop_beside) == [False]
    assert whole_loops(loop_alone) == [True]


def test_undivided_time_has_a_row_and_a_note_that_names_the_branch():
    with hlotag.stage():
        profile = hlotag.profile(branch_beside, X, N, by="layer", steps=2)
    if jax.__version_info__ < (0, 11):  # Its traces have an event for each part of a loop.
        assert {row.value for row in profile.rows if row.key and row.value} == {"light", "rest"}
        return
    assert {row.value for row in profile.rest} >= {"undivided"}
    assert {row.value for row in profile.rows if row.key} <= {""}
    (note,) = [note for note in profile.notes if "undivided" in note]
    assert "branch" in note and "test_undivided.py:" in note
    assert sum(row.seconds for row in profile.rows) == pytest.approx(profile.total_seconds)


def test_a_flag_of_xla_divides_loops_on_cpu():
    """A branch that never runs has no time at all."""
    flag = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0"
    script = """
import hlotag, test_undivided as t
with hlotag.stage():
    profile = hlotag.profile(t.branch_beside, t.X, t.N, by="layer", steps=2)
print({row.value: row.seconds > 0 for row in profile.rows if row.value in ("heavy", "light", "rest", "undivided")})
"""
    environment = {**os.environ, "XLA_FLAGS": flag, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert eval(done.stdout.splitlines()[-1]) in ({"light": True, "rest": True}, {"light": True, "rest": True, "heavy": False})
