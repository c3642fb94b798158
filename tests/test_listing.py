# SPDX-License-Identifier: Apache-2.0
"""The list of all instructions, against the text of the compiled module."""

import re
from collections import Counter

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag import _compat
from hlotag.audits.joined import Joined
from hlotag.audits.rows import describe_instructions
from hlotag.cli.commands import main
from hlotag.hlo import HloModule
from hlotag.results.listing import list_instructions
from hlotag.results.tags import Op

X = jnp.ones((64, 64))
# What computes and moves nothing, and has no event.
SILENT = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion"}


def step(x, w):
    with hlotag.tagged({"part": "up"}), jax.named_scope("mlp/up"):
        y = jnp.tanh(x @ w)
    with hlotag.tagged({"part": "down"}), jax.named_scope("mlp/down"):
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y @ w), y).sum()


@pytest.fixture(scope="module")
def audit():
    with hlotag.stage():
        return hlotag.audit(jax.grad(lambda x, w: jax.checkpoint(step)(x, w)), X, X)


def test_each_instruction_of_the_program_is_listed_in_the_order_of_the_text():
    with hlotag.stage():
        lowered = jax.jit(step).lower(X, X)
        listed = [each.instruction.name for each in list_instructions(hlotag.audit(lowered), order="schedule")]
        text = lowered.compile().as_text() or ""
    assert "is_scheduled=true" in text
    blocks = re.findall(r"^(?:ENTRY )?%\S+ .*? \{\n(.*?)^\}", text, re.M | re.S)
    in_text = [re.findall(r"^\s+(?:ROOT )?%([\w.\-]+) = [^=]*? ([a-z][\w\-]*)\(", inside, re.M) for inside in blocks]
    assert sum(len(found) > 3 for found in in_text) > 1
    # The loop's counter has no event.
    missing = [opcode for found in in_text for name, opcode in found if opcode not in SILENT and name not in listed]
    assert set(missing) <= {"add", "compare"}, missing
    for found in in_text:
        names = [name for name, _ in found]
        assert [name for name in listed if name in names] == [name for name in names if name in listed]


WHERE = {
    "part=up": lambda each: each.tags.get("part") == "up",
    "part": lambda each: "part" in each.tags,
    "scope=mlp": lambda each: "mlp" in each.instruction.scope.split("/"),
    "phase=recomputed": lambda each: each.instruction.phase == "recomputed",
    "operation=dot_general, part=down": lambda each: each.op and "dot" in each.op.name and each.tags.get("part") == "down",
    "source=test_listing.py": lambda each: each.op and each.op.file.endswith("test_listing.py"),
    "opcode=dot": lambda each: each.instruction.opcode == "dot",
}


@pytest.mark.parametrize("where", WHERE)
def test_patterns_choose_instructions(audit, where):
    chosen, every = list_instructions(audit, where), list_instructions(audit)
    assert 0 < len(chosen) < len(every) or where == "source=test_listing.py"
    assert chosen == [each for each in every if WHERE[where](each)]


def test_the_name_of_a_fusion_chooses_what_is_in_it(audit):
    fusion, number = Counter(i.fusion for i in audit.instructions if i.fusion).most_common(1)[0]
    inside = list_instructions(audit, fusion)
    assert number == len(inside) > 1 and all(each.instruction.fusion == fusion for each in inside)


@pytest.mark.parametrize(
    ("where", "hint"), [("prat=up", "did you mean part?"), ("loop_7", "or name an"), ("=x", "choose from part")]
)
def test_a_name_that_chooses_nothing_is_an_error(audit, where, hint):
    with pytest.raises(hlotag.errors.ArgumentError, match=re.escape(hint)):
        list_instructions(audit, where)


PLACES = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[4] parameter(0)
  plain = f32[4] sine(x), metadata={op_name="jit(f)/named/sin"}
  merged = f32[4] multiply(plain, plain), metadata={op_name="jit(f)/named/mul;jit(f)/other/mul"}
  of_loop = f32[4] cosine(merged), metadata={op_name="jit(f)/named/while"}
  reduced = f32[4] all-reduce(of_loop), replica_groups={}, to_apply=sum, metadata={op_name="jit(f)/named/psum"}
  ROOT combined = (f32[4], f32[4]) all-reduce(reduced, merged), replica_groups={}, to_apply=sum,
    metadata={op_name="jit(f)/named/psum"}
}"""


def test_the_scope_of_an_instruction_is_that_in_its_name_unless_the_name_is_another_ones():
    module = HloModule(_compat.runtime.hlo_from_text(PLACES))
    by_name = {i.name: i for i in module.instructions()}
    numbers = {"plain": (0,), "merged": (0, 1), "of_loop": (0,), "reduced": (0,), "combined": (0, 1)}
    joined = {by_name[name]: found for name, found in numbers.items()}
    named = joined | {by_name["of_loop"]: (2,)}
    ops = [Op(n, name) for n, name in enumerate(["stablehlo.multiply", "stablehlo.multiply", "stablehlo.while"])]
    rows = describe_instructions(Joined(module, named, joined, lambda *_: ("own", "backward")), ops)
    assert {row.name: row.scope for row in rows if row.owners} == {
        **dict.fromkeys(("plain", "merged", "reduced"), "named"),
        **dict.fromkeys(("of_loop", "combined"), "own"),
    }
    assert {row.name: row.scopes for row in rows if row.scopes} == {"merged": ("own", "own")}


def test_orders(audit):
    work = [each.instruction.effort * each.instruction.runs for each in list_instructions(audit)]
    assert work == sorted(work, reverse=True)
    ops = [each.op.id for each in list_instructions(audit, order="program") if each.op]
    assert ops == sorted(ops)
    with pytest.raises(hlotag.errors.ArgumentError, match="choose from work, program"):
        list_instructions(audit, order="time")


def test_a_command_lists_a_file_of_hlo(tmp_path, capsys):
    with hlotag.stage():
        text = jax.jit(step).lower(X, X).compile().as_text() or ""
    (tmp_path / "step.hlo").write_text(text)
    assert main(["audit", str(tmp_path / "step.hlo"), "--instructions", "opcode=dot"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if re.search(r"\bdot\S*\s+dot\b", line)]
    assert len(lines) == len(re.findall(r" dot\(", text)) > 0
