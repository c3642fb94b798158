# SPDX-License-Identifier: Apache-2.0
"""The tagging functions: what each form tags, precedence, values and warnings."""

import warnings
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import jet, xla_metadata

import hlotag
from hlotag import _compat
from hlotag.tagging.walk import Walk
from modules import ops_of

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
W = np.eye(4, dtype=np.float32) + 0.1


def lower(function, *args):
    return jax.jit(function).lower(*(args or (X, W)))


def tagged_ops(function, *args, key="k"):
    """[(op, value)] of the ops that bear `key`, constants aside."""
    ops = ops_of(lower(function, *args))
    return [(op.name, op.entries[key]) for op in ops if key in op.entries and op.name != "stablehlo.constant"]


def names(function, *args, key="k"):
    return [name.removeprefix("stablehlo.") for name, _ in tagged_ops(function, *args, key=key)]


def values_of(kind, function):
    """What the ops of a kind have for the key, in order; None for an op without it."""
    return [op.entries.get("k") for op in ops_of(lower(function)) if op.name == f"stablehlo.{kind}"]


# --- The value form, the rows of what users expect and JAX does not give ------------------------------------------------------


def test_a_transformation_that_jax_keeps_apart_tags_all_its_terms(staged, set_xla_metadata):
    """`jet` has a tracer of its own, as transformations of other libraries have."""

    taylor = lambda f: lambda x, w: jet.jet(lambda x: f(x) * jnp.cos(x), (x,), ([jnp.tanh(x), jnp.exp(x)],))
    by_value, by_block = lambda x: set_xla_metadata(jnp.sin(x), k="v"), set_xla_metadata(k="v")(lambda x: jnp.sin(x))
    assert names(taylor(by_value)) == names(taylor(by_block)) != ["sine"]


def test_a_product_is_tagged_whatever_becomes_of_the_tag(staged, set_xla_metadata):
    gradient_of_a_dead_operation = jax.grad(lambda x, w: set_xla_metadata(x @ w, k="v").sum())

    def result_of_the_tag_ignored(x, w):
        y = x @ w
        set_xla_metadata(y, k="v")
        return jnp.sin(y)

    def other_key_within_a_block(x, w):
        y = x @ w
        with set_xla_metadata(other="block"):
            return set_xla_metadata(y, k="v")

    assert names(gradient_of_a_dead_operation) == names(result_of_the_tag_ignored) == ["dot_general"]
    assert names(other_key_within_a_block) == ["dot_general"] and names(other_key_within_a_block, key="other") == []


# --- Precedence --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda S: lambda x, w: S(S(x @ w, k="a"), k="b"), "b"),
        (lambda S: S(k="outer")(S(k=None)(lambda x, w: x @ w)), None),
    ],
    ids=["last tag", "None removes"],
)
def test_precedence(staged, set_xla_metadata, f, expected):
    assert tagged_ops(f(set_xla_metadata)) == ([("stablehlo.dot_general", expected)] if expected else [])


@pytest.mark.parametrize("where", ["branch", "loop", "inner jit", "checkpoint"])
@pytest.mark.parametrize("grad", [False, True], ids=["forward", "grad"])
def test_a_removed_key_stays_away_from_a_body(staged, set_xla_metadata, where, grad):
    def body(x):
        with set_xla_metadata(k=None):
            y = jnp.cos(x)
        return jnp.tanh(y)

    within = {
        "branch": lambda x, w: lax.cond(w.sum() > 0, body, jnp.tanh, x),
        "loop": lambda x, w: lax.fori_loop(0, 3, lambda _, c: body(c), x),
        "inner jit": lambda x, w: jax.jit(body)(x),
        "checkpoint": lambda x, w: jax.checkpoint(body)(x),
    }[where]
    f = set_xla_metadata(k="v", other="o")(lambda x, w: (within(x, w) ** 2).sum())
    lowered = lower(jax.grad(f) if grad else f)
    cosines = [op.entries for op in ops_of(lowered) if op.name in ("stablehlo.cosine", "stablehlo.sine")]
    assert cosines
    assert all(entries == {"other": "o"} for entries in cosines)
    assert all(op.entries.get("k") == "v" for op in ops_of(lowered) if op.name == "stablehlo.tanh")
    assert "unset" not in lowered.as_text()


