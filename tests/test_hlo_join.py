# SPDX-License-Identifier: Apache-2.0
"""Every instruction has the tags of the operations that it came from, on the programs and by the truth of `hlo_programs`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_programs
import hlotag
from hlo_programs import PROGRAMS, compiled_instructions, is_xlas_own, program
from hlotag.hlo.module import Instruction
from hlotag.hlo.restore import Rules
from programs import X


@pytest.fixture(scope="module")
def signed() -> str:
    hlotag.register_pass(hlo_programs.sign_operations, name="test-sign-operations")
    return f"{hlotag.DEFAULT_PIPELINE},test-sign-operations"


def compiled(name: str, **stage) -> list[Instruction]:
    function, arguments = program(name)
    with hlotag.stage(**stage):
        return compiled_instructions(jax.jit(function).lower(*arguments))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_tag_is_lost_and_no_heavy_one_is_wrong(name, signed):
    instructions = compiled(name, pipeline=signed)
    assert [i for i in instructions if "t" not in i.attributes and not is_xlas_own(i)] == []
    heavy = {i: s for i in instructions if (s := hlo_programs.signature_of_instruction(i)) is not None}
    assert len(heavy) >= 3
    assert {i: (i.attributes, s) for i, s in heavy.items() if not hlo_programs.has_signature(i, s)} == {}


def tags(function, *arguments):
    """{opcode: tags} of a program's named instructions."""
    found: dict[str, list[dict[str, str]]] = {}
    with hlotag.stage():
        for i in compiled_instructions(jax.jit(lambda *a: function(*a)).lower(*arguments)):
            found.setdefault(i.opcode, []).append(i.attributes)
    return found


def writes(x, w):
    """Whether the indices are within bounds is the same in each round."""

    def step(x, row):
        with hlotag.tagged({"k": "write"}):
            return x.at[0, 1].set(row), ()

    with hlotag.tagged({"k": "loop"}):
        return jax.lax.scan(step, x, w)[0]


def test_what_xla_takes_out_of_a_loop_has_the_tag_of_its_body():
    (reduced,) = tags(writes, np.ones((2, 2, 3, 9, 4), np.float32), np.ones((5, 3, 9, 4), np.float32))["reduce"]
    assert reduced == {"k": "write"}


COLLECTIVES = ({"k": "b", "_scheduling_group_id": "2"}, {"k": "a", "_scheduling_group_id": "1"}, {"k": "b", "c": "1"})


@pytest.mark.parametrize("left", [{}, {"k": "a,b"}, {"k": "a"}, {"k": "x,a", "xla": "1"}])
def test_a_combined_collective_has_the_values_of_all(left):
    """Joined as XLA joins them, whatever XLA left of them; but it is in one place in the schedule."""
    rules = Rules([*COLLECTIVES, {"k": "x"}, {"k": "another's"}], ("*",))
    kept = {key: value for key, value in left.items() if key == "xla"}
    joined = {"k": "a,b", "c": "1", "_scheduling_group_id": "2"}
    assert rules.entries_for(left, (0, 1, 2), (), True, True) == joined | kept
    assert rules.entries_for({"k": "a,of XLA"}, (0, 1, 2), (), True, True) == joined | {"k": "a,of XLA"}
    assert rules.entries_for({}, (0, 1, 2), (), True, False) == joined | {"k": "b"}


def test_entries_of_libraries_are_merged():
    def f(x):
        with hlotag.tagged({"k": "v"}):
            return jnp.linalg.cholesky(x @ x.T + jnp.eye(4))

    calls = [i for i in tags(f, X)["custom-call"] if i]
    assert calls
    assert all(i["k"] == "v" and len(i) > 1 for i in calls)
