# SPDX-License-Identifier: Apache-2.0
"""`hlotag.audit`: what became of tags, whatever it is asked of, and what it says of it."""

import io
import json
import os
import sys
import warnings
from importlib import resources

import jax
import jax.numpy as jnp
import jsonschema
import pytest
from jax.experimental.xla_metadata import set_xla_metadata
from rich.console import Console

import hlotag
from hlotag import _compat
from hlotag.audits import Audit, TagState, program
from hlotag.audits.collect import audit_module
from hlotag.audits.joined import Joined
from hlotag.audits.states import Computing, States
from hlotag.cli import main
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.mlir.modules import parse_module
from hlotag.results.tags import Op
from programs import B, W, X, mlp


def gradient(x, w, b):
    def loss(x, w, b):
        with hlotag.tagged({"block": "all"}):
            hidden = jnp.tanh(x @ w + b)
            return ((hidden @ w) ** 2).mean()

    return jax.grad(loss, (0, 1, 2))(x, w, b)


def module(body: str, results: str = "%r", types: str = "tensor<4x8xf32>") -> bytes:
    head = f"module @m {{ func.func public @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> ({types}) {{\n"
    text = body.replace("TAG", "mhlo.frontend_attributes = {k = ")
    return f"{head}{text}\n return {results} : {types} }} }}".encode()


# --- One state each --------------------------------------------------------------------------------------------------------

TRANSPOSED = (
    '%t = stablehlo.transpose %b, dims = [1, 0] {TAG"transpose"}} : (tensor<4x8xf32>) -> tensor<8x4xf32>\n'
    '%d = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0] {TAG"dot"}} : '
    "(tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>\n"
    '%r = stablehlo.transpose %d, dims = [1, 0] {TAG"result"}} : (tensor<4x4xf32>) -> tensor<4x4xf32>'
)
ADD = "stablehlo.add"
KIND = "tensor<4x8xf32>"


def test_a_dot_with_its_transposes_tag():
    audit = audit_module(module(TRANSPOSED, types="tensor<4x4xf32>"), "m.mlir", xla_passes=True)
    assert {tag.value: tag.state for tag in audit.tags} == {
        "dot": TagState.LOST,
        "result": TagState.ELIMINATED,
        "transpose": TagState.ELIMINATED,
    }
    assert [tag.value for tag in audit.lost] == ["dot"]
    by = {tag.value: tag.by for tag in audit.tags}
    assert {by["dot"], by["transpose"]} <= {"algsimp", "transpose-folding"}
    rows = [line.split()[0] for line in audit.summary(120).splitlines() if "=" in line.split(" ")[0]]
    assert rows == ["k=dot", "k=result", "k=transpose"], "what needs attention first"


@pytest.mark.parametrize("tag", ["x", "y"])
def test_a_reshape_of_a_product_keeps_its_own_tag(tag):
    body = (
        '%d = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] {TAG"x"}} : '
        "(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>\n"
        f'%v = stablehlo.reshape %d {{TAG"{tag}"}}}} : (tensor<4x4xf32>) -> tensor<4x2x2xf32>\n'
        "%s = stablehlo.slice %v [0:4, 0:2, 0:1] : (tensor<4x2x2xf32>) -> tensor<4x2x1xf32>\n"
        "%t = stablehlo.slice %v [0:4, 0:2, 1:2] : (tensor<4x2x2xf32>) -> tensor<4x2x1xf32>\n"
        "%r = stablehlo.divide %s, %t : tensor<4x2x1xf32>"
    )
    audit = audit_module(module(body, types="tensor<4x2x1xf32>"), "m.mlir")
    kept = [(f"stablehlo.{name}", TagState.KEPT) for name in ("dot_general", "reshape")]
    assert [(tag.op.name, tag.state) for tag in audit.tags] == kept


