# SPDX-License-Identifier: Apache-2.0
"""What callers give by mistake: the error is hlotag's own, and says which argument it is and what was given."""

import inspect
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlotag

pytestmark = pytest.mark.usefixtures("off_afterwards")
X = np.ones((2, 2), np.float32)
HALF = "a\ud800b"  # a lone surrogate
LONG = "x" * 100_000


def a_rule(**fields):
    return hlotag.Rule(**{"attrs": {"k": "v"}, "op": "*", **fields})


def run(pipeline="hlotag-strip", **options):
    return hlotag.run_passes("module {}", pipeline, **options)


MISTAKES = {
    "a flag that is text": (lambda: hlotag.enable(debug_origins="false"), "debug_origins must be True or False, got 'false'"),
    "a flag that is a list": (lambda: hlotag.enable(debug_origins=[]), r"debug_origins must be True or False, got \[\]"),
    "a flag of run_passes": (lambda: run(debug_origins=1), "debug_origins must be True or False, got 1"),
    "another flag of run_passes": (lambda: run(verify=None), "verify must be True or False, got None"),
    "a pipeline": (lambda: run(HALF), r"pipeline: 'a\\ud800b' cannot be encoded as UTF-8"),
    "a pipeline of the stage": (lambda: hlotag.enable(HALF), r"pipeline: 'a\\ud800b' cannot be encoded as UTF-8"),
    "a module": (lambda: hlotag.run_passes(f"// {HALF}\nmodule {{}}"), "lone surrogate, .* at offset 4"),
    "the name of a pass": (lambda: hlotag.register_pass(print, name=HALF), "name of a pass: .* cannot be encoded as UTF-8"),
    "a name that is no string": (lambda: hlotag.register_pass(print, name=3), "name of a pass must be a string, got 3"),
    "a key to register": (lambda: hlotag.register_key(HALF), "key: .* cannot be encoded as UTF-8"),
    "rules that are an array": (lambda: hlotag.enable(rules=X), r"rules must be hlotag\.Rule objects, got ndarray"),
    "rules that are none": (lambda: hlotag.enable(rules=None), r"rules must be a list of hlotag\.Rule objects, got NoneType"),
    "attrs that are an array": (lambda: a_rule(attrs=X), r"rule field 'attrs' must be a mapping of keys to values, got array"),
    "attrs that are empty text": (lambda: a_rule(attrs=""), "rule field 'attrs' must be a mapping of keys to values, got ''"),
    "keys of several types": (lambda: a_rule(attrs={"k": "v", 2: "w"}), "a key must be a non-empty string, got 2"),
    "a key with a zero byte": (lambda: hlotag.tag(X, {"a\0b": "v"}), r"key 'a\\x00b' has a zero byte"),
    "a rule's key with a zero byte": (lambda: a_rule(attrs={"\0": "v"}), r"key '\\x00' has a zero byte"),
    "a call's metadata": (
        lambda: hlotag.xla_metadata_call2(jnp.sin, X),
        "metadata must be a mapping of keys to values, got ndarray",
    ),
    "a call's empty metadata": (lambda: hlotag.xla_metadata_call2(jnp.sin, []), "metadata must be a mapping .* got list"),
    "what derived operations get": (lambda: hlotag.tag(X, {"k": "v"}, grad=X), r"grad must be 'same', .*, got array\("),
    "a policy that is an array": (lambda: hlotag.stage(on_error=X), r"on_error must be 'raise' or 'warn', got array\("),
    "a phase that is an array": (lambda: a_rule(phase=X), r"'phase' must be 'forward', 'backward' or 'both', got array\("),
    "what a rule says of derived ones": (lambda: a_rule(grad=X), "rule field 'grad' must be 'same', 'drop' or a mapping"),
    "a key's policy": (lambda: hlotag.register_key("k", derived=X), r"key 'k': derived must be 'same' or 'drop', got array\("),
    "a key's operations": (lambda: hlotag.register_key("k", ops=3), "key 'k': ops must be a list, got 3 of type int"),
    "a key's operation": (lambda: hlotag.register_key("k", ops=[3]), r"key 'k': ops must be strings, got \[3\]"),
    "a key's text": (lambda: hlotag.register_key("k", doc=3), "key 'k': doc must be a string, got 3"),
    "an unknown pass of the stage": (lambda: hlotag.enable("hlotag-resolv"), "hlotag-resolve"),
    "a pipeline that is no text": (lambda: hlotag.enable(3), "string"),
    "a pattern": (lambda: a_rule(scope=HALF), r"rule field 'scope': 'a\\ud800b' .*surrogates"),
    "no key of the HLO pass": (lambda: hlotag.enable(hlo=[]), "hlo must be True, False or a list of keys, got an empty"),
    "one key of the HLO pass": (lambda: hlotag.enable(hlo="k"), "hlo must be True, False or a list of keys such as .*, got 'k'"),
    "a key of the HLO pass": (lambda: hlotag.enable(hlo=[1]), r"hlo must be .*, got \[1\]"),
    "keys of names": (lambda: hlotag.enable(op_names="k"), "op_names must be a list of keys, got 'k'"),
    "what is called": (lambda: hlotag.xla_metadata_call2(3, {"k": "v"}), "callable.*3"),
    "an identifier of a fusion": (lambda: hlotag.must_fuse_call(jnp.sin), "expected an identifier.*write @hlotag.must_fuse_call"),
    "a backend": (lambda: hlotag.xla.xla_computation(jnp.sin, backend=X)(X), r"backend must be 'cpu', .*, got array\("),
    "what derived calls get": (lambda: hlotag.xla_metadata_call2(jnp.sin, {}, ad_metadata=X), "ad_metadata must be 'same', "),
    "what is decorated": (lambda: hlotag.tagged({"k": "v"})(3), "expected a callable to decorate, got 3"),
    "a class method": (lambda: hlotag.tagged({"k": "v"})(classmethod(print)), "got <classmethod.* write @classmethod, .* above"),
    "a long text": (lambda: a_rule(phase=LONG), r"rule field 'phase' must be .*, got 'x{90,100}\.\.\.x{90,100}'$"),
    "an array of many lines": (lambda: hlotag.enable(hlo=X), r"got array\(\[\[1\., 1\.\], \[1\., 1\.\]\], dtype=float32\)$"),
    "what a rule excludes": (lambda: a_rule(unless="a"), "must be a mapping of patterns or a list of mappings, got 'a'"),
    "a field of that": (lambda: a_rule(unless={"scop": "x"}), "unknown field 'scop'; fields are op, .*; did you mean scope[?]"),
    "a pattern of that": (lambda: a_rule(unless={"scope": ""}), "field 'scope' must be a non-empty string"),
    "a name in that": (lambda: a_rule(unless={"scope": "layer_{n}"}), "write [*]"),
    "a rule of no pattern": (lambda: hlotag.Rule({"k": "v"}), "rule"),
    "an audited": (lambda: hlotag.audit(3), "a function, a Lowered, a Compiled or a folder, not int"),
    "what rows are grouped by": (lambda: hlotag.audit(jnp.sin, X).costs_by(3), "by= must be a key, .* tuple of these, got 3"),
    "rows by nothing": (lambda: hlotag.audit(jnp.sin, X).costs_by(None), "by= must be a key, .*, got None"),
    "variants in a list": (lambda: hlotag.compare([None], jnp.sin, X), r"variants must be a dictionary .*, got \[None\]"),
    "variants by number": (lambda: hlotag.compare({1: None, 2: None}, jnp.sin, X), r"by name, got \{1: None, 2: None\}"),
    "a time that is text": (lambda: hlotag.compare({}, seconds="1"), "seconds='1': give the limit"),
    "a growth that is text": (lambda: hlotag.compare({}, visible="10%"), "visible='10%': give the growth"),
    "a program that runs nothing": (lambda: hlotag.profile(lambda x: (), X), "jit__lambda has no instruction that runs"),
    "a client": (lambda: hlotag.xla.Client(3), "a jaxlib client or the name of a platform, not int"),
    "a program": (lambda: hlotag.xla.compile(3), "cannot compile a int"),
    "an executable": (lambda: hlotag.xla.LoadedExecutable(3), "must be jaxlib's loaded executable, not a int"),
    "rules of no path": (lambda: hlotag.load_rules(3), "the file of rules must be a path, got 3 of type int"),
    "rules of a zero byte": (lambda: hlotag.load_rules("a\0"), "the file of rules: .* is not a path"),
    "rules of an empty path": (lambda: hlotag.load_rules(""), "the file of rules: '' is not a path"),
    "a folder whose name is too long": (lambda: hlotag.audit(LONG), "no such folder"),
    "dumps to no path": (lambda: hlotag.dump_to(3), "directory must be a path, got 3 of type int"),
    "dumps to a zero byte": (lambda: hlotag.dump_to("a\0"), "directory: .* is not a path"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_given_by_mistake(mistake):
    call, message = MISTAKES[mistake]
    with pytest.raises(hlotag.HlotagError, match=message) as raised:
        call()
    assert isinstance(raised.value, TypeError | ValueError)
    assert hlotag.active() is None


@pytest.mark.parametrize("kind", [str, os.fsencode, lambda path: path])
def test_paths_of_all_kinds(kind, tmp_path):
    file = tmp_path / os.fsdecode(b"\xff.toml")  # a name that is no UTF-8
    file.write_text('[[rule]]\nop = "sine"\nattrs = { k = "v" }\n')
    (rule,) = hlotag.load_rules(kind(file))
    with hlotag.dump_to(kind(tmp_path / "dumps")), hlotag.stage(rules=[rule]):
        jax.jit(lambda x: jnp.sin(x) + 1.25).lower(X)
    assert any("before" in path.name for path in (tmp_path / "dumps").iterdir())


def test_dir_has_public_names_only():
    names = dir(hlotag)
    assert not [name for name in names if name.startswith("_")]
    modules = {name for name in names if inspect.ismodule(getattr(hlotag, name))}
    assert (
        modules == {"audits", "comparisons", "errors", "passes", "profiles", "xla"}
        and set(hlotag.__all__) == set(names)
        and hlotag.__version__
    )


def test_keywords_of_a_function_may_have_the_names_of_options():
    def f(x, *, effects, steps):
        return jnp.sin(x) * effects * steps

    keywords = {"effects": X, "steps": X}
    lowered = hlotag.audit(jax.jit(f).lower(X, **keywords), effects=False)
    assert [op.name for op in hlotag.audit(f, X, kwargs=keywords, effects=False).ops] == [op.name for op in lowered.ops]
    assert hlotag.profile(f, X, kwargs=keywords, steps=2).name == "jit_f"
    compared = hlotag.compare({"a": None, "b": hlotag.Rule({"k": "v"}, op="*")}, f, X, kwargs=keywords, seconds=0)
    assert compared["b"].results == "equal"


@pytest.mark.parametrize("kwargs", [3, ["x"], {1: X}])
def test_keywords_of_a_function_are_a_mapping_by_name(kwargs):
    for call in (hlotag.audit, hlotag.profile):
        with pytest.raises(hlotag.errors.ArgumentError, match="kwargs= must have the function's keyword arguments by name, got"):
            call(lambda x: x, X, kwargs=kwargs)


def test_options_that_are_no_flags_are_refused():
    with pytest.raises(hlotag.errors.ArgumentError, match="xla_passes= must be True or False, got"):
        hlotag.audit(lambda x: x, X, xla_passes=X)


@pytest.mark.parametrize("stage", ["lower", "compile"])
def test_a_lowered_and_a_compiled_program_are_profiled(stage):
    with hlotag.stage():
        program = jax.jit(lambda x: hlotag.tag(x @ x, {"k": "v"})).lower(X)
        program = program if stage == "lower" else program.compile()
        profile = hlotag.profile(program, X, steps=2)
    assert {(row.key, row.value) for row in profile.rows} >= {("k", "v")}
