# SPDX-License-Identifier: Apache-2.0
"""The catalogue of keys: legal values, policies for derived operations, reserved and registered keys."""

import copy
import io
import itertools
import json
import linecache
import pickle
import re
import threading
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.xla_metadata import set_xla_metadata
from rich.console import Console

import hlotag
from hlotag.cli import keys as command
from hlotag.cli import main
from hlotag.hlo.restore import hidden_keys, restorable
from hlotag.tagging import keys
from modules import ops_of

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)

FREE = [key for key in keys.catalogue() if not key.reserved]
RESERVED = [key for key in keys.catalogue() if key.reserved]
by_name = pytest.mark.parametrize("key", FREE, ids=lambda key: key.name)

# Legal values, then others that are not; for keys with a list of words, these.
VALUES = {
    **{key.name: ([*key.values.choices], ["2", "", "HOST", 0.5]) for key in FREE if key.values and key.values.choices},
    "_scheduling_group_id": (
        [40, "40", "+1", "0", 2**31 - 1, "40:0", "40:-1", ":1", "noop", np.int32(3)],
        ["", ":", "40:", "a", "-1", 2**31, f"{2**31}:0", "4:b", "1:2:3", 4.0, True, "\u0663", "1\n"],
    ),
    "scheduler_delay_priority": ([3, "-7", 2**31 - 1, -(2**31)], ["high", 2**31, "9" * 5000, 1.0, True, ""]),
    "latency_metadata": ([100, "100", 2**63 - 1], ["long", 0.5, 2**63]),
    "_xla_stream_annotation": ([1, "collective", "Collective"], ["main", 2**31, 1.5]),
    "FUSE_LIMIT": ([True, 8], [False, "many", 2**64 + 4]),
    "collective_group_key": (["a", 1, "x\ny"], [""]),
    "_xla_send_recv_source_target_pairs": (
        ["{{0,1}}", "{{0,1},{1,2}}", "{{0, 1}, {1, 2}}"],
        ["", "{}", "{0,1}", "{{0,1}", "{{a,b}}"],
    ),
    "_xla_loop_unroll_strategy": (["full", "double-buffer", "FULL"], ["none", "double_buffer", "auto", "", 2]),
    "num_batch_dims": ([0, 2], ["two", 1.0]),
}


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def gradient(f, key):
    """How often the key is in the forward operations, and how often in those of the backward pass."""
    ops = ops_of(jax.jit(jax.grad(lambda x: f(x).sum())).lower(X))
    where = ["transpose(" in op.location for op in ops if key in op.entries]
    return where.count(False), where.count(True)


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(keys, "_registered", {})


# --- The catalogue -----------------------------------------------------------------------------------------------------------


def test_every_entry_says_what_it_is():
    names = [key.name for key in keys.catalogue()]
    assert len(set(names)) == len(names)
    for key in keys.catalogue():
        assert key.doc.endswith(".") and key.ops and key.consumer and key.derived in ("same", "drop"), key
        assert keys.lookup(key.name) is key
    assert {key.name for key in FREE if key.values} == set(VALUES)
    assert keys.lookup("k") is None


@by_name
def test_only_legal_values_are_accepted(key):
    legal, illegal = VALUES[key.name] if key.values else (["any", "", "{x}", 1, True], [])
    for value in legal:
        hlotag.tag(X, {key.name: value})
        hlotag.tagged({key.name: value})
        hlotag.Rule({key.name: value.item() if isinstance(value, np.generic) else value}, op="x")
    for value, write in itertools.product(
        illegal, (lambda attrs: hlotag.tag(X, attrs), lambda attrs: hlotag.Rule(attrs, op="x"))
    ):
        with pytest.raises(hlotag.errors.TagError) as caught:
            write({key.name: value})
        message = str(caught.value)
        assert all(text in message for text in (repr(key.name), repr(text_of(value)), str(key.values), key.otherwise))
        assert all(word in message for word in key.values.choices) or key.values.text