def test_an_outer_tag_does_not_restore_a_dropped_key(staged):
    def f(x, w):
        def step(c, _):
            with hlotag.tagged({"k": "inner"}, grad="drop"):
                return jnp.matmul(c, w), None

        with hlotag.tagged({"k": "outer"}):
            return (lax.scan(step, x, None, length=2)[0] ** 2).sum()

    assert values_of("dot_general", jax.value_and_grad(f, (0, 1))) == ["inner", None, None]


# --- Different tags for the backward pass ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["value", "block"])
@pytest.mark.parametrize(("grad", "expected"), [("same", "f"), ("drop", None), ({"k": "b"}, "b")], ids=["same", "drop", "other"])
@pytest.mark.parametrize("where", ["direct", "inner jit", "scope", "scan", "checkpoint"])
def test_grad_policies(staged, form, grad, expected, where):
    multiply = {
        "direct": jnp.matmul,
        "inner jit": jax.jit(jnp.matmul),
        "scope": jax.named_scope("scope")(jnp.matmul),
        "scan": lambda x, w: lax.scan(lambda c, _: (c @ w, None), x, None, length=1)[0],
        "checkpoint": jax.checkpoint(jnp.matmul),
    }[where]

    tagged = {
        "value": lambda x, w: hlotag.tag(multiply(x, w), {"k": "f"}, grad=grad),
        "block": hlotag.tagged({"k": "f"}, grad=grad)(multiply),
    }[form]
    gradient = jax.value_and_grad(lambda x, w: (tagged(x, w) ** 2).sum(), (0, 1))
    assert values_of("dot_general", gradient) == ["f", expected, expected]


@jax.custom_vjp
def ruled(x):
    return jnp.sin(x)


ruled.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (jnp.cos(x) * ct,))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (jax.checkpoint(lambda x: jnp.tanh(jnp.tanh(x))), {"v", "r", "d"}),
        (jax.grad(lambda x: jnp.sin(x) * jnp.tanh(x)), {"v", "d"}),
        (ruled, {"v", "d"}),
    ],
    ids=["checkpoint", "gradient", "backward rule"],
)
def test_what_derives_within_a_tagged_loop_is_derived(staged, body, expected):
    """A tag of a loop's value gives the operations in it what a block gives them that the loop is traced in."""
    policies = {"grad": {"k": "d"}, "remat": {"k": "r"}}

    def loop(x):
        return lax.scan(lambda c, _: (body(c), None), x, None, length=2)[0]

    def count(f):
        ops = [op for op in ops_of(lower(jax.grad(f), 1.0)) if op.name.split(".")[1] in ("sine", "cosine", "tanh", "multiply")]
        return Counter((op.name, op.entries["k"]) for op in ops)

    by_value = count(lambda x: hlotag.tag(loop(x), {"k": "v"}, **policies))
    assert by_value == count(hlotag.tagged({"k": "v"}, **policies)(loop))
    assert {value for _, value in by_value} == expected


# --- Values and keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["value", "block"])
def test_the_last_tag_says_what_derived_operations_get(staged, form):
    def f(x):
        if form == "value":
            y = hlotag.tag(jnp.sin(x), {"first": "1"}, grad={"k": "first"})
            return hlotag.tag(y, {"last": "1"}, grad={"k": "last"}).sum()
        with hlotag.tagged({"first": "1"}, grad={"k": "first"}), hlotag.tagged({"last": "1"}, grad={"k": "last"}):
            return jnp.sin(x).sum()

    assert {value for _, value in tagged_ops(jax.grad(f), X)} == {"last"}


