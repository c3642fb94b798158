# SPDX-License-Identifier: Apache-2.0
"""What a rule says: exclusion, values from the path, recomputation, phases, order, reports; what the walk enters for it."""

import inspect
import pickle
import re
import warnings
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters import mlir
from jax.experimental import checkify, pallas

import hlotag
from hlotag import Rule, _compat
from hlotag.passes.rules import attach
from hlotag.tagging.matching import Path, RuleSet
from hlotag.tagging.walk import Walk
from modules import ops_of

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def model(x):
    for number in range(3):
        with jax.named_scope(f"layer_{number}"):
            with jax.named_scope("attention"):
                x = jnp.sin(x @ x)
            with jax.named_scope("mlp"):
                x = jnp.tanh(x)
    return (x * x).sum()


def tags(rules, function=model, key="k"):
    """Of each tagged operation, its kind and the value of a key."""
    with hlotag.stage(rules=rules):
        ops = ops_of(jax.jit(lambda x: function(x)).lower(X))
    return [(op.name.removeprefix("stablehlo."), op.entries[key]) for op in ops if key in op.entries]


def test_unless_excludes_what_matches_all_its_patterns():
    rule = Rule({"k": "v"}, scope="layer_*/attention", unless={"scope": "layer_1"})
    assert tags([rule]) == [("dot_general", "v"), ("sine", "v")] * 2
    rule = Rule({"k": "v"}, scope="layer_*/attention", unless={"op": "sine"})
    assert tags([rule]) == [("dot_general", "v")] * 3
    rule = Rule({"k": "v"}, scope="layer_*", unless=[{"scope": "attention", "op": "sine"}, {"scope": "layer_2"}])
    assert tags([rule]) == [("dot_general", "v"), ("tanh", "v")] * 2


def test_unless_holds_in_functions_and_gradients():
    shared = jax.jit(lambda x: jnp.sin(x) * x)

    def f(x):
        for number in range(2):
            with jax.named_scope(f"layer_{number}"):
                x = shared(x)
        return x.sum()

    rule = Rule({"k": "v"}, scope="layer_*", grad={"k": "d"}, unless={"scope": "layer_1"})
    values = [value for _, value in tags([rule], jax.grad(f))]
    with hlotag.stage(rules=[Rule({"k": "v"}, scope="layer_0", grad={"k": "d"})]):
        ops = ops_of(jax.jit(jax.grad(f)).lower(X))
    assert values == [op.entries["k"] for op in ops if "k" in op.entries] and {"v", "d"} == set(values)


def test_values_take_text_from_the_path():
    rule = Rule({"k": "{n}-{m}"}, scope="layer_{n}/{m}", op="dot_general", grad={"k": "back {n}"})
    assert tags([rule]) == [("dot_general", f"{n}-attention") for n in range(3)]
    found = {value for _, value in tags([rule], jax.grad(model))}
    assert found == {text for n in range(3) for text in (f"{n}-attention", f"back {n}")}

    of_inner_scope = jax.named_scope("a1")(jax.named_scope("a2")(lambda x: jnp.sin(x)))
    assert tags([Rule({"k": "{n}"}, scope="a{n}")], of_inner_scope) == [("sine", "2")]
    message = "rule 1, where n is 'attention': key '_scheduling_group_id': the value 'attention'"
    with pytest.raises(hlotag.errors.TagError, match=message):
        tags([Rule({"_scheduling_group_id": "{n}"}, scope="layer_0/{n}")])


@pytest.mark.parametrize("form", ["tag", "tagged", "rule", "op rule"])
def test_recomputed_operations_have_entries_of_their_own(form):
    attrs, more = {"k": "f"}, {"grad": {"k": "d"}, "remat": {"k": "r"}}

    def layer(x):
        if form == "tag":
            return jnp.cos(hlotag.tag(jnp.sin(x), attrs, **more))
        block = hlotag.tagged(attrs, **more) if form == "tagged" else jax.named_scope("a")
        with block:
            y = jnp.sin(x)
        return jnp.cos(y)

    rules = {"rule": [Rule(attrs, scope="a", **more)], "op rule": [Rule(attrs, op="sine", **more)]}.get(form, [])
    found = set(tags(rules, jax.grad(lambda x: jax.checkpoint(layer)(x).sum())))
    assert found >= {("sine", "r"), ("cosine", "r"), ("multiply", "d")} and ("sine", "d") not in found


