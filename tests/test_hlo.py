# SPDX-License-Identifier: Apache-2.0
"""HLO modules: read, written, viewed, joined to the operations they came from, and given the tags of these."""

import itertools
import linecache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import hlo_messages
import hlo_programs
import hlotag
from hlo_messages import changed
from hlo_programs import PROGRAMS, compiled_instructions, is_xlas_own, program
from hlotag import _compat, errors
from hlotag.hlo import HloModule, Origins
from hlotag.hlo.inserted import InsertedRules
from hlotag.hlo.origins import place_of
from hlotag.hlo.restore import Rules, restore
from hlotag.lowering.late import Late
from hlotag.mlir import modules
from hlotag.tagging.rules import Rule
from programs import B, W, X, mlp


@pytest.fixture(scope="module")
def serialized() -> bytes:
    return jax.jit(jax.grad(mlp)).lower(X, W, B).compile().runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()


def test_an_attribute_changes_nothing_else(serialized):
    # Not a field of XLA's, with the bytes of every kind of value.
    extra = b"\xf8\x3e\x96\x01" + b"\xfa\x3e\x03abc" + b"\xfd\x3e\x01\x02\x03\x04"
    module = HloModule(serialized + extra)
    assert module.with_attributes({}) == serialized + extra
    tanh = next(i for i in module.instructions() if i.opcode == "tanh")
    again = HloModule(module.with_attributes({tanh: {"k": "v"}}))
    assert {i.name: dict(i.attributes) for i in again.instructions() if i.attributes} == {tanh.name: {"k": "v"}}
    without = again.with_attributes({again.computations[tanh.computation.id].by_id[tanh.id]: {}})
    assert HloModule(without).parsed.header() == module.parsed.header()
    assert [i.proto for i in HloModule(without).instructions()] == [i.proto for i in module.instructions()]


def test_what_is_no_module_is_refused():
    with pytest.raises(errors.ParseError, match="as_serialized_hlo_module_proto"):
        HloModule(b"\x0a\xff\xff")


@pytest.mark.parametrize(("text", "damaged"), [(b"\x12\x04tanh", b"\x12\x04ta\xffh"), (b"jvp()/tanh", b"jvp()/ta\xffh")])
def test_text_that_is_not_utf8_is_not_shown(serialized, text, damaged):
    assert text in serialized
    module = HloModule(serialized.replace(text, damaged))
    with pytest.raises(errors.ParseError, match="can't decode byte 0xff"):
        list(module.instructions())


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


def test_the_view_has_what_protobuf_reads(serialized):
    module, message = HloModule(serialized), hlo_messages.read(serialized)
    assert [(c.name, c.id, c.root.id, c.thread) for c in module.computations.values()] == [
        (c.name, c.id, c.root_id, c.execution_thread) for c in message.computations
    ]
    assert module.name == message.name and module.entry.id == message.entry_computation_id
    read = [i for each in message.computations for i in each.instructions]
    for own, other in zip(module.instructions(), read, strict=True):
        assert (own.name, own.opcode, own.op_name, own.id) == (other.name, other.opcode, other.metadata.op_name, other.id)
        assert own.operand_ids == tuple(other.operand_ids) and own.called_ids == tuple(other.called_computation_ids)
        assert own.attributes == {entry.key: entry.value for entry in other.frontend_attributes.map} and own.dimensions == tuple(
            other.shape.dimensions
        )


ELSEWHERE = """HloModule m
f { ROOT p = f32[2] parameter(0) }
ENTRY main { x = f32[2] parameter(0)
 own = f32[2] sine(x), metadata={source_file="a.py" source_line=3}, frontend_attributes={k="v"}
 named = f32[2] sine(own)
 ROOT called = f32[2] call(named), to_apply=f, backend_config="{}" }
"""


def test_entries_and_lines_that_xla_has_moved():
    def change(module):
        module.metadata_payloads.extend(["first", "second"])
        own, named, called = module.computations[1].instructions[1:]
        own.metadata.source_file, own.metadata.source_line = "a.py", 3
        own.metadata.metadata_payload.text = "its own"
        named.metadata.metadata_payload.index = 1
        named.metadata.stack_frame_id = 99  # There is none.
        called.metadata.metadata_payload.index = 2

    module = HloModule(changed(_compat.runtime.hlo_from_text(ELSEWHERE), change))
    _, own, named, called = module.entry.instructions
    assert own.source == ("a.py", 3) and named.source is None
    assert own.entries == {"k": "v", "xla_metadata_payload": "its own"} and own.attributes == {"k": "v"}
    assert named.entries == {"xla_metadata_payload": "second"}
    assert called.entries == {"xla_metadata_payload": "", "backend_config": "{}"}