def test_a_call_is_no_trace_of_what_is_next_to_it():
    source = f"""
    module @m {{
      func.func public @main(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {{
        %s = stablehlo.broadcast_in_dim %b, dims = [1] {{mhlo.frontend_attributes = {{k = "x"}}}} : (tensor<8xf32>) -> {KIND}
        %t = stablehlo.add %a, %s : {KIND}
        %r = func.call @f(%t) : ({KIND}) -> {KIND}
        return %r : {KIND}
      }}
      func.func private @f(%x: {KIND}) -> {KIND} {{
        %c = stablehlo.constant dense<2.0> : tensor<f32>
        %s = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {KIND}
        %n = stablehlo.negate %x : {KIND}
        %p = stablehlo.power %n, %s : {KIND}
        %r = stablehlo.tanh %p : {KIND}
        return %r : {KIND}
      }}
    }}"""
    with _compat.runtime.ir_context():
        read = program.read(parse_module(source, "m.mlir"))
    names = {op.name: f"\\001{read.origins.token}:{number}\\001/x" for number, op in enumerate(read.origins.operations)}
    # The bias was folded into the argument, as nothing of it is left; the exponent is named after the call, as inlining may do.
    optimized = f"""
    HloModule m
    ENTRY main {{
      a = f32[4,8] parameter(0)
      t = f32[4,8] sine(a), metadata={{op_name="{names["stablehlo.add"]}"}}
      c = f32[] constant(2), metadata={{op_name="{names["func.call"]}"}}
      s = f32[4,8] broadcast(c), dimensions={{}}, metadata={{op_name="{names["func.call"]}"}}
      n = f32[4,8] negate(t), metadata={{op_name="{names["stablehlo.negate"]}"}}
      p = f32[4,8] power(n, s), metadata={{op_name="{names["stablehlo.power"]}"}}
      ROOT r = f32[4,8] tanh(p), metadata={{op_name="{names["stablehlo.tanh"]}"}}
    }}"""
    found = read.join(HloModule(_compat.runtime.hlo_from_text(optimized)))
    (tag,) = States(read.ops, read.tags, found).find()
    assert tag.state == TagState.ELIMINATED


def test_a_helper_without_a_name_computes_nothing():
    text = "HloModule m\nENTRY main {\n p = f32[4] parameter(0)\n moved = f32[1,4] bitcast(p)\n"
    text += " own = f32[2,4] broadcast(p), dimensions={1}\n ROOT t = (f32[1,4], f32[2,4]) tuple(moved, own)\n}"
    module = HloModule(_compat.runtime.hlo_from_text(text))
    _, moved, own, _ = module.instructions()
    found = Joined(module, {moved: (), own: (0, 1)}, {moved: (1,), own: (0, 1)}, lambda *_: ("", "forward"))
    computing = Computing([Op(0, "stablehlo.multiply"), Op(1, "stablehlo.broadcast_in_dim")], {}, found)
    assert (computing.of(0), computing.of(1)) == ([], [own])


PRODUCT = """HloModule m
ENTRY main {
  x = f32[4,4] parameter(0)
  ROOT last = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
SUM = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[4,4] parameter(0)
  zero = f32[] constant(0)
  ROOT last = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
}"""


SINES = """HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  tagged = f32[4] sine(x), frontend_attributes={k="v",xla_k="7"}
  bare = f32[4] sine(x)
  ROOT last = f32[4] multiply(tagged, bare)
}"""


def joined(text, numbers):
    """A module joined to operations, by the names of instructions."""
    module = HloModule(_compat.runtime.hlo_from_text(text))
    found = {i: numbers[i.name] for i in module.instructions() if i.name in numbers}
    return Joined(module, found, found, lambda *_: ("", "forward"))


def states(names, tags, found):
    """What became of the tags of operations, and why."""
    ops = [Op(number, f"stablehlo.{name}") for number, name in enumerate(names)]
    of_op = {number: dict.fromkeys([tag]) for number, tag in tags.items()}
    return [(str(tag.state), tag.instructions, tag.why) for tag in States(ops, of_op, found).find()]


