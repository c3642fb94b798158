# SPDX-License-Identifier: Apache-2.0
"""Every instruction has the tags of the operations that it came from, on the programs and by the truth of `hlo_programs`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.mlir import ir

import hlo_programs
import hlotag
from hlo_programs import PROGRAMS, compiled_instructions, is_xlas_own, program
from hlotag.hlo.module import Instruction
from hlotag.hlo.opcodes import MOVES
from hlotag.hlo.origins import walk
from hlotag.hlo.restore import Rules
from hlotag.lowering import hlo_stage
from programs import X


@pytest.fixture(scope="module")
def signed() -> str:
    hlotag.register_pass(hlo_programs.sign_operations, name="test-sign-operations")
    return f"{hlotag.DEFAULT_PIPELINE},test-sign-operations"


@pytest.fixture(scope="module")
def numbered() -> str:
    hlotag.register_pass(number_operations, name="test-number-operations")
    return "test-number-operations"


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


def test_without_the_hlo_stage_tags_are_lost(signed):
    instructions = compiled("mlp", pipeline=signed, hlo=False)
    assert [i for i in instructions if "t" not in i.attributes and not is_xlas_own(i)]
    assert [
        i
        for i in instructions
        if (s := hlo_programs.signature_of_instruction(i)) is not None and not hlo_programs.has_signature(i, s)
    ]


def number_operations(module: ir.Module) -> None:
    """Tags each operation with its number. Slow to compile, and XLA moves attributes too, but it does not use names to do so."""
    with module.context:
        for number, operation in enumerate(walk(module.operation)):
            if operation.name not in hlo_programs.NEVER_TAGGED:
                operation.attributes[hlo_programs.ATTRIBUTES] = ir.DictAttr.get({"number": ir.StringAttr.get(str(number))})


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "transformer"])
def test_joins_agree_with_unique_attributes(name, numbered):
    function, arguments = program(name)
    with hlotag.stage(numbered, hlo=["number"]), hlo_stage.recorded() as records:
        jax.jit(function).lower(*arguments).compile()
    (record,) = records
    agree, differ = 0, []
    for instruction in record.before.instructions():
        ids = record.ids[instruction.name]
        number = instruction.attributes.get("number", "")
        # Whether what only moves a value is its operand's or its own is anybody's guess; heavy ones have a better truth.
        if not number.isdigit() or instruction.opcode in MOVES | set(hlo_programs.HEAVY.values()) | {"fusion"}:
            continue
        # One of several merged operations of a kind, or a piece of an expansion.
        kinds = {record.origins[i].op for i in ids}
        is_part = record.origins[int(number)].op in kinds or any(kind.startswith("chlo.") for kind in kinds)
        agree += int(number) in ids
        if int(number) not in ids and not is_part:
            differ.append((instruction, number, ids))
    assert differ == []
    assert agree > 10


def tags(function, *arguments):
    """{opcode: tags} of a program's named instructions."""
    found: dict[str, list[dict[str, str]]] = {}
    with hlotag.stage():
        for i in compiled_instructions(jax.jit(lambda *a: function(*a)).lower(*arguments)):
            found.setdefault(i.opcode, []).append(i.attributes)
    return found


def equal_complex(x, w):
    with hlotag.tagged({"k": "first", "a": "1"}):
        y = jnp.sin(x * (1 + 2j))
    with hlotag.tagged({"k": "second", "b": "2"}):
        z = jnp.sin(x * (1 + 2j))
    with hlotag.tagged({"k": "third", "c": "3"}):
        u = jnp.sin(x * (1 - 2j))
    return y @ w + z @ (2 * w) + u @ (3 * w)


def in_one_place(x, w):
    with hlotag.tagged({"_scheduling_group_id": "1", "k": "v"}):
        return jnp.square(x) * 3


def writes(x, w):
    """Whether the indices are within bounds is the same in each round: XLA takes that out of the loop."""

    def step(x, row):
        with hlotag.tagged({"k": "write"}):
            return x.at[0, 1].set(row), ()

    with hlotag.tagged({"k": "loop"}):
        return jax.lax.scan(step, x, w)[0]


RULES = {
    # An expansion of each of the two sines that are computed. Equal ones have the union, of which the first in the program wins.
    "equal complex numbers": (
        *(equal_complex, ((4, 8), (8, 8)), "sine"),
        [{"k": "first", "a": "1", "b": "2"}, {"k": "third", "c": "3"}],
    ),
    "a helper of what is in one place": (
        *(in_one_place, ((4, 8), (8, 8)), "broadcast"),
        [{"_scheduling_group_id": "1", "k": "v"}],
    ),
    "what is in one place": (
        *(in_one_place, ((4, 8), (8, 8)), "multiply"),
        [{"_scheduling_group_id": "1", "k": "v"}, {"_scheduling_group_id": "1", "k": "v"}],
    ),
    "what XLA takes out of a loop": (writes, ((2, 2, 3, 9, 4), (5, 3, 9, 4)), "reduce", [{"k": "write"}]),
}


@pytest.mark.parametrize("case", RULES)
def test_rules(case):
    function, shapes, opcode, expected = RULES[case]
    found = tags(function, *(np.ones(shape, np.float32) for shape in shapes))[opcode]
    assert sorted(sorted(each.items()) for each in found) == sorted(sorted(each.items()) for each in expected)


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