def origins_of(function, *arguments):
    lowered = jax.jit(function).lower(*arguments)
    return Origins(modules.copy_of(lowered.compiler_ir())), lowered


def test_origins_say_where_an_operation_is_from():
    origins, lowered = origins_of(jax.grad(mlp), X, W, B)
    tanh = next(o for o in origins if o.op == "stablehlo.tanh")
    assert (tanh.name, tanh.function, tanh.phase, tanh.attributes) == ("jit(mlp)/jvp()/tanh", "main", "forward", {})
    file, line, _ = tanh.source.rsplit(":", 2)
    assert "tanh" in linecache.getline(file, int(line))
    assert {o.phase for o in origins if o.op == "stablehlo.dot_general"} == {"forward", "backward"}
    assert "\x01" not in lowered.as_text(debug_info=True)


def test_equal_modules_have_equal_tokens_and_others_another():
    first, equal, other = (origins_of(function, 1.0)[0].token for function in (jnp.sin, jnp.sin, jnp.cos))
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
    origins, _ = origins_of(jax.grad(mlp), X, W, B)
    number = next(o.id for o in origins if o.op == "stablehlo.tanh")

    def change(module):
        tanh = next(i for each in module.computations for i in each.instructions if i.opcode == "tanh")
        tanh.frontend_attributes.map.add(key="theirs", value="text")
        tanh.metadata.op_name = f"\x01{origins.token}:{number}\x01/tanh"

    spoiled = changed(serialized, change).replace(b"text", b"t\xff\xfet")
    rules = Rules([{"ours": "1"}] * len(origins.program.entries()), ("*",))
    found = restore(spoiled, origins.program, rules, keeps_numbers=False)
    assert b"t\xff\xfet" in found
    again = next(i for i in HloModule(found.replace(b"t\xff\xfet", b"text")).instructions() if i.opcode == "tanh")
    assert (again.attributes, again.op_name) == ({"theirs": "text", "ours": "1"}, "tanh")


def test_a_module_that_is_cut_off_is_refused(serialized):
    origins, _ = origins_of(jax.grad(mlp), X, W, B)
    with pytest.raises(hlotag.errors.ParseError, match="bytes are not a valid HLO module"):
        restore(serialized[:-1], origins.program, Rules([{}] * len(origins.program.entries()), ("*",)))


@pytest.mark.parametrize(("platform", "expected"), [("cpu", {"_scheduling_group_id": "1", "k": "v"}), ("tpu", {"k": "v"})])
def test_what_a_compiler_has_read_and_taken_away_stays_away(platform, expected):
    entries = {"_scheduling_group_id": "1", "k": "v"}
    rules = Rules([entries], ("*",), platform=platform)
    assert rules.entries_for({}, [0], [], is_operation=True, is_combined=False) == expected
    assert rules.entries_for({"_scheduling_group_id": "1"}, [0], [], is_operation=True, is_combined=False) == entries


# --- Tags of what operations become, by the truth of `hlo_programs` ------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_tag_is_lost_and_no_heavy_one_is_wrong(name):
    hlotag.register_pass(hlo_programs.sign_operations, name="test-sign-operations")
    function, arguments = program(name)
    with hlotag.stage(f"{hlotag.passes.DEFAULT_PIPELINE},test-sign-operations"):
        instructions = compiled_instructions(jax.jit(function).lower(*arguments))
    assert [i for i in instructions if "t" not in i.attributes and not is_xlas_own(i)] == []
    heavy = {i: s for i in instructions if (s := hlo_programs.signature_of_instruction(i)) is not None}
    assert len(heavy) >= 3
    assert {i: (i.attributes, s) for i, s in heavy.items() if not hlo_programs.has_signature(i, s)} == {}


def tags(function, *arguments):
    """{opcode: tags} of a program's named instructions."""
    found: dict[str, list[dict[str, str]]] = {}
    with hlotag.stage():
        for i in compiled_instructions(jax.jit(lambda *a: function(*a)).lower(*arguments)):
            found.setdefault(i.opcode, []).append(i.attributes)
    return found


def writes(x, w):
    """Whether the indices are within bounds is the same in each round."""

    def step(x, row):
        with hlotag.tagged({"k": "write"}):
            return x.at[0, 1].set(row), ()

    with hlotag.tagged({"k": "loop"}):
        return jax.lax.scan(step, x, w)[0]


def test_what_xla_takes_out_of_a_loop_has_the_tag_of_its_body():
    (reduced,) = tags(writes, np.ones((2, 2, 3, 9, 4), np.float32), np.ones((5, 3, 9, 4), np.float32))["reduce"]
    assert reduced == {"k": "write"}