@pytest.mark.parametrize("key", RESERVED, ids=lambda key: key.name)
def test_reserved_keys_are_refused(key):
    name = key.name.replace("*", "anything")
    ours = [write for way, write in WRITES.items() if way != "traced value of JAX"]
    for write in (*ours, lambda attrs: hlotag.register_key(*attrs)):
        with pytest.raises(hlotag.errors.TagError, match=rf"{re.escape(repr(name))}.* reserved"), hlotag.stage():
            write({name: "v"})


def test_names_that_only_look_reserved_are_free():
    for name in ("xla.sdy", "xla_sdy.x", "compositex", "hlotagx", "original_shardings"):
        hlotag.tag(X, {name: "anything"})
        hlotag.Rule({name: "anything"}, op="x")


def test_jaxs_own_api_may_use_reserved_keys():
    with hlotag.stage():
        f = lambda x: set_xla_metadata(jnp.sin(x), **{"xla.sdy.x": "v"})
        assert [op.entries for op in ops_of(jax.jit(f).lower(X))] == [{"xla.sdy.x": "v"}]


# --- Where the error is raised -----------------------------------------------------------------------------------------------


def decorate(attrs):
    @hlotag.tagged(attrs)  # THE LINE
    def f(x):
        return x

    return f


def enter(attrs):
    with hlotag.set_xla_metadata(**attrs):  # THE LINE
        pass


def traced(write):
    return jax.jit(lambda x: write(jnp.sin(x))).lower(X)


WRITES = {
    "tag": lambda attrs: hlotag.tag(X, attrs),  # THE LINE
    "grad": lambda attrs: hlotag.tag(X, {"k": "v"}, grad=attrs),  # THE LINE
    "value": lambda attrs: hlotag.set_xla_metadata(X, **attrs),  # THE LINE
    "traced tag": lambda attrs: traced(lambda y: hlotag.tag(y, attrs)),  # THE LINE
    "traced value of JAX": lambda attrs: traced(lambda y: set_xla_metadata(y, **attrs)),  # THE LINE
    "rule": lambda attrs: hlotag.Rule(attrs, op="while"),  # THE LINE
    "grad of a rule": lambda attrs: hlotag.Rule({"k": "v"}, op="while", grad=attrs),  # THE LINE
    "call": lambda attrs: hlotag.xla_metadata_call(jnp.sin, **attrs),  # THE LINE
    "derived call": lambda attrs: hlotag.xla_metadata_call2(jnp.sin, {"k": "v"}, ad_metadata=attrs),  # THE LINE
    "block": enter,
    "decorator": decorate,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_illegal_value_is_an_error_on_the_line_that_tags(write):
    with hlotag.stage(), pytest.raises(hlotag.errors.TagError, match=r"'never'.*full, double-buffer") as caught:
        write({"_xla_loop_unroll_strategy": "never"})
    lines = [frame.line for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
    assert lines[-1].endswith("# THE LINE")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_key_like_a_known_one_warns_once_at_the_line_that_tags(write):
    message = r"'_scheduling_group'.*did you mean '_scheduling_group_id'\?"
    with hlotag.stage(), warnings.catch_warnings(record=True, action="default") as caught:
        for _ in range(2):
            write({"_scheduling_group": "1"})
    (warning,) = caught
    assert warning.category is hlotag.KeyIgnoredWarning and re.search(message, str(warning.message))
    assert warning.filename == __file__ and linecache.getline(__file__, warning.lineno).endswith("# THE LINE\n")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        *[("must_fuse", "MUST_FUSE"), ("inlinable", "inlineable"), ("scheduling_group_id", "_scheduling_group_id")],
        *(
            (name, "")
            for name in ("scheduling_group", "layer", "block", "group", "tag", "k", "id", "name", "_scheduling_group_id")
        ),
    ],
)
def test_the_key_that_was_probably_meant(name, known):
    assert keys.meant(name) == known


