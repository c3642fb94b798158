# SPDX-License-Identifier: Apache-2.0
"""What the stage inside XLA remembers, and what that depends on: modules, keys, platforms and compiler options."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import cache_key, compiler, xla_bridge

import hlotag
from hlo_programs import entries_with_fusion
from hlotag.hlo.module import of_executable
from hlotag.lowering import hlo_pass
from hlotag.tagging import keys

X = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
EVERYWHERE = [hlotag.Rule({"k": "v"}, op="*")]
# A compiler option under which XLA runs no passes, and calls no transformation.
NO_PASSES = {"xla_disable_all_hlo_passes": True}


def square(x):
    with hlotag.tagged({"k": "v"}):
        return jnp.square(x)


def values(executable):
    """Of the tag "k" on multiplications; None where there is none."""
    return [entries.get("k") for entries in entries_with_fusion(executable, "multiply")]


@pytest.fixture
def transformations(monkeypatch):
    """As in a process that has compiled nothing yet."""
    hlotag.disable()
    hlo_pass._transformations.clear()  # `disable` leaves it to modules of earlier tests that are still alive.
    fresh = hlo_pass.Transformations()
    monkeypatch.setattr(hlo_pass, "_transformations", fresh)
    monkeypatch.setattr(hlo_pass, "_warned", set())
    yield fresh
    hlotag.disable()
    fresh.clear()


def test_a_clone_of_a_prepared_module_has_its_cache_key():
    """JAX makes one to remove pointers, as in its `cache_key_test.test_custom_partitioning_ptr_removal`."""
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    with hlotag.stage(rules=EVERYWHERE):
        module = jax.jit(jnp.sin).lower(X).compiler_ir()
        with module.context:
            both = module, module.operation.clone(ip=False)
        key, of_clone = (cache_key.get(m, np.asarray(jax.devices()), options, xla_bridge.get_backend()) for m in both)
    assert key == of_clone and "-hlotag-" in key


def test_a_module_that_is_written_to_is_still_prepared():
    with hlotag.stage():
        lowered = jax.jit(lambda x: square(x)).lower(X)
    module = lowered.compiler_ir()
    with module.context:
        module.operation.attributes["mhlo.mine"] = module.operation.attributes["sym_name"]
    assert values(lowered.compile()) == ["v"]


def test_modules_of_one_name_go_each_through_its_own_stage():
    found = []
    for hlo in (["other"], True, False):
        with hlotag.stage(hlo=hlo):
            found.append(jax.jit(lambda x: square(x)).lower(X))
    assert [values(lowered.compile()) for lowered in found] == [[None], ["v"], [None]]


def test_a_stage_keeps_the_keys_of_its_time(monkeypatch):
    monkeypatch.setattr(keys, "_registered", {})

    def tagged_instructions(stage, key):
        def f(x):
            with hlotag.tagged({key: "v"}, grad="same"):
                return jnp.var(jnp.cumsum(x, axis=0)), jax.lax.top_k(x, 3)[0]

        with stage:
            modules = of_executable(jax.jit(f).lower(X).compile())
        return sum(key in i.attributes for m in modules for i in m.instructions())

    before = hlotag.stage()
    everywhere = tagged_instructions(hlotag.stage(), "late")
    for key in ("early", "late"):
        hlotag.register_key(key, derived="drop")
    in_one_place = tagged_instructions(hlotag.stage(), "early")
    assert in_one_place < everywhere
    assert tagged_instructions(hlotag.stage(), "late") == in_one_place
    assert tagged_instructions(before, "late") == everywhere


def test_the_key_of_the_disk_cache_has_the_registered_keys(monkeypatch):
    def suffix():
        with hlotag.stage():
            return hlo_pass._cache_key_suffix(jax.jit(lambda x: square(x)).lower(X).compiler_ir())

    monkeypatch.setattr(keys, "_registered", {})
    alone = suffix()
    hlotag.register_key("allowed", values=["a"])
    assert suffix() == alone != ""
    hlotag.register_key("of_one_place", derived="drop")
    assert suffix() != alone


@pytest.mark.parametrize("first", [{}, NO_PASSES])
def test_the_options_of_one_compilation_decide_for_that_one(transformations, first):
    second = NO_PASSES if not first else {}
    found = []
    for options in (first, second, first, second):
        with hlotag.stage(), warnings.catch_warnings(record=True, action="always") as caught:
            executable = jax.jit(lambda x: square(x)).lower(X).compile(options)
        np.testing.assert_array_equal(executable(X), X * X)
        assert "\x01" not in executable.as_text()
        found.append((values(executable) == ["v"], [w.category for w in caught]))
    on, told, off = (True, []), (False, [hlotag.TagDroppedWarning]), (False, [])
    assert found == ([told, on, off, on] if first else [on, told, on, off])


def test_a_platform_is_asked_once_for_each_kind_of_options(transformations, monkeypatch):
    tried = []
    original = type(transformations)._try
    monkeypatch.setattr(type(transformations), "_try", lambda self, *args: (tried.append(args[:2]), original(self, *args)))
    for options in ({}, {"xla_cpu_enable_fast_math": False}, NO_PASSES, NO_PASSES, {}):
        with hlotag.stage(), warnings.catch_warnings(action="ignore"):
            jax.jit(lambda x: square(x)).lower(X).compile(options)
    assert len(tried) == 2


def test_a_compilation_without_a_callback_is_reported(monkeypatch):
    """And not given out: the names of its instructions have numbers."""
    monkeypatch.setattr(hlo_pass._Restoration, "__call__", lambda self, module: module)
    with hlotag.stage():
        lowered = jax.jit(lambda x: square(x)).lower(X)
    with pytest.raises(hlotag.errors.PassError, match="XLA did not call it"):
        lowered.compile()