@pytest.mark.parametrize(("grad", "derived"), [("same", "f"), ("drop", None), ({"k": "d"}, "d"), (None, "f")])
@pytest.mark.parametrize("phase", ["forward", "backward", "both"])
def test_phase_and_grad(phase, grad, derived):
    values = {value for _, value in tags([Rule({"k": "f"}, scope="layer_*", phase=phase, grad=grad)], jax.value_and_grad(model))}
    has_derived = phase != "backward" and derived and (phase != "forward" or grad is not None)
    assert values == ({"f", derived} if has_derived else {"f"})


def test_backward_rule_of_the_user_has_tags_of_its_own_scopes():
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), jax.named_scope("mine")(lambda x, g: (jnp.exp(g * x),)))
    gradient = jax.grad(lambda x: f(x).sum())
    assert ("exponential", "v") in tags([Rule({"k": "v"}, scope="mine", grad="drop")], gradient)
    assert tags([Rule({"k": "v"}, scope="mine", phase="forward")], gradient) == []


def test_source_is_the_innermost_line_and_caller_any():
    """jnp.tanh has no line of its own in the user's code: it has that of its call."""
    shared = jax.jit(lambda x: jnp.tanh(x) * x)

    def f(x):
        a = shared(x)  # the first call
        b = shared(jnp.var(x) + x)
        return (a * b).sum()

    line = f.__code__.co_firstlineno + 1
    for function in (f, jax.grad(f)):
        first, any_caller = (
            tags([Rule({"k": "v"}, **{field: f"test_rules.py:{line}"})], function) for field in ("source", "caller")
        )
        assert ("func.call", "v") in first and ("tanh", "v") not in first
        assert any_caller.count(("tanh", "v")) == 1
        second = tags([Rule({"k": "v"}, source=f"test_rules.py:{line + 1}")], function)
        assert ("divide", "v") in second and ("tanh", "v") not in second