# --- Policies ----------------------------------------------------------------------------------------------------------------


FORMS = {
    "value": lambda attrs, **grad: lambda x: hlotag.tag(jnp.tanh(x), attrs, **grad) * 2.0,
    "block": lambda attrs, **grad: lambda x: hlotag.tagged(attrs, **grad)(jnp.tanh)(x) * 2.0,
}


@pytest.mark.parametrize("form", FORMS)
@by_name
def test_policy_of_each_key_in_a_lowered_gradient(form, key):
    attrs = {key.name: VALUES[key.name][0][0] if key.values else "1"}
    with hlotag.stage():
        forward, backward = gradient(FORMS[form](attrs), key.name)
        assert forward > 0 and (backward > 0) == (key.derived == "same")
        # What the user says wins.
        assert gradient(FORMS[form](attrs, grad="same"), key.name)[1] > 0
        assert gradient(FORMS[form](attrs, grad="drop"), key.name) == (forward, 0)
        assert gradient(FORMS[form](attrs, grad=attrs), key.name)[1] > 0
        assert gradient(FORMS[form](attrs, grad={"k": "v"}), key.name) == (forward, 0)

        # JAX's own value tag has none.
        forward, backward = gradient(lambda x: set_xla_metadata(jnp.tanh(x), **attrs) * 2.0, key.name)
        assert forward > 0 and (backward > 0) == (key.derived == "same")


def test_jaxs_own_block_is_as_jax_does_it():
    f = lambda x: set_xla_metadata(_scheduling_group_id=1)(jnp.tanh)(x) * 2.0
    without = gradient(f, "_scheduling_group_id")
    with hlotag.stage():
        assert gradient(f, "_scheduling_group_id")[1] >= without[1] > 0


def test_each_key_has_its_own_policy():
    f = FORMS["value"]({"_scheduling_group_id": 40, "inlineable": False, "k": "v"})
    outer, inner = hlotag.tagged({"_scheduling_group_id": 40}), hlotag.tagged({"_scheduling_group_id": 41}, grad="same")
    removed = hlotag.tagged({"_scheduling_group_id": None})  # Which is no illegal value.
    with hlotag.stage():
        assert gradient(f, "_scheduling_group_id")[1] == 0
        assert gradient(f, "inlineable")[1] == gradient(f, "k")[1] > 0
        assert gradient(outer(inner(jnp.tanh)), "_scheduling_group_id")[1] > 0
        assert gradient(inner(outer(jnp.tanh)), "_scheduling_group_id")[1] == 0
        assert gradient(outer(removed(jnp.tanh)), "_scheduling_group_id") == (0, 0)


@pytest.mark.parametrize(
    ("fields", "backward", "backward_of_k"),
    [
        *[({}, False, True), ({"grad": "same"}, True, True), ({"grad": "drop"}, False, False)],
        *[({"phase": "backward"}, True, True), ({"phase": "forward"}, False, False)],
    ],
)
def test_policy_of_rules(fields, backward, backward_of_k):
    rule = hlotag.Rule({"_scheduling_group_id": 40, "k": "v"}, op="multiply", **fields)
    f = lambda x: (x * jnp.sin(x)) * x
    with hlotag.stage(rules=[rule]):
        assert (gradient(f, "_scheduling_group_id")[1] > 0) == backward
        assert (gradient(f, "k")[1] > 0) == backward_of_k


def test_a_default_is_not_taken_for_what_a_user_wrote():
    rule = hlotag.Rule({"_scheduling_group_id": 40}, op="x")
    assert rule != hlotag.Rule({"_scheduling_group_id": 40}, op="x", grad="same")
    assert rule == pickle.loads(pickle.dumps(rule)) == copy.deepcopy(rule)


# --- Registered keys ---------------------------------------------------------------------------------------------------------


