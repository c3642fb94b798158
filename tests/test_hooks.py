# SPDX-License-Identifier: Apache-2.0
"""hlotag's wrappers of JAX's functions: installed once, silent without a stage, and beside those of other libraries."""

import functools
import json
from unittest import mock

import jax
import jax.numpy as jnp
import pytest
from jax._src import cache_key, compiler, core
from jax._src.interpreters import mlir
from jax._src.interpreters import partial_eval as pe

import hlotag
from programs import X

PLACES = {
    "bind": (core.Primitive, "bind"),
    "make_eqn": (pe.DynamicJaxprTrace, "make_eqn"),
    "lower": (mlir, "lower_jaxpr_to_module"),
    "compile": (compiler, "backend_compile_and_load"),
    "cache_key": (cache_key, "get"),
}

INACTIVE = """
import json, sys
from collections import Counter

import jax, jax.numpy as jnp, numpy as np
from jax import lax, monitoring
from jax.experimental.xla_metadata import set_xla_metadata

events, traced = Counter(), []
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.update([name]))
jax.monitoring.register_event_listener(lambda name, **_: events.update([name]))

@jax.custom_vjp
def ruled(x):
    return jnp.sin(x)

ruled.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (set_xla_metadata(g * jnp.cos(x), of="rule"),))

@jax.jit
def inner(x):
    traced.append("inner")
    with jax.named_scope("transpose(x)"), set_xla_metadata(block=True, gone=None):
        return set_xla_metadata(jnp.tanh(x), k="v")

def f(x):
    traced.append("f")
    y = lax.scan(lambda c, _: (inner(c), None), ruled(x), length=3)[0]
    return jax.checkpoint(lambda y: jnp.sum(inner(y) * inner(x)))(y)

def run():
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    step = jax.jit(jax.value_and_grad(f))
    lowered = [step.lower(x), jax.jit(jax.vmap(f)).lower(x[None]), jax.jit(jax.jvp, static_argnums=0).lower(inner, (x,), (x,))]
    exported = jax.export.export(step)(x)
    results = [step(x) for _ in range(3)] + [jax.jit(exported.call)(x), jax.grad(f)(x)]
    return {
        "texts": [each.as_text(debug_info=True) for each in lowered] + [exported.mlir_module(), lowered[0].compile().as_text()],
        "results": [np.asarray(leaf).tobytes().hex() for leaf in jax.tree.leaves(results)],
        "traced": Counter(traced),
        "events": events,
    }
"""
# What runs before: nothing of hlotag, or a stage with every kind of rule, which has ended.
NEVER_ON = "other = jax.jit(lambda x: jnp.cos(x) + 1); other(1.0); jax.clear_caches(); events.clear()"
WAS_ON = """
import hlotag
rules = [hlotag.Rule({"r": "1"}, op="*", scope="*", function="*", source="*"), hlotag.Rule({"o": "1"}, op="*")]
with hlotag.stage(rules=rules):
    jax.jit(jax.grad(lambda x: hlotag.tag(jnp.cos(x), {"k": "v"}, grad={"k": "w"}))).lower(1.0).compile()
hlotag.enable()
jax.jit(lambda x: hlotag.tag(jnp.cos(x), {"k": "v"}))(1.0)
hlotag.disable()
jax.clear_caches()
traced.clear(), events.clear()
"""


def test_without_a_stage_modules_caches_and_results_are_those_of_jax(run_python):
    found = []
    for before in (NEVER_ON, WAS_ON):
        code = f"{INACTIVE}\nexec({before!r})\njson.dump(run(), sys.stdout)"
        found.append(json.loads(run_python(code, PYTHONWARNINGS="ignore", JAX_ENABLE_COMPILATION_CACHE="0").stdout))
    never, was = found
    assert was == never
    assert all(tag in never["texts"][0] for tag in ('block = "true"', 'k = "v"', 'of = "rule"'))
    assert never["traced"]["f"] > 1 and len(never["events"]) > 2


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


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_wrapper_over_ours_comes_and_goes(place):
    (owner, name), on, calls = place, expected(), []
    below = getattr(owner, name)
    with mock.patch.object(owner, name, lambda *args, **kwargs: calls.append(1) or below(*args, **kwargs)):
        off = tags()
        assert calls and off != on
        with hlotag.stage():
            assert tags() == on
    assert tags() == off
    with hlotag.stage():
        assert tags() == on


BELOW = """
import jax, jax.numpy as jnp
from jax._src import cache_key, compiler, core
from jax._src.interpreters import mlir, partial_eval as pe

PLACES = [
    (core.Primitive, "bind"), (pe.DynamicJaxprTrace, "make_eqn"), (mlir, "lower_jaxpr_to_module"),
    (compiler, "backend_compile_and_load"), (cache_key, "get"),
]
calls = {place: 0 for place in PLACES}

def other(place, below):
    def wrapped(*args, **kwargs):
        calls[place] += 1
        return below(*args, **kwargs)

    def lower(name, program, *args, **kwargs):
        return wrapped(name, program, *args, **kwargs)

    return lower if place == (mlir, "lower_jaxpr_to_module") else wrapped

untouched = {place: vars(place[0])[place[1]] for place in PLACES}
for (owner, name), below in untouched.items():
    setattr(owner, name, other((owner, name), below))

import hlotag

def tags():
    lowered = jax.jit(jax.grad(lambda x: hlotag.set_xla_metadata(jnp.sin(x), k="v").sum())).lower(jnp.ones(4))
    return lowered.as_text().count('k = "v"'), lowered.compile().as_text().count('k="v"')

with hlotag.stage():
    print(*tags(), min(calls.values()) > 0)
"""


RESTORED = """
for (owner, name), below in untouched.items():
    setattr(owner, name, below)
with hlotag.stage():
    print(*tags(), len([place for place, below in untouched.items() if vars(place[0])[place[1]] is below]))
"""


def test_a_wrapper_below_ours_may_name_its_parameters_as_it_likes(run_python):
    done = run_python(BELOW, JAX_COMPILATION_CACHE_DIR="cache")
    assert done.stdout.split() == ["2", "1", "True"] and "TagDroppedWarning" not in done.stderr


def test_where_ours_is_gone_the_next_stage_wraps_again(run_python):
    """`mock.patch` puts back what it found, without our wrapper."""
    done = run_python(f"import hlotag.lowering.staging\n{BELOW}{RESTORED}", JAX_COMPILATION_CACHE_DIR="cache")
    assert done.stdout.split() == ["2", "1", "True", "2", "1", "0"]