def test_a_product_that_became_one_with_another_is_computed_by_that():
    found = joined(PRODUCT, {"last": (0,)})
    (product,) = found.joined
    computing = Computing([Op(number, "stablehlo.dot_general") for number in range(3)], {}, found)
    computing.add_merged({0: {1}, 2: {0, 1}})
    assert [computing.of(number) for number in range(3)] == [[product], [product], []]
    assert [computing.others([product], number) for number in range(2)] == [(1,), (0,)]


def test_a_sum_that_an_instruction_is_has_its_work_and_a_product_that_it_is_a_part_of_has_none():
    ops = States([Op(0, "stablehlo.reduce"), Op(1, "stablehlo.dot_general")], {}, joined(SUM, {"last": (0, 1)})).ops
    assert [(op.instructions, op.flops, op.bytes) for op in ops] == [(("last",), 12, 16), (("last",), 0, 0)]


def test_a_multiplication_that_absorbed_a_negation_does_not_compute_that():
    computing = Computing([Op(0, "stablehlo.multiply"), Op(1, "stablehlo.negate")], {}, joined(SINES, {"last": (0, 1)}))
    assert [[i.name for i in computing.of(number)] for number in range(2)] == [["last"], []]


def test_a_tag_that_one_of_two_copies_lacks_is_lost():
    found = joined(SINES, {"tagged": (0,), "bare": (0,)})
    assert states(["sine"], {0: ("k", "v")}, found) == [("lost", ("bare",), "the tag is on 1 of 2 instructions")]


def test_without_a_value_in_its_place_nothing_says_why_a_tag_is_lost():
    assert states(["sine"], {0: ("k", "v")}, joined(SINES, {"bare": (0,)})) == [("lost", ("bare",), "")]


def test_of_operations_that_are_gone_some_are_known_to_equal_another():
    found = joined(SINES, {"tagged": (0,)})
    found.equal = dict.fromkeys(found.joined, (1,))
    gone = [("eliminated", (), why) for why in ("equal to another", "")]
    assert states(["sine"] * 3, {1: ("k", "v"), 2: ("k", "v")}, found) == gone


def test_a_tag_whose_value_xla_changed_for_a_call_and_what_it_inlined_is_kept():
    found = joined(SINES, {"tagged": (0,)})
    found.callers = dict.fromkeys(found.joined, (1,))
    assert states(["sine", "call"], {0: ("xla_k", "1"), 1: ("xla_k", "1")}, found)[0] == ("kept", ("tagged",), "")


# --- How tags came ---------------------------------------------------------------------------------------------------------


def test_passes_are_named():
    def f(x, w, b):
        return jax.grad(lambda x: jnp.sin(x @ w + b).sum())(x)

    rules = [hlotag.Rule({"rule": "1"}, op="dot_general", phase="forward", grad="same")]
    with hlotag.stage(rules=rules, hlo=False):
        audit = hlotag.audit(f, X, W, B)
    came = {(tag.op.phase, tag.origin and tag.origin[:2]) for tag in audit.tags}
    assert came == {(phase, ("attached", "hlotag-resolve")) for phase in ("forward", "backward")}


def test_what_the_conversion_to_hlo_lost_is_named():
    with hlotag.stage(hlo=False):
        f = hlotag.tagged({"k": "v"})(lambda x: jnp.tanh(x) * jax.lax.broadcasted_iota(x.dtype, x.shape, 1))
        audit = hlotag.audit(jax.jit(f), X, xla_passes=True)
    assert [(tag.op.name, tag.by) for tag in audit.lost] == [("stablehlo.iota", "conversion to HLO")]


def test_states_are_those_of_the_current_stage():
    alone = hlotag.audit(gradient, X, W, B)
    with hlotag.stage(hlo=False):
        outside = hlotag.audit(gradient, X, W, B)
    with hlotag.stage():
        inside = hlotag.audit(gradient, X, W, B)
    assert len(alone.tags) < len(outside.tags) == len(inside.tags)
    assert outside.lost and not inside.lost
    assert not outside.in_state(TagState.RESTORED) + inside.in_state(TagState.RESTORED)
    assert {tag.op.phase for tag in inside.tags} == {"forward", "backward"}
    assert all(tag.op.source.startswith("test_audit.py:") for tag in inside.tags if tag.op.line)