@pytest.mark.parametrize("pipeline", [None, hlotag.passes.DEFAULT_PIPELINE], ids=["stage off", "stage on"])
@pytest.mark.parametrize("transform", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_leaves_that_are_no_arrays_stay_as_they_are(pipeline, transform):
    leaves = {"text": "s", "float": 1.5, "bool": True, "function": len, "nothing": None}

    def f(x):
        tagged = hlotag.tag({"array": jnp.sin(x), **leaves}, {"k": "v"})
        assert {name: tagged[name] for name in leaves} == leaves
        assert [type(tagged[name]) for name in leaves] == [type(leaf) for leaf in leaves.values()]
        return tagged["array"]

    with hlotag.stage(pipeline), warnings.catch_warnings(action="error"):
        transform(f)(X)


@pytest.mark.parametrize("form", ["value", "block"])
def test_equal_values_of_different_types_stay_different(staged, set_xla_metadata, form):
    # JAX interns contexts by ==, where True, 1 and 1.0 are one.
    tagged = {
        "value": lambda k: lambda x, w: set_xla_metadata(x @ w, k=k),
        "block": lambda k: set_xla_metadata(k=k)(lambda x, w: x @ w),
    }[form]
    got = [tagged_ops(tagged(value))[0][1] for value in (True, 1, 1.0, False, 0, 0.0)]
    assert got == ["true", "1", "1.0", "false", "0", "0.0"]
    of_numpy = np.int32(7), np.bool_(True), np.float32(0.5)
    assert [tagged_ops(lambda x, w, v=v: hlotag.tag(x @ w, {"k": v}))[0][1] for v in of_numpy] == ["7", "true", "0.5"]


def test_any_text_is_a_value_and_a_key(staged):
    for text in ("", 'a"b', "a\nb", "a\\b", "{x}", "é漢", "a'b", "\x01hlotag#0\x01", "\x01hlotag.unset", "=v"):
        for function in (lambda x, w: hlotag.tag(x @ w, {"k": text}), hlotag.tagged({"k": text})(jnp.matmul)):  # noqa: B023
            assert tagged_ops(function) == [("stablehlo.dot_general", text)]
    for key in ("x", "self", "two words", "a.b/c", "grad", "é"):
        assert tagged_ops(lambda x, w, k=key: hlotag.tag(x @ w, {k: "v"}), key=key) == [("stablehlo.dot_general", "v")]
        if key != "grad":  # An option of `hlotag.tag`, and so refused as a key here.
            assert names(lambda x, w, k=key: hlotag.set_xla_metadata(x @ w, **{k: "v"}), key=key) == ["dot_general"]


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"k": [1]}, "key 'k': metadata values must be str, bool, int or float, got .*list"),
        *[({"k": X}, "got .*"), ({"k": None}, "'k'.*NoneType"), ({"k": {"a": 1}}, "'k'.*dict"), ({3: "v"}, "3.*int")],
        *[({"hlotag.x": "v"}, "reserved"), ("k", "mapping.*str")],
        ({"k": "\ud800"}, r"'k': '\\ud800'.*surrogates"),
        ({"\ud800": "v"}, r"key: '\\ud800'.*surrogates"),
    ],
)
def test_what_cannot_be_a_tag_is_refused_where_it_is_written(attrs, message):
    with pytest.raises(hlotag.errors.TagError, match=message):
        hlotag.tag(X, attrs)


# --- Values that no operation made -------------------------------------------------------------------------------------------


# Programs that tag a value, by what it is; `f` is a sine of the tagged value.
NOT_COMPUTED = {
    "argument": lambda tag, f: lambda x, w: tag(x) @ w,
    # The caller computed the tangent, or the term, which is not what the tag is meant for.
    "primal argument": lambda tag, f: lambda x, w: jax.jvp(f, (x,), (x * 2.0,)),
    "argument of jet": lambda tag, f: lambda x, w: jet.jet(f, (x,), ([x * 2.0],)),
    "carry": lambda tag, f: lambda x, w: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "operand": lambda tag, f: lambda x, w: lax.cond(w.sum() > 0, f, jnp.cos, x),
    "inner jit argument": lambda tag, f: lambda x, w: jax.jit(f)(x),
    "constant": lambda tag, f: lambda x, w: jnp.sin(x) + tag(jnp.asarray(W)),
}


@pytest.mark.parametrize("case", NOT_COMPUTED)
def test_arguments_and_carries_warn_with_the_users_line(staged, set_xla_metadata, case):
    tag = lambda v: set_xla_metadata(v, k="v")
    with pytest.warns(hlotag.TagDroppedWarning, match="k='v'") as caught:
        assert names(NOT_COMPUTED[case](tag, lambda x: jnp.sin(tag(x)))) == []
    assert {warning.filename for warning in caught} == {__file__}


