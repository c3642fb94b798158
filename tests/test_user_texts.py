# SPDX-License-Identifier: Apache-2.0
"""Texts of users stay what the user wrote, also those that look like JAX's transformations; warnings name the user's line."""

import warnings
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import xla_metadata

import hlotag
from hlotag.lowering import hlo_pass, staging
from hlotag.tagging import keys
from modules import ops_of
from programs import X

SCOPES = [
    *("a/b", "a.1", "a b", "(x)", "jvp", "transpose(x)", "transpose(", "transpose(jvp(x))", "a)/transpose(b", "/x"),
    *("\x01hlotag#0\x01", "\x01hlotag#3\x01", "\x01%28"),
]


def entries(scope, transform, **stage):
    """The entries of the operations of a tagged program in a scope, with their names in the module."""

    def f(x):
        with jax.named_scope(scope):
            return hlotag.tag(jnp.sin(x), {"k": "v"}, grad={"k": "derived"})

    with hlotag.stage(**stage):
        ops = ops_of(jax.jit(transform(f)).lower(1.0))
    return {op.name.removeprefix("stablehlo."): op.entries for op in ops if op.name != "func.return"}


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_is_no_transformation_and_no_mark_and_rules_read_it_as_it_is_written(scope):
    rules = [hlotag.Rule({"b": "1"}, op="*", phase="backward"), hlotag.Rule({"s": "1"}, op="*", scope=f"**/{scope}/**")]
    assert entries(scope, lambda f: f, rules=rules) == {"sine": {"k": "v", "s": "1"}}
    found = entries(scope, jax.grad, rules=rules)
    assert (found["cosine"]["k"], "b" in found["cosine"]) == ("v", False)
    assert (found["multiply"]["k"], "b" in found["multiply"]) == ("derived", True)


def transpose(x):
    return jnp.sin(x)


transpose.__name__ = "transpose(jvp(f))"


@pytest.mark.parametrize("scope", [*SCOPES, "jit(f)", "plain"])
def test_names_come_out_as_jax_writes_them(scope):
    @jax.jit
    def f(x):
        with jax.named_scope(scope):
            return hlotag.tag(jax.jit(transpose)(x) * jnp.cos(x), {"k": "v"}).sum()

    texts = []
    for pipeline in (None, hlotag.passes.DEFAULT_PIPELINE):
        with hlotag.stage(pipeline):
            texts.append([op.location for op in ops_of(jax.jit(jax.grad(f)).lower(1.0))])
    assert texts[0] == texts[1]


def test_a_key_of_hlotags_own_is_refused_in_jaxs_spelling_too(staged):
    value = lambda x: xla_metadata.set_xla_metadata(jnp.sin(x), **{"hlotag.grad.k": "-"})
    block = xla_metadata.set_xla_metadata(**{"hlotag.grad.k": "-"})(lambda x: jnp.sin(x))
    with pytest.raises(hlotag.errors.TagError, match=r"'hlotag\.grad\.k': the prefix 'hlotag\.' is reserved"):
        jax.jit(value).lower(1.0)
    with pytest.raises(hlotag.errors.PassError, match=r"'hlotag\.grad\.k'.*the prefix 'hlotag\.' is reserved"):
        jax.jit(block).lower(1.0)


ESCAPES = r"""func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.sine %x {mhlo.frontend_attributes = {_scheduling_group_id = "\1B[31m"}} : tensor<f32> loc("FILE":1:1)
  return %0 : tensor<f32>
}"""


def test_a_warning_shows_no_line_of_a_file_that_a_module_names(tmp_path):
    (tmp_path / "secret").write_text("the secret")
    with pytest.warns(hlotag.TagDroppedWarning, match="secret:1:1: 'stablehlo.sine'") as caught:
        hlotag.run_passes(ESCAPES.replace("FILE", str(tmp_path / "secret")))
    assert caught[0].filename == __file__


def test_escape_sequences_of_a_module_reach_no_terminal():
    text = ESCAPES.replace("FILE", r"\1B[2J")
    with pytest.warns(hlotag.TagDroppedWarning, match=r"\\x1b\[2J.*\\1B\[31m") as caught:
        hlotag.run_passes(text)
    with pytest.raises(hlotag.errors.PassError) as failed:
        hlotag.run_passes(text, "hlotag-finalize")
    with pytest.raises(hlotag.errors.ParseError) as refused:
        hlotag.run_passes("func.func @f() attributes {a = \x1b}")
    assert not any("\x1b" in str(said) for said in (caught[0].message, failed.value, refused.value))


def test_warnings_point_at_lines_of_the_user(monkeypatch, set_xla_metadata):
    monkeypatch.setattr(hlo_pass, "_warned", set())

    def lower(function):
        return jax.jit(function).lower(X)

    def scheduled(x):
        y = set_xla_metadata(jnp.sin(x), _scheduling_group_id=1)
        return set_xla_metadata(jnp.tan(jnp.cos(y)), _scheduling_group_id=1)

    lines = scheduled.__code__.co_firstlineno + 1, lower.__code__.co_firstlineno + 1
    before = jax.jit(lambda x: set_xla_metadata(jnp.sin(x), k="v")).trace(X)
    try:
        hlotag.enable(on_error="warn")
        with warnings.catch_warnings(record=True, action="always") as caught:
            lower(scheduled)
            lower(lambda x: set_xla_metadata(x, k="v") + 1)
            before.lower()
            hlotag.enable(f"{hlotag.passes.DEFAULT_PIPELINE},hlotag-finalize", on_error="warn")
            run = staging.run_or_raise  # The first run fails, and the second one is of the program's own tags.
            monkeypatch.setattr(staging, "run_or_raise", Mock(side_effect=[hlotag.errors.PassError("p", []), []]))
            lower(lambda x: jnp.sin(x))
            monkeypatch.setattr(staging, "run_or_raise", run)
            lower(lambda x: set_xla_metadata(jnp.sin(x), k="v")).compile({"xla_disable_all_hlo_passes": True})
    finally:
        hlotag.disable()
    assert len(caught) == 5 and {warning.filename for warning in caught} == {__file__}
    assert caught[0].lineno in range(lines[0], lines[0] + 2) and caught[3].lineno == lines[1]


@pytest.mark.parametrize("key", ['"', "'", "a'b", "{", "a)", "[", "a,", "a,b", "a b", "a\\", "*", "?", "a=b"])
def test_a_key_has_any_text_and_hides_no_other_key_from_xla(key):
    @hlotag.xla_metadata_call(inlineable="false")
    def inner(x):
        return jnp.tanh(x) * x

    def f(x):
        return inner(hlotag.tag(jnp.sin(x), {key: "v"}))

    with hlotag.stage():
        audit = hlotag.audit(f, X)
    assert {(tag.key, tag.state) for tag in audit.tags} >= {(key, hlotag.audits.TagState.KEPT)}
    assert [str(effect.verdict) for effect in audit.effects] == ["changed"]


@pytest.mark.parametrize("key", ["seen*", "see?", "*"])
def test_a_key_is_no_pattern_of_a_key_that_xla_sees(key, monkeypatch):
    monkeypatch.setattr(keys, "_registered", dict(keys._registered))
    hlotag.register_key("seen", compiler=True)

    def f(x):
        return hlotag.tag(jnp.sin(x), {key: "v", "seen": "yes"})

    with hlotag.stage(), hlo_pass.recorded() as records:
        jax.jit(f).lower(X).compile()
    assert {"seen": "yes"} in [i.attributes for i in records[-1].before.instructions()]