def test_what_is_lost_to_another_tag_says_to_which():
    body = (
        f'%s = stablehlo.add %a, %b {{TAG"sum"}}}} : {KIND}\n'
        f' %t = stablehlo.reshape %s {{TAG"shape"}}}} : ({KIND}) -> {KIND}\n %r = stablehlo.sine %t : {KIND}'
    )
    audit = audit_module(module(body), "m.mlir")
    assert [(tag.value, tag.why) for tag in audit.lost] == [("sum", "the instruction has k=shape")]


def test_what_is_equal_after_other_passes():
    def f(x):
        with hlotag.tagged({"k": "first"}):
            y = jnp.sin(x * jnp.float32(2.0))
        with hlotag.tagged({"k": "second"}):
            z = jnp.sin(x * (jnp.ones(()) + jnp.ones(())))
        return jnp.tanh(y) @ x.T, jnp.exp(z) @ x.T

    with hlotag.stage(hlo=False):
        audit = hlotag.audit(f, X, xla_passes=True)
    (sine,) = (tag for tag in audit.tags if tag.op.name == "stablehlo.sine" and tag.value == "second")
    assert (sine.state, sine.by, sine.why) == (TagState.ELIMINATED, "cse", "equal to another")


def test_jaxs_disk_cache_is_left_alone(run_python, tmp_path):
    # What is found there is not compiled, so nothing would be dumped or restored.
    code = """
import jax, hlotag, test_audit as t
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
with hlotag.stage():
    audits = [hlotag.audit(t.gradient, t.X, t.W, t.B, xla_passes=True).to_json() for _ in range(2)]
assert audits[0] == audits[1]
"""
    run_python(code, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"), PYTHONPATH=os.pathsep.join(sys.path))
    assert not [file for file in tmp_path.glob("cache/*") if "gradient" in file.name]


def test_the_program_is_not_changed_by_it():
    f = jax.jit(gradient)
    with hlotag.stage():
        expected = f.lower(X, W, B).as_text(debug_info=True), f.lower(X, W, B).compile().as_text()
        hlotag.audit(f, X, W, B)
        assert (f.lower(X, W, B).as_text(debug_info=True), f.lower(X, W, B).compile().as_text()) == expected


# --- What can be audited ---------------------------------------------------------------------------------------------------


def test_what_can_be_audited():
    jitted = jax.jit(gradient)
    with hlotag.stage():
        lowered = jitted.lower(X, W, B)
        first, *others = hlotag.audit(gradient, X, W, kwargs={"b": B}), hlotag.audit(jitted, X, W, B), hlotag.audit(lowered)
        of_compiled = hlotag.audit(lowered.compile())
    assert [audit.counts for audit in others] == [first.counts] * 2
    assert of_compiled.counts == {TagState.KEPT: len(of_compiled.tags)}, "its fusions have tags, too"
    assert of_compiled.notes == ["Of an optimized module alone, an audit cannot find tags that XLA removed."]


def test_dropped_tags_are_those_of_the_program():
    @jax.jit
    def inner(x):
        return set_xla_metadata(x, key="inner") + 1

    def outer(x):
        return jnp.sin(inner(jax.lax.scan(lambda c, _: (set_xla_metadata(c, key="carry") * 2, None), x, None, length=2)[0])).sum()

    def dropped(function):
        return sorted(value for drop in hlotag.audit(function, X).dropped for _, value in drop.attrs)

    with hlotag.stage(), warnings.catch_warnings(action="ignore"):
        assert dropped(lambda x: jnp.cos(x)) == []
        assert dropped(outer) == dropped(jax.grad(outer)) == ["carry", "inner"]
        assert dropped(lambda x: inner(x) * 2) == ["inner"], "traced before, and found in JAX's cache"
        assert hlotag.audit(jax.jit(lambda x: jnp.tan(x)).lower(X)).dropped == ()
        lowered = jax.jit(lambda x: set_xla_metadata(x, key="lowered") * 2).lower(X)
        dropped(inner)
        assert [drop.attrs for drop in hlotag.audit(lowered).dropped] == [(("key", "lowered"),)]
        for number in range(3):
            found = dropped(lambda x, number=number: set_xla_metadata(x, key=number) * 2)
        assert found == ["2"], "of the last trace, and not of all that were traced at this line"
        assert "key=inner" in hlotag.audit(inner, X).summary(200)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("/no/such/folder",), ParseError, "no such folder"),
        (("/tmp", 1), TypeError, "without arguments"),
        ((b"module {", "m.mlir"), ParseError, r"m\.mlir:1"),
    ],
)
def test_what_cannot_be_audited(arguments, error, message):
    with pytest.raises(error, match=message):
        (audit_module if isinstance(arguments[0], bytes) else hlotag.audit)(*arguments)


