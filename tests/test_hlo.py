# SPDX-License-Identifier: Apache-2.0
"""HLO modules: read, written, viewed, and joined to the operations they came from."""

import linecache

import jax
import jax.numpy as jnp
import pytest

from hlotag import errors
from hlotag.hlo import HloModule, Origins, proto
from hlotag.hlo.origins import place_of
from hlotag.hlo.restore import Rules, restore
from hlotag.mlir import modules
from programs import B, W, X, mlp


@pytest.fixture(scope="module")
def serialized() -> bytes:
    return jax.jit(jax.grad(mlp)).lower(X, W, B).compile().runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()


def test_unknown_fields_are_preserved_byte_for_byte(serialized):
    # Not a field of XLA's, with the bytes of every kind of value.
    extra = b"\xf8\x3e\x96\x01" + b"\xfa\x3e\x03abc" + b"\xfd\x3e\x01\x02\x03\x04"
    again = proto.write(proto.read(serialized + extra))
    assert extra in again and sorted(again) == sorted(serialized + extra), "the same bytes in another order"


def test_an_attribute_changes_nothing_else(serialized):
    module = HloModule(serialized)
    changed = next(i for i in module.instructions() if i.opcode == "tanh")
    changed.attributes = {"k": "v"}
    again = HloModule(module.to_bytes())
    assert [i.name for i in again.instructions() if i.attributes == {"k": "v"}] == [changed.name]
    changed.attributes = {}
    assert module.to_bytes() == HloModule(serialized).to_bytes()


def test_what_is_no_module_is_refused():
    with pytest.raises(errors.ParseError, match="as_serialized_hlo_module_proto"):
        HloModule(b"\x0a\xff\xff")


def test_view(serialized):
    module = HloModule(serialized)
    tanh = next(i for i in module.instructions() if i.opcode == "tanh")
    assert tanh.op_name == "jit(mlp)/jvp()/tanh"
    file, line = tanh.source
    assert (file.rsplit("/", 1)[-1], "tanh" in linecache.getline(file, line)) == ("programs.py", True)
    assert [o.opcode for o in tanh.operands] == ["add"]
    fusion = next(i for i in module.entry.instructions if tanh.computation in i.called)
    assert fusion.opcode == "fusion"
    assert module.entry.root.computation is module.entry
    assert len(module) == len(list(module.instructions()))


def _numbered(function, *arguments):
    lowered = jax.jit(function).lower(*arguments)
    return Origins(modules.copy_of(lowered.compiler_ir())), lowered


def test_origins_say_where_an_operation_is_from():
    origins, lowered = _numbered(jax.grad(mlp), X, W, B)
    tanh = next(o for o in origins if o.op == "stablehlo.tanh")
    assert (tanh.name, tanh.function, tanh.phase, tanh.attributes) == ("jit(mlp)/jvp()/tanh", "main", "forward", {})
    file, line, _ = tanh.source.rsplit(":", 2)
    assert "tanh" in linecache.getline(file, int(line))
    assert {o.phase for o in origins if o.op == "stablehlo.dot_general"} == {"forward", "backward"}
    assert "\x01" not in lowered.as_text(debug_info=True)


def test_equal_modules_have_equal_tokens_and_others_another():
    first, equal, other = (_numbered(function, 1.0)[0].token for function in (jnp.sin, jnp.sin, jnp.cos))
    assert first == equal != other


@pytest.mark.parametrize(
    ("numbered", "place"),
    [
        ("#/jit(f)/a/while/body/jit(g)/#/b/while/body/sin", ("a/b", "")),
        ("#/jit(f)/a/jit(g)/#/call/#/b/sin", ("a/b", "")),  # JAX's own call
        ("#/jit(f)/a/while/#/jit(f)/a/while/body/b/sin", ("a/b", "")),  # XLA prepends the loop's name
        ("#/jit(f)/transpose(jvp(a))/jit(g)/#/b/sin", ("a/b", "backward")),
        ("jit(f)/call/sin", ("call", "")),  # a user's scope
    ],
)
def test_scopes_of_inlined_names_are_the_users(numbered, place):
    assert place_of(numbered.replace("#", "\x01ab:1\x01")) == place


def test_text_that_is_not_utf8_stays_as_it_is(serialized):
    origins, _ = _numbered(jax.grad(mlp), X, W, B)
    number = next(o.id for o in origins if o.op == "stablehlo.tanh")
    module = HloModule(serialized)
    tanh = next(i for i in module.instructions() if i.opcode == "tanh")
    tanh.attributes = {"theirs": "text"}
    tanh.proto.metadata.op_name = f"\x01{origins.token}:{number}\x01/tanh"
    spoiled = module.to_bytes().replace(b"text", b"t\xff\xfet")
    rules = Rules([{"ours": "1"}] * len(origins.program.entries()), ("*",))
    found = restore(spoiled, origins.program, rules, keeps_numbers=False)
    assert b"t\xff\xfet" in found
    again = next(i for i in HloModule(found.replace(b"t\xff\xfet", b"text")).instructions() if i.opcode == "tanh")
    assert (again.attributes, again.op_name) == ({"theirs": "text", "ours": "1"}, "tanh")


@pytest.mark.parametrize(("platform", "expected"), [("cpu", {"_scheduling_group_id": "1", "k": "v"}), ("tpu", {"k": "v"})])
def test_what_a_compiler_has_read_and_taken_away_stays_away(platform, expected):
    entries = {"_scheduling_group_id": "1", "k": "v"}
    rules = Rules([entries], ("*",), platform=platform)
    assert rules.entries_for({}, [0], [], is_operation=True, is_combined=False) == expected
    assert rules.entries_for({"_scheduling_group_id": "1"}, [0], [], is_operation=True, is_combined=False) == entries
