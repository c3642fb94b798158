# SPDX-License-Identifier: Apache-2.0
"""The stage: what sees the tagged module, JAX's caches, scopes, threads, failure, and that numbers do not change."""

import inspect
import re
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from hlotag.passes.rules import Rule
from modules import ops_of

pytestmark = pytest.mark.usefixtures("off_afterwards")
X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def gradient():
    """A new jitted function, so that no other test has traced it."""
    return jax.jit(jax.grad(lambda x: (set_xla_metadata(jnp.tanh(x), k="v") * 2.0).sum()))


def tagged(lowered):
    return sum("k" in op.entries for op in ops_of(lowered))


def in_a_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_origins_say_where_tags_come_from_when_asked_for():
    f = gradient()
    expected = f(X)
    rules = [Rule({"r": "1"}, op="multiply")]
    with hlotag.stage(rules=rules, debug_origins=True):
        lowered = f.lower(X)
        np.testing.assert_array_equal(f(X), expected)
        exported = jax.export.export(f)(X)
        np.testing.assert_array_equal(jax.export.deserialize(exported.serialize()).call(X), expected)
    assert 'frontend_attributes={k="v"' in lowered.compile().as_text() and "origins" not in lowered.as_text(dialect="hlo")
    for line, entries in re.findall(r"(.*mhlo.frontend_attributes = \{(.*?)\}.*)", lowered.as_text()):
        for key in entries.split(", "):
            assert re.search(rf"hlotag.origins = .*\b{key[0]} = \{{.*pass = ", line), line
    assert 'pass = "hlotag-resolve"' in lowered.as_text() and "rule 1: " in lowered.as_text()
    # A stage that records is another one for JAX's caches.
    with hlotag.stage(rules=rules):
        assert "hlotag.origins" not in f.lower(X).as_text()


def test_toggling_lowers_each_configuration_once(monkeypatch):
    from jax._src.interpreters import mlir

    lower = Mock(side_effect=mlir.lower_jaxpr_to_module)
    lower.__signature__ = inspect.signature(mlir.lower_jaxpr_to_module)
    monkeypatch.setattr(mlir, "lower_jaxpr_to_module", lower)
    f = gradient()
    a, b = hlotag.passes.DEFAULT_PIPELINE, "hlotag-resolve,hlotag-strip"
    seen = []
    for pipeline in (None, a, None, b, a):
        with hlotag.stage(pipeline):
            seen.append(tagged(f.lower(X)))
            f(X)
    assert seen[0] == seen[2] <= 1 and seen[1] == seen[4] > 3 and seen[3] == 0
    assert lower.call_count == 3


def test_importing_hlotag_traces_nothing_again(run_python):
    """JAX's caches have all user contexts in their keys, and one that is made meanwhile changes every key."""
    code = """
import jax, jax.numpy as jnp
from jax import monitoring
compiled, traced = [], []
monitoring.register_event_duration_secs_listener(lambda name, *_, **__: compiled.append("backend_compile" in name))

@jax.jit
def f(x):
    traced.append(x)
    return jnp.sin(x)

x = jnp.ones(3)
f(x)
import hlotag
hlotag.audit(lambda x: hlotag.tag(x * 2, {"k": "v"}), x)
assert hlotag.active() is None
hlotag.disable()
before = sum(compiled)
f(x), f.lower(x)
print(len(traced), sum(compiled) - before)
"""
    assert run_python(code).stdout == "1 0\n"


def test_a_stage_may_be_entered_again_nested_and_from_threads():
    block = hlotag.stage(rules=iter([hlotag.Rule({"k": "v"}, op="*")]))
    with block as first, block:
        assert first is not None and in_a_thread(block(hlotag.active)) is first
    with block as second:
        assert second is hlotag.active() is first
    assert hlotag.active() is None
    with pytest.raises(hlotag.errors.ScopeError, match="had not entered it"):
        block.__exit__()
    assert hlotag.active() is None


def test_stages_nest_in_their_own_thread():
    assert hlotag.active() is None
    with hlotag.stage() as outer:
        assert hlotag.active() is outer and in_a_thread(hlotag.active) is None
        with hlotag.stage(None):
            assert hlotag.active() is None
        with pytest.raises(ValueError, match="planted"), hlotag.stage(None):
            raise ValueError("planted")
        assert hlotag.active() is outer
    assert hlotag.active() is None
    hlotag.enable()
    assert in_a_thread(hlotag.active) is hlotag.active() is not None


def test_what_is_wrapped_passes_arguments_on_as_they_come():
    from jax._src import core

    many = [jnp.full((2,), n) for n in range(40)]
    with hlotag.stage():
        assert str(inspect.signature(core.Primitive.bind)) == "(self, /, *args, **params)"
        np.testing.assert_array_equal(jax.lax.concatenate_p.bind(*many, dimension=0), np.repeat(np.arange(40), 2))
        with pytest.raises(TypeError, match="sin does not accept dtype"):
            jax.lax.sin_p.bind(jnp.arange(3), accuracy=None)
        with pytest.raises(TypeError):
            core.Primitive.bind(1)


@pytest.mark.parametrize(
    "pipeline",
    ["", "canonicalize", "hlotag-attach", "hlotag-resolve", "hlotag-resolve,hlotag-attach", hlotag.passes.DEFAULT_PIPELINE],
    ids=lambda text: text[:28],
)
def test_a_pipeline_keeps_tags_and_nothing_in_flight(pipeline):
    def f(x):
        with hlotag.tagged({"u": "v"}), hlotag.tagged({"u": None}):
            y = jnp.cos(x)
        return hlotag.tag(jnp.sin(y), {"k": "v"}, grad="drop").sum()

    rules = [Rule({"r": "v"}, op="sine")] if "attach" in pipeline else []
    with hlotag.stage(pipeline, rules):
        lowered = jax.jit(jax.value_and_grad(f)).lower(X)
        exported = jax.export.export(jax.jit(f))(X).mlir_module()
    assert {(op.name, key) for op in ops_of(lowered) for key in op.entries} >= {("stablehlo.sine", "k")}
    assert ("r", "v") in {entry for op in ops_of(lowered) for entry in op.entries.items()} or not rules
    texts = lowered.as_text(debug_info=True), lowered.as_text("hlo"), lowered.compile().as_text(), exported
    for text in (text.replace("/hlotag/", "").replace(__file__, "") for text in texts):
        assert not any(part in text for part in ("hlotag", "\\01", "\\001", "\x01"))
