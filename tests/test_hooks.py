# SPDX-License-Identifier: Apache-2.0
"""hlotag's patches of JAX, beside those of other libraries."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import cache_key, compiler, core
from jax._src.interpreters import mlir
from jax._src.interpreters import partial_eval as pe

import hlotag
from hlotag.lowering import hlo_stage, staging
from hlotag.tagging import rule_hooks
from programs import X

PLACES = {
    "bind": (core.Primitive, "bind"),
    "bind_with_trace": (core.Primitive, "bind_with_trace"),
    "make_eqn": (pe.DynamicJaxprTrace, "make_eqn"),
    "lower": (mlir, "lower_jaxpr_to_module"),
    "subcomp": (mlir, "jaxpr_subcomp"),
    "compile": (compiler, "backend_compile_and_load"),
    "cache_key": (cache_key, "get"),
}


class Other:
    """A library that patches, too."""

    def __init__(self, owner, name):
        self.owner, self.name, self.calls = owner, name, 0

    def patch(self):
        self.seen = self.current()
        below = getattr(self.owner, self.name)

        def patched(*args, **kwargs):
            self.calls += 1
            return below(*args, **kwargs)

        self.patched = patched
        setattr(self.owner, self.name, patched)

    def restore(self):
        setattr(self.owner, self.name, self.seen)

    def current(self):
        return vars(self.owner)[self.name]


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def other(request):
    hlotag.disable()
    hlotag.disable()
    other = Other(*request.param)
    at_first = other.current()
    yield other
    hlotag.disable()
    hlotag.disable()
    assert other.current() is at_first


def tags():
    """How many operations of a gradient have the program's tag, in the module and in the executable."""

    lowered = jax.jit(jax.grad(lambda x: hlotag.set_xla_metadata(jnp.sin(x), k="v").sum())).trace(X).lower()
    return lowered.as_text().count('k = "v"'), lowered.compile().as_text().count('k="v"')


@functools.cache
def expected():
    with hlotag.stage():
        on = tags()
    assert on[0] > 1 and on[1] > 0
    return on


def patch_over_ours(other):
    """Patches while hlotag is on, and turns hlotag off."""
    hlotag.enable()
    tags()
    other.patch()
    hlotag.disable()
    hlotag.disable()


def test_a_patch_made_after_ours_outlives_it(other):
    on = expected()
    patch_over_ours(other)
    assert other.current() is other.patched
    calls = other.calls
    off = tags()
    assert other.calls > calls and off != on
    hlotag.enable()
    assert tags() == on
    other.restore()
    assert tags() == on, "what it saw, and puts back, is our wrapper"
    hlotag.disable()


def test_our_wrapper_put_back_while_we_are_off_is_passed_through(other):
    on = expected()
    patch_over_ours(other)
    other.restore()
    assert tags() != on
    for _ in range(2):
        hlotag.enable()
        assert tags() == on
        hlotag.disable()


def test_a_patch_made_before_ours_may_go_first(other):
    on = expected()
    other.patch()
    hlotag.enable()
    tags()
    other.restore()
    hlotag.disable()
    hlotag.disable()
    hlotag.enable()
    assert tags() == on


def patched():
    """What is at each place that hlotag patches."""
    found = {}
    for patch in (patch for each in (staging.HOOKS, hlo_stage.HOOKS, *rule_hooks.ALL) for patch in each.patches):
        if hasattr(patch, "_owner"):
            found[patch._owner, patch._name] = vars(patch._owner).get(patch._name)
        else:
            found[patch._primitive] = patch._rules[patch._primitive]
    assert len(found) > 15
    return found


def test_disable_takes_every_patch_away_whatever_ran_before():
    hlotag.disable()
    before = patched()
    rules = [hlotag.Rule({"r": "1"}, op="sine", scope="here", function="f", source="*.py")]
    for _ in range(2):
        with hlotag.stage(rules=rules):
            _, vjp = jax.vjp(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"}, grad={"k": "w"}), X)
            kept = jax.jit(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"}, grad={})).lower(X)
        hlotag.enable(rules=rules)
        tags()
        assert all(now is not before[place] for place, now in patched().items())
        hlotag.disable()
        assert patched() == before
    assert vjp and kept


def test_reserved_entries_of_old_traces_are_empty():
    rules = [hlotag.Rule({"r": "1"}, op="sine", scope="here"), hlotag.Rule({"s": "1"}, op="cosine")]
    with hlotag.stage(rules=rules):
        _, vjp = jax.vjp(lambda x: hlotag.tag(jnp.sin(x), {"k": "v"}, grad={"k": "w"}, remat="drop"), X)
        with hlotag.tagged({"b": "1"}, grad={"b": "2"}), jax.named_scope("here"):
            _, block = jax.vjp(jnp.sin, X)
    hlotag.disable()
    for f in (vjp, block):
        text = jax.jit(f).lower(X).as_text()
        assert set(re.findall(r'hlotag\.[\w.]* = "(.*?)"', text)) == {""}
        np.testing.assert_array_equal(jax.jit(f)(X)[0], X * jnp.cos(X))