def test_a_registered_key(registry):
    key = hlotag.register_key("my_kind", values=["a", "b"], derived="drop", ops=["dot"], doc="Mine.")
    assert keys.lookup("my_kind") is key and key in keys.catalogue()
    assert keys.meant("must_fuse") and hlotag.register_key("must_fuse") and not keys.meant("must_fuse")
    with pytest.raises(hlotag.errors.TagError, match=r"'my_kind'.*'c'.*a, b"):
        hlotag.tag(X, {"my_kind": "c"})
    with hlotag.stage():
        assert gradient(FORMS["value"]({"my_kind": "a"}), "my_kind")[1] == 0
        assert gradient(FORMS["value"]({"my_kind": "a"}, grad="same"), "my_kind")[1] > 0


def test_the_last_pass_knows_the_values_of_registered_keys(registry):
    hlotag.register_key("my_kind", values=["a", "b"])
    module = 'func.func @f() attributes {{mhlo.frontend_attributes = {{my_kind = "{}"}}}} {{ return }}'
    assert "my_kind" in hlotag.run_passes(module.format("a"), "hlotag-finalize")
    with pytest.raises(hlotag.errors.PassError, match=r"legal values: a, b\. With this one XLA would ignore it"):
        hlotag.run_passes(module.format("c"), "hlotag-finalize")


@pytest.mark.parametrize(
    ("values", "legal", "illegal"),
    [
        *[(None, ["", "x", 1], []), (bool, [True, "false"], ["yes", 1]), (int, [1, "-2"], ["x", True, 1.0])],
        *[(("a", "b"), ["a"], ["A", "ab"]), ({"b", "a"}, ["a", "b"], ["c"]), (re.compile("[a-z]+"), ["ab"], ["a1", "", "AB"])],
        (re.compile("[a-z]+", re.IGNORECASE), ["AB"], ["1"]),
    ],
)
def test_values_of_a_registered_key(registry, values, legal, illegal):
    hlotag.register_key("mine", values=values)
    for value in legal:
        hlotag.tag(X, {"mine": value})
    for value in illegal:
        with pytest.raises(hlotag.errors.TagError, match=r"'mine'.*not legal"):
            hlotag.tag(X, {"mine": value})


def test_registering_again_needs_the_same_meaning(registry):
    first = hlotag.register_key("mine", values=re.compile("a+"), doc="Mine.")
    assert hlotag.register_key("mine", values=re.compile("a+"), doc="Mine.") == first
    for other in ({"values": re.compile("a*"), "doc": "Mine."}, {"values": re.compile("a+"), "derived": "drop", "doc": "Mine."}):
        with pytest.raises(hlotag.errors.TagError, match=r"'mine' is known with another meaning.*a\+"):
            hlotag.register_key("mine", **other)
    with pytest.raises(hlotag.errors.TagError, match="'MUST_FUSE' is known with another meaning"):
        hlotag.register_key("MUST_FUSE", derived="same")
    assert keys.lookup("mine") is not None and keys.lookup("mine").derived == "same"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *[({"name": ""}, "non-empty"), ({"name": 3}, "non-empty"), ({"derived": "other"}, "'same' or 'drop'")],
        *[({"values": values}, "words") for values in ("text", [], [1], re.compile(b"a"))],
        ({"compiler": "tpu"}, "compiler must be True, False or None"),
    ],
)
def test_bad_registrations(registry, arguments, message):
    with pytest.raises(hlotag.errors.TagError, match=message):
        hlotag.register_key(**{"name": "mine", **arguments})
    assert keys.lookup("mine") is None


