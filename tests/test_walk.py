# SPDX-License-Identifier: Apache-2.0
"""The walk over a program: which jaxprs it enters, and what it leaves alone."""

import inspect
from collections import Counter

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.interpreters import mlir
from jax.experimental import pallas

import hlotag
from hlotag import _compat
from hlotag.tagging.matching import RuleSet
from hlotag.tagging.walk import Walk
from modules import ops_of

X = jnp.ones((4, 4))


def has_equations(rule):
    """Whether a lowering rule of JAX's own takes jaxprs. Other libraries register theirs, too."""
    rule = inspect.unwrap(getattr(rule, "rule", rule))
    is_jaxs = (getattr(rule, "__module__", None) or "").startswith("jax.")
    return is_jaxs and any("jaxpr" in name or name == "branches" for name in inspect.signature(rule).parameters)


def test_each_primitive_of_jax_with_equations_is_in_the_table():
    tables = (mlir._lowerings, *mlir._platform_specific_lowerings.values())
    found = {primitive.name for table in tables for primitive, rule in table.items() if has_equations(rule)}
    assert len(found) > 12 and found <= _compat.jaxprs.WITH_EQUATIONS.keys()


def test_a_program_without_tags_is_not_copied():
    f = lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jax.jit(lambda x: lax.scan(lambda c, r: (c, r), x, x)[1]), x)
    jaxpr = jax.make_jaxpr(f)(X)
    for rules in (None, RuleSet([hlotag.Rule({"k": "v"}, scope="a")])):
        assert Walk(rules=rules).rewrite(jaxpr) is jaxpr


def test_a_kernel_has_the_tags_of_its_call():
    def kernel(x_ref, o_ref):
        with jax.named_scope("a"):
            o_ref[...] = jnp.sin(x_ref[...])

    @hlotag.tagged({"k": "v"}, grad={"k": "d"})
    def f(x):
        return pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)

    with hlotag.stage(rules=[hlotag.Rule({"r": "v"}, op="sine"), hlotag.Rule({"s": "v"}, scope="a")]):
        text = jax.jit(f).lower(X).as_text()
    assert 'k = "v"' in text and "hlotag" not in text and 's = "v"' not in text


def test_lines_of_callers_tell_layers_without_scopes_apart():
    """As in flax NNX: all layers have their product on one line, and each layer is called on a line of its own."""

    def dense(x):
        return jnp.tanh(x @ x)

    def model(x):
        x = jax.jit(dense)(x)
        x = jax.checkpoint(dense)(x)
        x = lax.scan(lambda c, _: (dense(c), None), x, length=2)[0]
        return x.sum()

    line = model.__code__.co_firstlineno
    rules = [hlotag.Rule({"layer": str(n)}, caller=f"test_walk.py:{line + n}", op="dot_general") for n in (1, 2, 3)]
    rules += [hlotag.Rule({"any": "{n}"}, caller="test_walk.py:{n}", unless={"caller": f"*:{line + 3}"})]
    # JAX inlines the forward pass of a checkpoint, and its equations keep the lines of the function only.
    for function, expected in ((model, {"1": 1, "2": 1, "3": 1}), (jax.grad(model), {"1": 3, "2": 3, None: 1, "3": 3})):
        with hlotag.stage(rules=rules):
            products = [op.entries for op in ops_of(jax.jit(function).lower(X)) if op.name == "stablehlo.dot_general"]
        assert Counter(entries.get("layer") for entries in products) == expected
        # The deepest line that matches is that of the product itself.
        assert all(entries.get("any") == (None if entries.get("layer") == "3" else str(line - 2)) for entries in products)
