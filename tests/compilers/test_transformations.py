# SPDX-License-Identifier: Apache-2.0
"""Functions of ours inside the compilers of plugins, which have no client here."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from compilers import Compiler
from hlotag import _compat
from hlotag.hlo import HloModule
from hlotag.hlo.module import of_executable

X = np.ones((8, 8), np.float32)


@contextmanager
def registered(compiler: Compiler, callback: Callable[[bytes], bytes | None]) -> Iterator[None]:
    remove = _compat.transformations.register_transformation(
        compiler.devices[0].client, callback, name="test", stage=_compat.transformations.PipelineStage.POST_SCHEDULER
    )
    try:
        yield
    finally:
        remove()


def compiled(compiler: Compiler) -> list[HloModule]:
    """Of a program that JAX has not compiled yet."""
    return of_executable(compiler.lower(lambda x: jnp.tanh(x) * 2, X).compile())


def with_attributes(serialized: bytes) -> bytes:
    module = HloModule(serialized)
    for instruction in module.instructions():
        instruction.attributes = {"from": "the callback"}
    return module.to_bytes()


def has_attributes(modules: list[HloModule]) -> bool:
    return any("from" in i.attributes for module in modules for i in module.instructions())


def test_the_compiler_uses_what_a_callback_returns(compiler):
    with registered(compiler, with_attributes):
        assert has_attributes(compiled(compiler))
    assert not has_attributes(compiled(compiler))


def test_a_callback_may_give_nothing(compiler):
    called = []
    with registered(compiler, called.append):
        modules = compiled(compiler)
    assert HloModule(called[-1]).name == modules[0].name


def test_what_a_callback_raises_is_an_error_of_the_compilation(compiler):
    def fail(_):
        raise ValueError("no such tag")

    with registered(compiler, fail), pytest.raises(jax.errors.JaxRuntimeError, match="no such tag"):
        compiled(compiler)
    assert compiled(compiler)


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