def test_a_dropped_tag_warns_once_for_each_place(staged, set_xla_metadata):
    with warnings.catch_warnings(record=True, action="default") as caught:
        for _ in range(3):
            lower(lambda x, w: set_xla_metadata(x, once="v") @ w)
        lower(lambda x, w: set_xla_metadata(x, once="v") @ w)
    places = [(w.filename, w.lineno) for w in caught if issubclass(w.category, hlotag.TagDroppedWarning)]
    assert len(places) == len(set(places)) == 2 and {file for file, _ in places} == {__file__}


OP_BY_OP = {
    "vmap": jax.vmap,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "jet": lambda f: lambda x: jet.jet(f, (x,), ([x],)),
    "vmap of an axis": lambda f: jax.vmap(lambda x: f(lax.psum(x, "i")), axis_name="i"),
    "grad of what has no tangent": lambda f: jax.grad(lambda x: (f(jnp.floor(x)) * x).sum()),
}


@pytest.mark.parametrize("transform", OP_BY_OP)
def test_outside_of_a_trace_there_is_nothing_to_tag(staged, set_xla_metadata, transform):
    run, x = OP_BY_OP[transform](lambda x: set_xla_metadata(jnp.floor(x), k="v")), jnp.asarray(X)
    with warnings.catch_warnings(action="error"):
        run(x)
        assert set_xla_metadata(x, k="v") is x


# --- With the stage off ------------------------------------------------------------------------------------------------------


def test_without_the_stage_tags_are_jaxs_own():
    def lowered_with(S):
        product = S(block="b")(jnp.matmul)
        ops = ops_of(lower(jax.value_and_grad(lambda x, w: (S(jnp.tanh(product(x, w)), k="v") ** 2).sum())))
        return [(op.name, op.entries) for op in ops]

    assert lowered_with(hlotag.set_xla_metadata) == lowered_with(xla_metadata.set_xla_metadata)

    def policies(x, w):
        with hlotag.tagged({"k": "f", "m": "f"}, grad={"m": "b"}), hlotag.tagged({"k": None, "other": "o"}):
            assert _compat.tracing.ambient_metadata() == {"m": "f", "other": "o"}
            return (hlotag.tag(x @ w, {"l": "f"}, grad="drop") ** 2).sum()

    lowered = lower(jax.grad(policies))
    assert {key for op in ops_of(lowered) for key in op.entries} == {"l", "m", "other"}
    text = lowered.as_text(debug_info=True)
    assert "hlotag." not in text and "hlotag#" not in text


@pytest.mark.parametrize(
    "derivative", [jax.grad, lambda f: lambda x: jax.jvp(f, (x,), (x,)), jax.jit], ids=["grad", "jvp", "jit"]
)
def test_a_block_without_a_stage_records_jaxs_own_tags(derivative):
    """In the stage of a caller, too."""

    def equations():
        return str(jax.make_jaxpr(derivative(lambda x: xla_metadata.set_xla_metadata(jnp.sin(x), k="v") * x))(jnp.float32(1.0)))

    alone = equations()
    with hlotag.stage(), hlotag.stage(None):
        assert equations() == alone


def test_a_walk_tells_contexts_of_one_address_apart():
    """Contexts are known by address, so those of equations that are gone must not be."""
    walk = Walk()
    jaxpr = jax.make_jaxpr(lambda x: x + 1)(1.0).jaxpr
    (equation,) = jaxpr.eqns
    entries = [{"k": str(number)} for number in range(30)]
    for metadata in entries:
        tagged = [equation.replace(ctx=_compat.tracing.with_metadata(equation.ctx, metadata))]
        assert len(walk.rewrite(jaxpr.replace(eqns=tagged)).eqns) == 1
    assert [row.entries for row in walk.table] == entries


def test_a_blank_walk_removes_tags_and_leaves_no_mark():
    with hlotag.stage():
        jaxpr = jax.make_jaxpr(hlotag.tagged({"k": "v"})(jnp.sin))(1.0).jaxpr
    walk = Walk(blank=True)
    (equation,) = walk.rewrite(jaxpr).eqns
    assert (dict(equation.ctx.xla_metadata or {}), str(equation.source_info.name_stack), walk.table) == ({}, "", [])