# --- What it says ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample() -> Audit:
    with hlotag.stage(hlo=False):
        return hlotag.audit(gradient, X, W, B, xla_passes=True)


def test_json_is_as_described(sample):
    schema = json.loads(resources.files("hlotag.reports").joinpath("audit_schema.json").read_text())
    document = json.loads(sample.to_json())
    jsonschema.validate(document, schema)
    assert document["schema"] == "hlotag.audit/9"
    assert len(document["tags"]) == len(sample.tags)
    assert document["counts"] == {str(state): count for state, count in sample.counts.items()}
    assert [op["id"] for op in document["ops"]] == list(range(len(sample.ops)))
    assert set(schema["$defs"]["state"]["enum"]) == {str(state) for state in TagState}
    again = Audit.from_json(sample.to_json(), "audit.json")
    assert again.report == sample.report and again.to_json() == sample.to_json()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_table_fits(sample, width):
    lines = sample.summary(width).splitlines()
    assert max(map(len, lines)) <= width
    assert "block=all" in sample.summary(width)
    assert lines[0].startswith("jit_gradient: ")
    console = Console(file=io.StringIO(), width=width)
    console.print(sample)
    assert [line.rstrip() for line in console.file.getvalue().splitlines()] == lines


def test_nothing_to_say():
    audit = hlotag.audit(mlp, X, W, B)
    assert audit.tags == [] and "0 tags" in audit.summary()
    assert json.loads(audit.to_json())["tags"] == []
    assert "0 tags" in audit._repr_mimebundle_((), ())["text/html"]


def test_text_of_users_is_escaped():
    hostile = "\\1b[31m</table><script>alert(1)</script>"
    audit = audit_module(module(f'%r = {ADD} %a, %b {{TAG"{hostile}"}}}} : {KIND}'), "m.mlir")
    assert "\x1b" not in audit.summary(200) and "\\x1b" in audit.summary(200)
    notebook = audit._repr_mimebundle_((), ())["text/html"]
    assert "\x1b" not in notebook and "<script" not in notebook and "&lt;script" in notebook


# --- The command -----------------------------------------------------------------------------------------------------------


STATUS = {
    0: ("lost:k=re*", "attention:other", "consumed", "absent:k=dot"),
    1: ("lost", "lost:k", "lost:k=dot", "eliminated:k", "lost,eliminated:k=result", "absent:k=none"),
    2: (":k", "lost:", "lost:k="),
}


@pytest.mark.parametrize(("condition", "status"), [(text, status) for status, texts in STATUS.items() for text in texts])
def test_exit_status(tmp_path, capsys, condition, status):
    file = tmp_path / "m.mlir"
    file.write_bytes(module(TRANSPOSED, types="tensor<4x4xf32>"))
    assert main(["audit", str(file), "--no-hlo", "--fail-if", condition]) == status
    assert ("--fail-if" in capsys.readouterr().err) == bool(status)