def test_lines_of_a_body_are_not_those_of_its_loop():
    """Of nested loops, each has the line of its call."""

    def f(x):
        body = lambda i, x: jnp.sin(x)
        return lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, 2, body, jnp.cos(x)), x)

    line = f.__code__.co_firstlineno
    with hlotag.stage(rules=[Rule({"k": "{line}"}, source="test_rules.py:{line}"), Rule({"c": "v"}, caller=f"*:{line + 2}")]):
        ops = ops_of(jax.jit(f).lower(X))
    lines = {op.name: int(op.entries["k"]) - line for op in ops if op.name in ("stablehlo.sine", "stablehlo.cosine")}
    assert lines == {"stablehlo.sine": 1, "stablehlo.cosine": 2}
    with hlotag.stage(rules=[Rule({"k": "v"}, source=f"*:{line + 2}"), Rule({"c": "v"}, caller=f"*:{line + 2}")]):
        by_name = {op.name: op.entries.keys() for op in ops_of(jax.jit(f).lower(X))}
    assert by_name["stablehlo.while"] == by_name["stablehlo.cosine"] == {"k", "c"} and by_name["stablehlo.sine"] == {"c"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_deeper_match_wins_in_any_order_without_a_warning(order):
    @jax.named_scope("outer")
    def f(x):
        return jax.named_scope("inner")(jnp.sin)(x) * x

    pairs = [
        (Rule({"k": "outer"}, scope="outer"), Rule({"k": "inner"}, scope="outer/inner")),
        (Rule({"k": "outer"}, caller="test_rules.py"), Rule({"k": "inner"}, scope="inner")),
        (Rule({"k": "outer"}, op="*"), Rule({"k": "inner"}, scope="inner")),
    ]
    for pair in pairs:
        with warnings.catch_warnings(action="error"):
            assert tags([pair[n] for n in order], f) == [("sine", "inner"), ("multiply", "outer")]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("field", [{"scope": "first"}, {"function": "main"}])
def test_a_rule_without_a_field_is_around_the_first_match(field, order):
    pair = Rule({"k": "around"}, op="*"), Rule({"k": "own"}, **field)
    with warnings.catch_warnings(action="error"):
        assert tags([pair[n] for n in order], jax.named_scope("first")(jnp.sin)) == [("sine", "own")]


def test_a_rule_without_a_caller_is_around_the_first_line():
    rules = RuleSet((Rule({"k": "own"}, caller="main.py"), Rule({"k": "around"}, op="*")))
    path = rules.enter_line(Path(), [("main.py", 3, 1)])
    assert [applied.index for applied in rules.find_applied(path)] == [1, 0]


def test_function_is_a_block_around_its_body():
    def inner(x):
        return jnp.sin(x)

    def f(x):
        return jnp.cos(jax.jit(inner)(x))

    assert tags([Rule({"k": "v"}, function="inner")], f) == [("sine", "v")]
    with hlotag.stage(rules=[Rule({"k": "v"}, function="main"), Rule({"j": "v"}, function="f")]):
        assert all({"k", "j"} == set(op.entries) for op in ops_of(jax.jit(f).lower(X)))


def test_last_of_equally_deep_rules_wins_with_a_warning_and_blocks_win_over_rules():
    @jax.named_scope("a")
    @hlotag.tagged({"mine": "block"})
    def f(x):
        return hlotag.tag(jnp.sin(x), {"k": "value"})

    rules = [Rule({"k": "1", "j": "1", "mine": "1"}, op="sine", scope="a"), Rule({"k": "2", "j": "2"}, scope="a")]
    words = 'rule 2 sets \'j\' to "2" where rule 1 sets it to "1"; the later rule wins'
    with pytest.warns(hlotag.TagDroppedWarning, match=words), hlotag.stage(rules=rules):
        (op,) = ops_of(jax.jit(f).lower(X))
    assert op.entries == {"k": "value", "j": "2", "mine": "block"}


def test_a_rule_takes_no_round_of_a_loop_for_a_helper_of_the_next():
    """`exp2` lowers to a product and its exponential, at one location in all rounds."""

    def rounds(x):
        for _ in range(2):
            x = lax.exp2(x)
        return x

    with hlotag.stage(rules=[Rule({"k": "v"}, op="multiply")]):
        ops = ops_of(jax.jit(rounds).lower(X))
    entries = {kind: [op.entries for op in ops if op.name == f"stablehlo.{kind}"] for kind in ("multiply", "exponential")}
    assert entries == {"multiply": [{"k": "v"}] * 2, "exponential": [{}] * 2}


@pytest.mark.parametrize("pattern", ["layer_[0-9]", "layer_!1", "{n", "n}", "{n}{n}"])
@pytest.mark.parametrize("field", ["scope", "op", "unless"])
def test_characters_of_other_globs_are_errors(field, pattern):
    given = {"scope": "a", "unless": {"scope": pattern}} if field == "unless" else {field: pattern}
    with pytest.raises(hlotag.errors.TagError, match=r"patterns have \* for any text|occurs twice|has no meaning"):
        Rule({"k": "v"}, **given)


@pytest.mark.parametrize("field", ["attrs", "grad", "remat"])
def test_a_name_in_braces_that_no_pattern_has_is_an_error(field):
    given = {"attrs": {"k": "v"}, field: {"k": "a {m}"}}
    with pytest.raises(hlotag.errors.TagError, match=r"k='a \{m\}': no pattern of the rule has the name \{m\}; .* have \{n\}"):
        Rule(scope="layer_{n}", **given)
    Rule(scope="layer_*", **given)  # Text, as that of a sharding.


def test_a_stage_shows_its_rules():
    with hlotag.stage(rules=[Rule({"k": "v"}, op="sine")]) as stage:
        assert 'rules=[{op = "sine", phase = "both", attrs = {"k" = "v"}}]' in repr(stage) and " at 0x" not in repr(stage)


def test_repr_makes_an_equal_rule():
    for rule in (
        Rule({"k": 1}, op="sine"),
        Rule({"k": "{n}"}, scope="a{n}", unless={"op": "sine"}, grad="drop", remat={"k": "r"}),
        Rule({"_scheduling_group_id": 1}, op="sine", phase="backward"),
    ):
        assert eval(repr(rule), {"Rule": Rule}) == rule == pickle.loads(pickle.dumps(rule))


def test_an_unmatched_rule_names_the_nearest_scope(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nscope = "layer_*/attentoin"\nattrs = { k = "v" }\n')
    warned = r" matched no operation of the program: .*nearest scope is 'layer_\d/attention'"
    misspelt, loaded = [Rule({"k": "v"}, scope="layer_*/attentoin")], hlotag.load_rules(path)
    for rules, place in ((misspelt, "rule 1"), (loaded, f"rule 1 \\({path}:1\\)")):
        with pytest.warns(hlotag.TagIgnoredWarning, match=place + warned):
            tags(rules)
    with warnings.catch_warnings(action="error"):
        tags([Rule({"k": "v"}, scope="layer_*/attention")])
        with hlotag.stage(rules=[Rule({"other": "v"}, scope="no_program_was_lowered")]):
            pass


def test_each_block_reports_what_its_rules_did_not_match():
    def warned(function):
        """What a block with these rules warns of, when it lowers a new program."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with hlotag.stage(rules=[Rule({"own": "block"}, op="tanh")]):
                jax.jit(lambda x: function(x)).lower(1.0)
        return [str(each.message).partition(": {")[0] for each in said]

    unmatched = "hlotag: rule 1 matched no operation of the program"
    assert [warned(jnp.sin), warned(jnp.sin)] == [[unmatched]] * 2
    assert [warned(jnp.tanh), warned(jnp.sin)] == [[], [f"{unmatched}, but one of an earlier block"]]


def test_reports_of_another_enable_and_at_the_end_of_the_process(run_python):
    """A notebook runs the cell with `enable` again."""
    program = "hlotag.enable(rules=[hlotag.Rule({'k': 'v'}, op='%s'), hlotag.Rule({'k': 'v'}, op='sine')])"
    lower = "jax.jit(lambda x: jax.numpy.sin(x)).lower(1.0)"
    code = f"{program % 'cosine'}; {lower}; {program % 'tanh'}; print('enabled again', file=sys.stderr); {lower}"
    first, _, second = run_python(f"import jax, hlotag, sys; {code}").stderr.partition("enabled again")
    for said, op in ((first, "cosine"), (second, "tanh")):
        assert said.count("TagIgnoredWarning") == 1 and f'rule 1 matched no operation of the program: {{op = "{op}"' in said


def test_options_of_a_tag_need_its_function_and_a_stage(run_python):
    for name in ("grad", "remat"):
        with pytest.raises(hlotag.errors.TagError, match=rf"write hlotag.tag\(x, \{{...\}}, {name}=...\)"):
            hlotag.set_xla_metadata(X, k="v", **{name: "drop"})
    tags = "for _ in range(3): hlotag.tag(jnp.ones(2), {'k': 'v'}, grad='drop')"
    block = "with hlotag.tagged({'k': 'v'}, remat='drop'): pass"
    assert run_python(f"import jax.numpy as jnp, hlotag\n{tags}\n{block}").stderr.count("TagIgnoredWarning") == 1


def test_an_equation_that_does_not_lower_alone_keeps_no_arrays():
    @jax.vmap
    def f(x):
        checkify.check(x.sum() == 1.0, "not one")
        return x

    with jax.checking_leaks(), hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="*")]):
        for _ in range(2):
            assert f(jnp.array([[0.5, 0.5], [1.0, 0.0]])).shape == (2, 2)


ONE_RULE = "[[rule]]\nop = 'a'\nattrs = {k = 'v'}\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (
            "\n[[rule]]\nopp = 'a'\nattrs = {k = 'v'}\n",
            "3",
            r"rule 1: unknown field 'opp'; fields are op, .*; did you mean op\?\n    opp = 'a'$",
        ),
        (
            f"{ONE_RULE}[[rule]]\nop = 'b'\nattrs = {{inlineable = 'never'}}\n",
            "6",
            "rule 2: key 'inlineable'.*'never'.*xla_early.*\n    attrs = {inlineable = 'never'}$",
        ),
        ("[[rule]]\nop = 'a'\n", "1", "rule 1: a rule needs attrs.*\n    \\[\\[rule\\]\\]$"),
        ("[[rule]]\nop = a\n", "2", "not a TOML file: .*\n    op = a$"),
        # The header within a string is none, and then no line is better than a wrong one.
        (
            '[[rule]]\nop = 3\nattrs = {k = """\n[[rule]]\n"""}\n',
            None,
            "rule 1: rule field 'op' must be a non-empty string, got 3$",
        ),
    ],
    ids=["field", "value", "attrs", "syntax", "header-in-a-string"],
)
def test_an_error_in_a_rules_file_shows_its_line(text, place, message, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    where = f"{path}:{place}: " if place else f"{path}: "
    with pytest.raises(hlotag.errors.TagError, match=re.escape(where) + message):
        hlotag.load_rules(path)


def test_rules_of_a_file_are_part_of_the_pipeline(tmp_path):
    """What is done does not depend on what becomes of the file, and JAX's caches see what was in it."""
    path = tmp_path / "rules.toml"
    pipeline = hlotag.passes.DEFAULT_PIPELINE.replace("hlotag-resolve", f"hlotag-resolve,hlotag-attach{{rules-file={path}}}")
    f = jax.jit(lambda x: jnp.sin(x))
    counts = []
    for value in ("one", "two"):
        path.write_text(f"[[rule]]\nop = 'sine'\nattrs = {{k = '{value}'}}\n")
        with hlotag.stage(pipeline):
            path.unlink()
            counts.append([f.lower(X).as_text().count(f'k = "{word}"') for word in ("one", "two")])
    assert counts == [[1, 0], [0, 1]]


def test_a_rule_that_matched_nothing_is_logged(caplog):
    module = jax.jit(jnp.sin).lower(X).as_text()
    with caplog.at_level("DEBUG", logger="hlotag"):
        hlotag.run_passes(module, attach([hlotag.Rule({"k": "v"}, op="tanh")]))
    assert "rule 1 matched nothing" in caplog.text
    assert {record.levelname for record in caplog.records} == {"DEBUG"}


def test_a_key_in_a_file_of_rules_warns_at_the_files_line(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(f"{ONE_RULE}[[rule]]\nop = 'b'\nattrs = {{scheduling_group_id = 7}}\n")
    with pytest.warns(hlotag.KeyIgnoredWarning, match="did you mean '_scheduling_group_id'") as caught:
        hlotag.load_rules(path)
    assert (caught[0].filename, caught[0].lineno) == (str(path), 4)


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


def test_a_loops_key_stays_out_of_its_body_whatever_a_rule_gives_other_operations_there():
    def f(x):
        body = lambda c, _: (jnp.tanh(jnp.sin(c)), None)
        return lax.scan(body, x, length=3)[0]

    rules = [Rule({"k": "loop"}, source=f"*:{f.__code__.co_firstlineno + 2}"), Rule({"k": "op"}, op="sine")]
    assert [each for each in tags(rules, f) if each[0] in ("while", "sine", "tanh")] == [("while", "loop"), ("sine", "op")]


def test_equal_operations_have_one_row():
    walk = Walk(rules=RuleSet([hlotag.Rule({"k": "v"}, op="*")]))
    walk.rewrite(jax.make_jaxpr(lambda x: jnp.cos(jnp.sin(jnp.sin(x))))(X))
    assert [row.primal.primitive.name for row in walk.table] == ["sin", "cos"]


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
    rules = [hlotag.Rule({"layer": str(n)}, caller=f"test_rules.py:{line + n}", op="dot_general") for n in (1, 2, 3)]
    rules += [hlotag.Rule({"any": "{n}"}, caller="test_rules.py:{n}", unless={"caller": f"*:{line + 3}"})]
    # JAX inlines the forward pass of a checkpoint, and its equations keep the lines of the function only.
    for function, expected in ((model, {"1": 1, "2": 1, "3": 1}), (jax.grad(model), {"1": 3, "2": 3, None: 1, "3": 3})):
        with hlotag.stage(rules=rules):
            products = [op.entries for op in ops_of(jax.jit(function).lower(X)) if op.name == "stablehlo.dot_general"]
        assert Counter(entries.get("layer") for entries in products) == expected
        # The deepest line that matches is that of the product itself.
        assert all(entries.get("any") == (None if entries.get("layer") == "3" else str(line - 2)) for entries in products)