COLLECTIVES = ({"k": "b", "_scheduling_group_id": "2"}, {"k": "a", "_scheduling_group_id": "1"}, {"k": "b", "c": "1"})


@pytest.mark.parametrize("left", [{}, {"k": "a,b"}, {"k": "a"}, {"k": "x,a", "xla": "1"}])
def test_a_combined_collective_has_the_values_of_all(left):
    """Joined as XLA joins them, whatever XLA left of them; but it is in one place in the schedule."""
    rules = Rules([*COLLECTIVES, {"k": "x"}, {"k": "another's"}], ("*",))
    kept = {key: value for key, value in left.items() if key == "xla"}
    joined = {"k": "a,b", "c": "1", "_scheduling_group_id": "2"}
    assert rules.entries_for(left, (0, 1, 2), (), True, True) == joined | kept
    assert rules.entries_for({"k": "a,of XLA"}, (0, 1, 2), (), True, True) == joined | {"k": "a,of XLA"}
    assert rules.entries_for({}, (0, 1, 2), (), True, False) == joined | {"k": "b"}


def test_entries_of_libraries_are_merged():
    def f(x):
        with hlotag.tagged({"k": "v"}):
            return jnp.linalg.cholesky(x @ x.T + jnp.eye(4))

    calls = [i for i in tags(f, X)["custom-call"] if i]
    assert calls
    assert all(i["k"] == "v" and len(i) > 1 for i in calls)


# --- Tags that are given back before the scheduler, on HLO text as compilers have it there --------------------------------------

KEYS = ("_scheduling_group_id", "keep_original_sequence_order_in_group", "scheduler_hint")
GROUP = {"_scheduling_group_id": "1", "keep_original_sequence_order_in_group": "true"}

TEXT = """
HloModule late
ENTRY main {
  x = f32[4,4] parameter(0)
  w = f32[1,4] parameter(1)
  first = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general}
  between = f32[4,4] sine(BETWEEN), {sine}
  second = f32[4,4] dot(between, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, {dot_general1}
  gathered = f32[4,4] all-gather(w), dimensions={0}, replica_groups={}
  ROOT all = (f32[4,4], f32[4,4]) tuple(second, gathered)
}
"""


def numbered(function, text: str, *arguments) -> tuple[Origins, HloModule]:
    """A program, and HLO text named after its operations: `{sine}` there is the name of the only sine."""
    origins, _ = origins_of(function, *arguments)
    names: list[str] = []
    for origin in origins:
        base = origin.op.rpartition(".")[2]
        names.append(next(name for k in itertools.count() if (name := f"{base}{k or ''}") not in names))
        text = text.replace(f"{{{names[-1]}}}", f'metadata={{op_name="\x01{origins.token}:{origin.id}\x01/{base}"}}')
    return origins, HloModule(_compat.runtime.hlo_from_text(text))


def given(*rules: Rule, entries: dict[str, str], between: str = "x"):
    """The `Late`, and by instruction what it adds, if XLA's passes have dropped all tags of two products."""

    def product(x):
        with set_xla_metadata(**entries):
            return x @ x

    def products(x):
        return product(jnp.sin(product(x)))

    origins, module = numbered(products, TEXT.replace("BETWEEN", between), np.ones((4, 4), np.float32))
    late = Late(origins, Rules(origins.program.entries(), KEYS), InsertedRules({rule.name(0): rule for rule in rules}))
    after = late.add_tags(module.parsed.data)
    instructions = HloModule(after).instructions() if after is not None else ()
    return late, {i.name: dict(i.attributes) for i in instructions if i.attributes}


GATHER = Rule(GROUP, op="all-gather", inserted=True)


HINT = {"scheduler_hint": "force_early"}
CASES = {
    "a lost key goes back to its operation alone": ([], HINT, "x", {"first": HINT, "second": HINT}, set()),
    "a group with a collective gets its members": (
        [GATHER],
        GROUP,
        "x",
        dict.fromkeys(("first", "second", "gathered"), GROUP),
        set(),
    ),
    "a group without a collective gets no member": ([], GROUP, "x", {}, set()),
    "a group with a gap gets no member and is named": ([GATHER], GROUP, "first", {}, {"1"}),
    "a module that lacks nothing is left alone": ([], {"k": "v"}, "x", {}, set()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_given_back(case):
    rules, entries, between, expected, gaps = CASES[case]
    late, found = given(*rules, entries=entries, between=between)
    assert (found, set(late.gaps)) == (expected, gaps)
