# SPDX-License-Identifier: Apache-2.0
"""Tags of collectives on four GPUs and four chips of a TPU: the program's own, and those that XLA's partitioner makes."""

import re
from math import prod
from typing import Any

import jax
import parallel_programs
import pytest
from hlo_text import without_names
from jax.extend.mlir import ir

import hlo_programs
import hlotag
from compilers import Compiler
from conftest import PLATFORM
from hlotag.audits import TagState
from hlotag.hlo.module import Instruction
from hlotag.hlo.origins import walk

NUMBER = "test-compilers-number-operations"
COLLECTIVE = re.compile(r"all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter")
# Where one tag on all operations keeps collectives apart: TPU's compiler combines none whose attributes
# differ, and XLA's partitioner gives some of them none.
KEPT_APART = {("tpu", "data jit"), ("tpu", "sharded jit")}
SUMS = ("all-reduce", "reduce-scatter")


@pytest.fixture(scope="module", autouse=True)
def _numbered() -> None:
    hlotag.register_pass(number_operations, name=NUMBER)


def number_operations(module: ir.Module) -> None:
    """Tags each operation with `NAME-NUMBER-ELEMENTS`, of its result: which one it is, and how large."""
    with module.context:
        for number, operation in enumerate(walk(module.operation)):
            if operation.name in hlo_programs.NEVER_TAGGED or not operation.results:
                continue
            kind = operation.results[0].type
            size = prod(ir.RankedTensorType(kind).shape) if isinstance(kind, ir.RankedTensorType) else 0
            value = f"{operation.name.removeprefix('stablehlo.')}-{number}-{size}"
            operation.attributes[hlo_programs.ATTRIBUTES] = ir.DictAttr.get({"t": ir.StringAttr.get(value)})


def lower(compiler: Compiler, name: str, **stage: Any) -> Any:
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage(**stage):
        return parallel_programs.lower(name, compiler.devices)


def number_of_elements(instruction: Instruction) -> int:
    shape = instruction.proto.shape
    return sum(prod(s.dimensions) for s in (shape.tuple_shapes or [shape]))


def tags_of(instruction: Instruction) -> list[str]:
    return instruction.attributes["t"].split(",")


@pytest.mark.parametrize("name", parallel_programs.PROGRAMS)
def test_collectives_have_the_tags_of_all_that_they_came_from(four, name):
    lowered = lower(four, name, pipeline=f"{hlotag.passes.DEFAULT_PIPELINE},{NUMBER}")
    found = hlo_programs.compiled_instructions(lowered)
    assert [i for i in found if "t" not in i.attributes and "jit(" in i.op_name] == []
    collectives = [i for i in found if COLLECTIVE.match(i.opcode) or (i.opcode == "async-done" and COLLECTIVE.match(i.name))]
    assert [i for i in collectives if "t" not in i.attributes] == []
    for i in collectives:
        if i.opcode.endswith("-done"):
            assert i.attributes == i.operands[0].attributes
    own = re.findall(rf"stablehlo\.((?:{COLLECTIVE.pattern.replace('-', '_')}))\"?\(", lowered.as_text())
    operations = {tag for i in collectives for tag in tags_of(i) if COLLECTIVE.match(tag.replace("_", "-"))}
    assert len(operations) == len(own), operations
    if own:
        assert {tag for i in collectives for tag in tags_of(i)} == operations
    # How large a sum is says whose it is, whatever XLA did to the layouts of its parts.
    for i in collectives:
        if i.opcode in SUMS:
            parts = parallel_programs.N if i.opcode == "reduce-scatter" and not own else 1
            sizes = 0
            for tag in tags_of(i):
                # An all-reduce whose result is scattered later sums all parts of it.
                is_scattered_later = i.opcode == "all-reduce" and tag.startswith("reduce_scatter")
                sizes += int(tag.rpartition("-")[2]) * (parallel_programs.N if is_scattered_later else 1)
            assert sizes == number_of_elements(i) * parts, (i, i.attributes)


@pytest.mark.parametrize("name", parallel_programs.PROGRAMS)
def test_all_but_attributes_is_as_the_compiler_made_it(four, name):
    one_tag = {"rules": [hlotag.Rule({"k": "v"}, op="*")]}
    own_tags = {"pipeline": f"{hlotag.passes.DEFAULT_PIPELINE},{NUMBER}"}
    plain, tagged, restored, hidden = (
        without_names(lower(four, name, **stage).compile().as_text())
        for stage in ({}, {"hlo": False, **one_tag}, one_tag, own_tags)
    )
    assert (tagged == plain) == ((PLATFORM, name) not in KEPT_APART)
    assert restored == hidden == plain


@pytest.mark.parametrize("name", parallel_programs.PROGRAMS)
def test_no_tag_of_a_parallel_program_is_lost(four, name):
    audit = hlotag.audit(lower(four, name, pipeline=f"{hlotag.passes.DEFAULT_PIPELINE},{NUMBER}"))
    # A mask that XLA's partitioner makes for two of them has the tag of one; both tags are on the collectives that move.
    masked = ("stablehlo.pad", "stablehlo.slice") if (PLATFORM, name) == ("tpu", "pipeline jit") else ()
    assert [tag for tag in audit.lost if tag.op.name not in masked] == []
    collectives = {tag.state for tag in audit.tags if tag.value.startswith(("all_", "reduce_scatter", "collective"))}
    assert collectives <= {TagState.KEPT, TagState.RESTORED}
