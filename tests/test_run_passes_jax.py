# SPDX-License-Identifier: Apache-2.0
"""run_passes on what JAX hands out: a `Lowered` that compiles and runs, an `Exported` that is saved, loaded and called."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import hlotag
from hlotag.errors import ParseError

TAG = 'hlotag-attach{rules="[{op = \\"dot_general\\", attrs = {group = \\"mlp\\"}}]"}'


def program(w, x):
    return jnp.tanh(x @ w).sum(axis=0)


@pytest.fixture
def arguments():
    rng = np.random.default_rng(0)
    return tuple(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in [(8, 8), (4, 8)])


@pytest.fixture
def lowered(arguments):
    return jax.jit(program).lower(*arguments)


@pytest.fixture
def exported(arguments):
    return export.export(jax.jit(program))(*arguments)


def tagged_dots(text):
    return [line for line in text.splitlines() if "dot_general" in line and 'group = "mlp"' in line]


def test_lowered_shows_compiles_and_runs_the_changed_module(arguments, lowered):
    changed = hlotag.run_passes(lowered, TAG)
    assert isinstance(changed, jax.stages.Lowered)
    assert len(tagged_dots(changed.as_text())) == 1 and 'group="mlp"' in changed.as_text("hlo")
    compiled = changed.compile()
    assert "group" in compiled.as_text()
    np.testing.assert_array_equal(compiled(*arguments), jax.jit(program)(*arguments))
    assert (changed.in_avals, changed.out_info) == (lowered.in_avals, lowered.out_info)


def test_lowered_keeps_locations(lowered):
    def full_text(lowered):  # in place: the numbers of aliases are another in a copy
        text = lowered.compiler_ir().operation.get_asm(enable_debug_info=True, use_local_scope=True)
        return re.sub(r":0 to :\d+", ":0", text)  # which MLIR's bytecode forgets

    assert "dot_general" in full_text(lowered)
    assert full_text(hlotag.run_passes(lowered, "hlotag-finalize")) == full_text(lowered)


def test_run_passes_leaves_its_lowered_and_the_cache_alone(arguments, lowered):
    before, executable = lowered.as_text(), lowered.compile()
    changed = hlotag.run_passes(lowered, TAG)
    assert "group" in changed.compile().as_text()  # and not the executable of the module it was made from
    assert lowered.as_text() == before == jax.jit(program).lower(*arguments).as_text()
    assert "group" not in lowered.compile().as_text() and "group" not in executable.as_text()
    with pytest.raises(hlotag.errors.ArgumentError):
        hlotag.run_passes(lowered, "no-such-pass")
    with pytest.raises(hlotag.errors.PassError, match="hlotag-attach"):
        hlotag.run_passes(lowered, TAG + ',hlotag-attach{rules="[{opp = 1 : i32}]"}')
    assert lowered.as_text() == before


def test_lowered_with_static_and_unused_and_donated_arguments(arguments):
    w, x = arguments
    jitted = jax.jit(lambda w, unused, n, x: (w * n, {"y": program(w, x)}), static_argnums=2, donate_argnums=0)
    compiled = hlotag.run_passes(jitted.lower(w, x, 3, x), TAG).compile()
    expected = jitted(jnp.array(w), x, 3, x)
    jax.tree.map(np.testing.assert_array_equal, compiled(jnp.array(w), x, x), expected)


def test_export_is_saved_loaded_and_called(arguments, exported):
    changed = hlotag.run_passes(exported, TAG)
    assert isinstance(changed, export.Exported) and not tagged_dots(exported.mlir_module())
    loaded = export.deserialize(changed.serialize())
    assert len(tagged_dots(loaded.mlir_module())) == 1
    np.testing.assert_array_equal(loaded.call(*arguments), exported.call(*arguments))
    lowered = jax.jit(loaded.call).lower(*arguments)
    assert 'group="mlp"' in lowered.as_text("hlo") and "group" in lowered.compile().as_text()
    before, after = (artifact.mlir_module_serialized.split(b"\0")[0] for artifact in (exported, changed))
    assert before == after and b"StableHLO_v" in before


@pytest.mark.parametrize("kind", ["symbolic shapes", "shardings"])
def test_export_with(kind, arguments):
    w, x = arguments
    if kind == "shardings":
        mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
        shardings = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("d"))
        arguments = jax.tree.map(jax.device_put, (w, x), shardings)
        exported = export.export(jax.jit(program, in_shardings=shardings))(w, x)
    else:
        exported = export.export(jax.jit(program))(w, jax.ShapeDtypeStruct(export.symbolic_shape("rows, 8"), jnp.float32))
    changed = export.deserialize(hlotag.run_passes(exported, TAG).serialize())
    assert tagged_dots(changed.mlir_module())
    np.testing.assert_array_equal(jax.jit(changed.call)(*arguments), jax.jit(exported.call)(*arguments))
    assert hlotag.run_passes(exported, "hlotag-finalize").mlir_module() == exported.mlir_module()


def test_gradient_of_an_export_goes_through_the_passes(arguments):
    w, x = arguments
    exported = export.export(jax.jit(lambda w: program(w, x).sum()))(w)
    loaded = export.deserialize(hlotag.run_passes(exported, TAG).serialize(vjp_order=1))
    assert tagged_dots(loaded.vjp().mlir_module())
    np.testing.assert_array_equal(jax.grad(loaded.call)(w), jax.grad(exported.call)(w))


def test_the_artifact_of_an_export(arguments):
    exported = export.export(jax.jit(program), platforms=["cpu", "tpu"])(*arguments)
    artifact = hlotag.run_passes(exported.mlir_module_serialized, TAG)
    assert artifact == hlotag.run_passes(exported, TAG).mlir_module_serialized
    changed = dataclasses.replace(exported, mlir_module_serialized=artifact)
    assert tagged_dots(changed.mlir_module())
    np.testing.assert_array_equal(changed.call(*arguments), exported.call(*arguments))


def test_an_artifact_that_is_cut_off(exported, capfd):
    with pytest.raises(ParseError, match=r"(?s)error: attempting to parse .*\n<module>: error: failed .* for StableHLO \d"):
        hlotag.run_passes(exported.mlir_module_serialized[:-50], TAG)
    assert capfd.readouterr().err == ""


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match=r"must be an ir\.Module, str, bytes, .*Lowered or jax\.export\.Exported, not Traced"):
        hlotag.run_passes(jax.jit(program).trace(jnp.ones((8, 8)), jnp.ones((4, 8))), TAG)
