# SPDX-License-Identifier: Apache-2.0
"""The HLO pass inside XLA's compilers for GPU and TPU, which are in plugins and compile here without a client."""

import os
import sys
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import key_probes
import numpy as np
import pytest
from hlo_text import without_names

import hlo_programs
import hlotag
from compilers import Compiler, wrongly_signed
from conftest import PLATFORM
from hlo_programs import compiled_instructions, entries_with_fusion
from hlotag.lowering import hlo_pass

X = np.ones((64, 64), np.float32)
SIGN = "test-compilers-sign-operations"


@pytest.fixture(scope="module")
def signed() -> str:
    hlotag.register_key("t", compiler=False)
    hlotag.register_pass(hlo_programs.sign_operations, name=SIGN)
    return f"{hlotag.passes.DEFAULT_PIPELINE},{SIGN}"


def squares(x):
    with hlotag.tagged({"k": "v"}):
        return jnp.square(jnp.tanh(x @ x))


def lower(compiler: Compiler, name: str, **stage):
    function, arguments = hlo_programs.program(name)
    jax.clear_caches()  # What JAX traced before, for another test, has the frames and the devices of that.
    with hlotag.stage(**stage):
        return compiler.lower(function, *arguments)


def names_for(compiler: Compiler) -> list[str]:
    return [name for name in hlo_programs.PROGRAMS if name != "shard_map"] if len(compiler.devices) == 1 else ["shard_map"]


def test_tags_that_the_compiler_drops_are_restored(any_compiler):
    with hlotag.stage(hlo=False):
        dropped = compiled_instructions(any_compiler.lower(lambda x: squares(x), X))
    with hlotag.stage(), warnings.catch_warnings(action="error"):
        lowered = any_compiler.lower(lambda x: squares(x), X)
        restored, text = compiled_instructions(lowered), lowered.compile().as_text()
    assert [i for i in dropped if i.opcode == "multiply" and "k" not in i.attributes]
    named = [i for i in restored if "jit(" in i.op_name]
    assert {i.opcode for i in named} >= {"multiply", "tanh"}
    assert [i for i in named if i.attributes.get("k") != "v"] == []
    assert "\x01" not in text
    assert "\\x01" not in text


def test_no_tag_is_lost_and_no_heavy_one_is_wrong(compiler, signed):
    for name in names_for(compiler):
        found = compiled_instructions(lower(compiler, name, pipeline=signed))
        named = [i for i in found if "jit(" in i.op_name and not hlo_programs.is_xlas_own(i)]
        assert [i for i in named if "t" not in i.attributes] == [], name
        assert len([i for i in found if hlo_programs.signature_of_instruction(i) is not None]) >= 2
        assert [(i, i.attributes, expected) for i, expected in wrongly_signed(found)] == [], name


def test_all_but_attributes_is_as_the_compiler_made_it(compiler, signed):
    one_tag = {"rules": [hlotag.Rule({"k": "v"}, op="*")]}
    for name in names_for(compiler):
        plain, *tagged = (
            without_names(lower(compiler, name, **stage).compile().as_text())
            for stage in ({}, {"hlo": False, **one_tag}, one_tag, {"pipeline": signed})
        )
        assert tagged == [plain, plain, plain], name


def test_an_entry_that_a_library_writes_reaches_the_compiler(compiler):
    large = np.ones((1024, 512), np.float32)

    def texts(**stage):
        with hlotag.stage(**stage):
            programs = [partial(key_probes.ragged, ragged_dot_tiling=tiles) for tiles in ("128,128,128", "512,512,512")]
            lowered = [compiler.lower(program, large, large[:512]) for program in programs]
        return [without_names(found.compile().as_text()) for found in lowered]

    found = texts()
    assert found == texts(hlo=False)
    assert (found[0] == found[1]) == (PLATFORM != "tpu")


def test_the_modules_of_single_fusions_are_left_alone(compiler):
    """GPU's compiler of jax 0.12 compiles them by themselves, with the names of the whole program in them."""
    with hlotag.stage(), hlo_pass.recorded() as records:
        compiler.lower(lambda x: squares(x), X).compile()
    assert len(records) == 1


def test_arguments_are_donated_all_the_same(compiler, monkeypatch):
    monkeypatch.setattr(hlo_pass, "_warned", set())
    with hlotag.stage(), warnings.catch_warnings(record=True, action="always") as caught:
        donated = compiler.lower(lambda x: squares(x), X, donate_argnums=0).compile()
    assert "input_output_alias" in donated.as_text()
    is_restored = all("k" in found for found in entries_with_fusion(donated, "tanh"))
    assert is_restored or any("donation" in str(warning.message) for warning in caught)


def test_an_error_in_the_stage_fails_no_compilation(compiler, monkeypatch):
    def fail(self, module):
        raise ValueError("no such tag")

    monkeypatch.setattr(hlo_pass._Restoration, "_restore", fail)
    with hlotag.stage(on_error="warn"), pytest.warns(hlotag.PassFailedWarning, match="no such tag"):
        executable = compiler.lower(lambda x: squares(x) + 1, X).compile()
    assert "tanh" in executable.as_text()


PROCESS = """
import jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import conftest, hlotag
compiler = next(make for name, make in conftest.KINDS[conftest.PLATFORM].items() if name.startswith("4"))()
rows = NamedSharding(Mesh(np.array(compiler.devices), ("i",)), PartitionSpec("i"))
with hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="*")]):
    lowered = compiler.lower(lambda x: (jnp.tanh(x), x.sum()), np.ones((8, 8), np.float32), out_shardings=(rows, None))
    print('k="v"' in lowered.compile().as_text())
"""


def test_a_process_compiles_results_of_which_one_has_a_sharding_and_ends(run_python):
    """A program's compiler options are of its own results, of which the probe has one."""
    assert run_python(PROCESS, PYTHONPATH=os.pathsep.join(sys.path)).stdout == "True\n"
