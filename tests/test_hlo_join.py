# SPDX-License-Identifier: Apache-2.0
"""Every instruction has the tags of the operations that it came from, on the programs and by the truth of `hlo_programs`."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag
from hlo_programs import PROGRAMS, has_signature, is_xlas_own, program, sign_operations, signature_of_instruction
from hlotag import hlo_stage
from hlotag.hlo import join
from hlotag.hlo.module import Instruction, of_executable


@pytest.fixture(scope="module")
def signed() -> str:
    hlotag.register_pass(sign_operations, name="test-sign-operations")
    return f"{hlotag.DEFAULT_PIPELINE},test-sign-operations"


def compiled(name: str, **stage) -> list[Instruction]:
    function, arguments = program(name)
    with hlotag.stage(**stage):
        executable = jax.jit(function).lower(*arguments).compile()
    return [i for module in of_executable(executable) for i in module.instructions()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_instruction_loses_its_tag_and_no_heavy_one_has_a_wrong_one(name, signed):
    instructions = compiled(name, pipeline=signed)
    assert [i for i in instructions if "t" not in i.attributes and not is_xlas_own(i)] == []
    heavy = {i: s for i in instructions if (s := signature_of_instruction(i)) is not None}
    assert len(heavy) >= 3
    assert {i: (i.attributes, s) for i, s in heavy.items() if not has_signature(i, s)} == {}


def test_without_the_stage_inside_xla_there_is_something_to_restore(signed):
    instructions = compiled("mlp", pipeline=signed, hlo=False)
    assert [i for i in instructions if "t" not in i.attributes and not is_xlas_own(i)]
    assert [i for i in instructions if (s := signature_of_instruction(i)) is not None and not has_signature(i, s)]


def without_attributes(optimized: str) -> str:
    return re.sub(r", frontend_attributes=\{[^}]*\}", "", optimized)


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_but_attributes_is_as_xla_made_it(name):
    texts, results = [], []
    for hlo in (False, True):
        function, arguments = program(name)
        with hlotag.stage(hlo=hlo), hlotag.set_xla_metadata(k="v"):
            executable = jax.jit(function).lower(*arguments).compile()
        texts.append(without_attributes(executable.as_text()))
        results.append(jax.tree.leaves(executable(*arguments)))
    # Where XLA merges operations of one line, the numbers keep it from seeing that their locations are equal.
    if name == "mix":
        texts = [re.sub(r" stack_frame_id=\d+|^\d+ \{.*\}$", "", text, flags=re.M) for text in texts]
    assert texts[0] == texts[1]
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def tags(function, *arguments, hlo=True):
    """{opcode: tags} of a program's named instructions."""
    with hlotag.stage(hlo=hlo):
        executable = jax.jit(lambda *a: function(*a)).lower(*arguments).compile()
    found: dict[str, list[dict[str, str]]] = {}
    for module in of_executable(executable):
        for i in module.instructions():
            found.setdefault(i.opcode, []).append(i.attributes)
    return found


X, W = np.ones((4, 8), np.float32), np.ones((8, 8), np.float32)


def folded_transpose(x, w):
    with hlotag.tagged({"k": "dot"}):
        y = x @ w
    with hlotag.tagged({"k": "transpose"}):
        return y.T


def untagged_dot(x, w):
    y = x @ w
    with hlotag.tagged({"k": "transpose"}):
        return y.T


def equal_operations(x, w):
    with hlotag.tagged({"k": "first", "a": "1"}):
        y = jnp.sin(x)
    with hlotag.tagged({"k": "second", "b": "2"}):
        z = jnp.sin(x)
    return y @ w + z @ (2 * w)


def simplified(x, w):
    with hlotag.tagged({"k": "sine"}):
        y = jnp.sin(x)
    with hlotag.tagged({"j": "add"}):
        y = y + 0
    return y @ w


@pytest.mark.parametrize(
    ("function", "opcode", "expected"),
    [
        (folded_transpose, "dot", {"k": "dot"}),
        (untagged_dot, "dot", {}),
        # The union; the first in the program wins where they differ.
        (equal_operations, "sine", {"k": "first", "a": "1", "b": "2"}),
        (simplified, "sine", {"k": "sine"}),
    ],
)
def test_rules(function, opcode, expected):
    assert all(found == expected for found in tags(function, X, W)[opcode])


def test_helpers_do_not_get_what_names_one_place():
    def f(x):
        with hlotag.tagged({"_scheduling_group_id": "1", "k": "v"}):
            return jnp.square(x) * 3

    found = tags(f, X)
    assert found["constant"] == [{"k": "v"}]
    assert {"_scheduling_group_id": "1", "k": "v"} in found["multiply"]


def test_entries_of_libraries_are_merged():
    def f(x):
        with hlotag.tagged({"k": "v"}):
            return jnp.linalg.cholesky(x @ x.T + jnp.eye(4))

    calls = [i for i in tags(f, X)["custom-call"] if i]
    assert calls
    assert all(i["k"] == "v" and len(i) > 1 for i in calls)


def test_recorded_joins_are_what_join_gives():
    with hlotag.stage(), hlo_stage.recorded() as records:
        jax.jit(lambda x, w: folded_transpose(x, w)).lower(X, W).compile()
    (record,) = records
    assert {i.name: ids for i, ids in join(record.before, record.origins).items()} == record.ids