def test_xla_does_not_see_keys_that_no_compiler_reads(registry):
    hlotag.register_key("mine", derived="drop")
    hlotag.register_key("eyes", compiler=False)
    hlotag.register_key("given", compiler=True)
    found = [dict.fromkeys(("mine", "eyes", "given", "free", "ragged_dot_tiling", "MUST_FUSE", "_new", "xla_new"), "1")]
    assert hidden_keys(found, ("*",), keys.fingerprint()) == {"eyes", "mine", "free"}
    assert hidden_keys(found, ("m*",), keys.fingerprint()) == {"mine"}
    of_libraries = {"backend_config": "{}", "ragged_dot_tiling": "8,8,8", "xla_metadata_payload": "{}"}
    assert restorable({**of_libraries, "k": "v"}) == {"k": "v"}, "an entry of a library is left to XLA"
    with hlotag.stage():
        audit = hlotag.audit(jax.jit(lambda x: hlotag.tag(jnp.sin(x), {"eyes": "1"})).lower(X))
    (effect,) = audit.effects
    assert (effect.key, effect.value) == ("eyes", "1") and "hidden" in str(effect)


def test_of_many_threads_that_register_differently_one_wins(registry):
    barrier = threading.Barrier(16)

    def register(number):
        barrier.wait()
        with suppress(hlotag.errors.TagError):
            return hlotag.register_key("mine", doc=str(number % 4))

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(register, range(16)))
    assert {key for key in results if key} == {keys.lookup("mine")} and results.count(None) == 12


def test_a_new_policy_traces_functions_again(registry):
    f = jax.jit(jax.grad(lambda x: FORMS["value"]({"mine": "v"})(x).sum()))

    def backward():
        with hlotag.stage() as stage:
            ops = ops_of(f.lower(X))
        return sum("transpose(" in op.location for op in ops if "mine" in op.entries), stage

    before, plain = backward()
    hlotag.register_key("unrelated", values=["a"])
    assert backward() == (before, plain)
    hlotag.register_key("mine", derived="drop")
    after, other = backward()
    assert before > after == 0 and plain != other and other.keys == "('mine', 'drop', None)"


ROOT = Path(__file__).parent.parent


def test_the_table_has_a_line_for_each_key(capsys):
    assert main(["keys"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *(key.name for key in keys.catalogue())]
    starts = [lines[0].index(word) for word in ("values", "ops", "consumer", "derived")]
    assert all(line[start - 2 : start] == "  " for line in lines[1:] for start in starts if len(line) > start)
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("width", [20, 40, 80, 100, 132, 300])
def test_the_table_is_wrapped_to_the_terminal(width):
    console = Console(file=io.StringIO(), width=width)
    console.print(command.table(keys.catalogue(), width))
    plain = console.file.getvalue().splitlines()
    assert max(map(len, plain)) <= width
    squeezed = "".join(line[: line.find("  ") if "  " in line else None].strip() for line in plain)
    assert all(key.name in squeezed for key in keys.catalogue() if width >= 80)


def test_keys_by_pattern_and_as_json(capsys):
    assert main(["keys", "--json", "_xla_loop*", "MUST_FUSE"]) == 0
    found = {key["name"]: key for key in json.loads(capsys.readouterr().out)}
    assert set(found) == {"_xla_loop_unroll_strategy", "MUST_FUSE"}
    assert found["_xla_loop_unroll_strategy"]["values"]["choices"] == ["full", "double-buffer"]
    assert found["MUST_FUSE"]["values"] is None and found["MUST_FUSE"]["derived"] == "drop"
    assert main(["keys", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(keys.catalogue())


def test_the_command_describes_named_keys(capsys, run_python):
    assert main(["keys", "_xla_loop*"]) == 0
    (key,) = (key for key in keys.catalogue() if key.name.startswith("_xla_loop"))
    assert f"\n{key.name}: {key.doc} With another value {key.otherwise}.\n" in capsys.readouterr().out
    assert main(["keys", "_xla_*", "mine"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "mine" in captured.err and "_xla_" not in captured.err
    run_python("import sys; from hlotag.cli import main; s = main(['keys']); sys.exit(s or 'jax' in sys.modules)")
