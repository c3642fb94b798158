# SPDX-License-Identifier: Apache-2.0
"""A folder of dumps against the audit in process: it says the same, or that it does not know."""

import contextlib
import functools
import json
import re

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from hlotag import _compat
from hlotag.audits import Op, TagState, dumps, program
from hlotag.audits.flow import Flow
from hlotag.audits.instructions import Instructions, Lineage
from hlotag.audits.states import History
from hlotag.cli import main
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.mlir.modules import to_bytecode
from hlotag.results.tags import CONVERSION
from hlotag.tagging import keys

THERE = (TagState.KEPT, TagState.RESTORED)
WIDTH = 8


def one_scan(block):
    def step(x, w):
        with block(layer="s"):
            return jnp.tanh(x @ w), None

    return lambda x, w: jax.grad(lambda w: jax.lax.scan(step, x, w)[0].sum())(w)


def per_example(block):
    def loss(w, x):
        with block(layer="s"):
            return jnp.tanh(x @ w[0]).sum()

    return lambda x, w: jax.vmap(jax.grad(loss), in_axes=(None, 0))(w, x)


def _layer(block, x, w):
    with jax.named_scope("attention"), block(layer="attention"):
        x = x + jax.nn.softmax(x @ w) @ w
    with jax.named_scope("mlp"), block(layer="mlp"):
        return x + jax.nn.gelu(x @ w)


def unrolled(block):
    def loss(w, x):
        return (functools.reduce(lambda x, i: _layer(block, x, w[i]), range(w.shape[0]), x) ** 2).mean()

    return lambda x, w: w - jax.grad(loss)(w, x)


def scanned(block):
    def loss(w, x):
        return (jax.lax.scan(lambda x, w: (_layer(block, x, w), None), x, w)[0] ** 2).mean()

    return lambda x, w: w - jax.grad(loss)(w, x)


def states_in_process(lowered):
    """By the name of an instruction of the module that XLA is given, key and value: the state and phase of the tag."""
    audit = hlotag.audit(lowered)
    read = program.read(_compat.modules.read_bytecode(to_bytecode(lowered.compiler_ir("stablehlo"))))
    numbered = _compat.modules.with_module(lowered, read.origins.module).compiler_ir("hlo").as_serialized_hlo_module_proto()
    found = {(tag.op.id, tag.key, tag.value): (tag.state, tag.op.phase) for tag in audit.tags}
    by_name = {instruction.name: numbers[0] for instruction, numbers in read.follow(HloModule(numbered)).items() if numbers}

    return lambda tag, first: found[by_name[first[tag.op.id]], tag.key, tag.value]


@pytest.mark.parametrize("every_pass", [False, True], ids=["ends", "passes"])
@pytest.mark.parametrize("tagging", ["jax", "hlotag"])
@pytest.mark.parametrize("make", [one_scan, per_example, unrolled, scanned])
def test_a_dump_says_what_the_audit_in_process_says_or_nothing(make, tagging, every_pass, tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "_registered", {})
    hlotag.register_key("layer", compiler=True)
    block = set_xla_metadata if tagging == "jax" else lambda **entries: hlotag.tagged(entries)
    x, w = jnp.ones((4, WIDTH)), jnp.ones((4, WIDTH, WIDTH))
    passes = {"xla_dump_hlo_pass_re": ".*"} if every_pass else {}
    with hlotag.stage() if tagging != "jax" else contextlib.nullcontext(), _compat.modules.without_disk_cache():
        lowered = jax.jit(make(block)).lower(x, w)
        truth = states_in_process(lowered)
        form = "xla_dump_hlo_as_text" if tagging == "jax" else "xla_dump_hlo_as_proto"
        lowered.compile({"xla_dump_to": str(tmp_path), form: True, **passes})
    audit = hlotag.audit(tmp_path)
    assert audit.tags
    module = dumps.read(dumps.largest(dumps.find(tmp_path)).ends[0])
    numbers = Instructions(module)
    first = {number: instruction.name for instruction in module.instructions() if (number := numbers[instruction]) is not None}
    for tag in audit.tags:
        state, phase = truth(tag, first)
        assert tag.op.phase == phase
        assert tag.state in (TagState.UNKNOWN, state) or {state, tag.state} <= {*THERE}, (str(tag), state)
    unknown = [tag.op for tag in audit.tags if tag.state == TagState.UNKNOWN]
    assert bool(unknown) == any("do not say where" in note for note in audit.notes)
    assert not [op for op in unknown if op.name == "dot"]
    assert len(unknown) < len(audit.tags) / 2


def test_a_dump_without_keys_that_xla_does_not_see_says_so(tmp_path):
    with hlotag.stage(), _compat.modules.without_disk_cache():
        f = jax.jit(lambda x: hlotag.tag(hlotag.tag(jnp.sin(x), {"layer": "0"}), {"_scheduling_group_id": "1"}))
        f.lower(jnp.ones(4)).compile({"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_proto": True})
    audit = hlotag.audit(tmp_path)
    assert [tag.key for tag in audit.tags] == ["_scheduling_group_id"]
    assert any(
        "XLA did not see the keys layer, " in note and "register_key('layer', compiler=True)" in note for note in audit.notes
    )


def test_command_and_audit_in_process_agree(tmp_path, capsys):
    def product(a, b):
        with hlotag.tagged({"k": "dot"}):
            product = jax.lax.dot_general(a, b, (((1,), (1,)), ((), ())))
        with hlotag.tagged({"k": "result"}):
            return product.T

    with hlotag.stage():
        lowered = jax.jit(product).lower(jnp.ones((4, WIDTH)), jnp.ones((4, WIDTH)))
        expected = hlotag.audit(lowered)
    file = tmp_path / "module.mlirbc"
    file.write_bytes(to_bytecode(lowered.compiler_ir("stablehlo")))
    assert main(["audit", str(file), "--json", str(tmp_path / "audit.json")]) == 0
    found = json.loads((tmp_path / "audit.json").read_text())
    assert found["counts"] == {str(state): count for state, count in expected.counts.items()}
    assert "compiled with hlotag's HLO pass" in found["notes"][0]
    assert expected.counts[TagState.KEPT] and not expected.lost
    assert main(["audit", str(file), "--no-hlo", "--fail-if", "lost"]) == 1
    assert "compiled without hlotag's HLO pass" in capsys.readouterr().out.replace("\n", " ")


def test_a_module_that_xla_finishes_under_another_number_is_one(tmp_path):
    """As TPU's compiler does with complex numbers, after some passes."""
    options = {"xla_dump_hlo_as_proto": True, "xla_dump_hlo_pass_re": ".*"}
    x, w = jnp.ones((4, WIDTH)), jnp.ones((4, WIDTH, WIDTH))
    with _compat.modules.without_disk_cache():
        jax.jit(scanned(set_xla_metadata)).lower(x, w).compile({"xla_dump_to": str(tmp_path), **options})
    expected = hlotag.audit(tmp_path).to_json()
    files = sorted(file for file in tmp_path.glob("module_*.hlo.pb") if re.search(r"\.\d{4}\.|after_opt", file.name))
    for file in files[len(files) // 3 :]:
        file.rename(file.with_name(re.sub(r"module_\d+", "module_9999", file.name)))
    assert hlotag.audit(tmp_path).to_json() == expected


GROUP = 'frontend_attributes={_scheduling_group_id="7",k="v"}, '
SCHEDULED = """
HloModule scheduled
ENTRY main {{
  x = f32[8] parameter(0)
  ROOT {name} = f32[8] tanh(x), {attributes}metadata={{op_name="jit(f)/tanh"}}
}}
"""


READ_A_KEY = ("legalize-scheduling-annotations", "explicit-stream-annotation-async-wrapper")


@pytest.mark.parametrize(("by", "state"), [*((by, TagState.CONSUMED) for by in READ_A_KEY), ("algsimp", TagState.LOST)])
def test_a_key_that_a_pass_of_xlas_reads_and_takes_is_used(by, state):
    def module(name, attributes):
        return HloModule(_compat.runtime.hlo_from_text(SCHEDULED.format(name=name, attributes=attributes)))

    first, last = module("tanh.1", GROUP), module("tanh.2", 'frontend_attributes={k="v"}, ')
    found = {tag.key: tag for tag in dumps.of_modules(first, last, [(by, last)]).tags}
    assert found["k"].state == TagState.KEPT
    assert found["_scheduling_group_id"].state == state
    assert state == TagState.LOST or found["_scheduling_group_id"].by == by


@pytest.mark.parametrize(
    ("after", "others", "platform", "state"),
    [
        ("sm_9.0a_gpu_after_optimizations", (), "gpu", TagState.UNKNOWN),
        ("gfx942_gpu_after_optimizations", (), "gpu", TagState.UNKNOWN),
        ("cpu_after_optimizations", (), "cpu", TagState.LOST),
        ("after_optimizations", ("tpu_comp_env.txt",), "tpu", TagState.UNKNOWN),
        ("after_optimizations", (), "", TagState.LOST),
    ],
)
def test_a_folder_says_which_compiler_wrote_it(tmp_path, after, others, platform, state):
    """Of the keys that this one takes when it reads them, a folder without the modules after passes does not tell more."""
    line = 'ROOT y = f32[8] sine(x), metadata={op_name="jit(f)/sin"}'
    for name, text in (("before_optimizations", f'{line}, frontend_attributes={{_scheduling_group_id="7"}}'), (after, line)):
        module = f"HloModule jit_f\nENTRY main {{ x = f32[8] parameter(0)\n {text} }}"
        (tmp_path / f"module_0001.jit_f.cl_1.{name}.txt").write_text(module)
    for name in others:
        (tmp_path / f"module_0001.jit_f.cl_1.{name}").write_text("")
    found = hlotag.audit(tmp_path)
    assert (found.platform, [tag.state for tag in found.tags]) == (platform, [state])
    assert any("--xla_dump_hlo_pass_re" in note for note in found.notes) == (state == TagState.UNKNOWN)


def test_the_pass_that_split_a_product_lost_a_part_of_its_tag():
    """Split over K, a product is a dot without the tag and a reduce with it: neither pass that keeps both is to blame."""
    tag = ', frontend_attributes={k="v"}'
    product = "= f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    whole = f"ROOT dot.1 {product}{tag}"
    split = f"dot.2 {product}\n ROOT sum = f32[8,8]{{1,0}} add(dot.2, p){tag}"

    def named(body):
        text = f"HloModule m\n\nENTRY main {{\n p = f32[8,8]{{1,0}} parameter(0)\n {body}\n}}"
        instructions = HloModule(_compat.runtime.hlo_from_text(text)).instructions()
        return [(i.opcode, (0,), i.entries) for i in instructions if i.opcode != "parameter"]

    history = History([Op(0, "stablehlo.dot_general")], {0: {("k", "v"): None}})
    for by in ("", "layout"):
        history.add(by, named(whole))
    for by in ("splitk", "fusion", ""):
        history.add(by, named(split))
    assert (history.lost, history.gone) == ({(0, "k"): "splitk"}, {})


def test_each_operation_of_an_instruction_is_there_whatever_the_others_are():
    """Of a conversion of a product: an operation without a tag, the product whose result it moves, and its own."""
    ops = [Op(n, f"stablehlo.{name}") for n, name in enumerate(["sine", "dot_general", "convert"])]
    history = History(ops, {number: {("k", "v"): None} for number in (1, 2)})
    for by in ("", "layout"):
        history.add(by, [("dot", (1,), {"k": "v"}), ("convert", (0, 1, 2), {"k": "v"})])
    assert (history.gone, history.lost) == ({}, {})


def test_without_a_module_after_every_pass_only_the_conversion_is_to_blame():
    history = History([Op(n, "stablehlo.sine") for n in range(2)], {n: {("k", "v"): None} for n in range(2)})
    history.is_whole = False
    history.add("layout", [("sine", (0,), {"k": "v"})])
    history.add("fusion", [])
    assert history.gone == {1: CONVERSION, 0: ""}


def test_operations_of_one_name_are_told_apart_by_their_tags(tmp_path):
    def layers(x, w):
        for number in range(3):
            with set_xla_metadata(layer=str(number)):
                x = jnp.tanh(x @ w)
        return x

    jax.jit(layers).lower(jnp.ones((4, 8)), jnp.ones((8, 8))).compile({"xla_dump_to": str(tmp_path)})
    audit = hlotag.audit(tmp_path)
    assert {(tag.value, tag.op.name, str(tag.state)) for tag in audit.tags} >= {(str(n), "dot", "kept") for n in range(3)}
    with pytest.raises(ParseError, match="no module's name contains 'other'"):
        dumps.audit_dumps(tmp_path, "other")


def test_a_dump_of_operations_that_nothing_tells_apart_says_so(tmp_path):
    def sines(x):
        with set_xla_metadata(layer="1"):
            return jnp.sin(x + 1.0) * jnp.sin(x + 2.0)

    jax.jit(sines).lower(jnp.ones((4, 8))).compile({"xla_dump_to": str(tmp_path)})
    audit = hlotag.audit(tmp_path)
    assert {tag.op.name for tag in audit.tags if tag.state == TagState.UNKNOWN} == {"add", "sine"}
    assert re.search(
        r"because several operations have one name\. \d+ instructions of the optimized module have tags\.", audit.notes[0]
    )


SINE = 'f32[8] sine({}), metadata={{op_name="sine"}}'
LOOP = """
cond { c = (s32[], f32[8], f32[8]) parameter(0)
 ROOT go = pred[] constant(true) }
body { s = (s32[], f32[8], f32[8]) parameter(0)
 n = s32[] get-tuple-element(s), index=0
 v = f32[8] get-tuple-element(s), index=1
 w = f32[8] get-tuple-element(s), index=2
 BODY
 ROOT next = (s32[], f32[8], f32[8]) tuple(n, y.1, y.2) }
ENTRY main { x.1 = f32[8] parameter(0)
 x.2 = f32[8] parameter(1)
 zero = s32[] constant(0)
 state = (s32[], f32[8], f32[8]) tuple(zero, x.1, x.2)
 ROOT loop = (s32[], f32[8], f32[8]) while(state), condition=cond, body=body }
"""
BRANCHES = """
one { v = f32[8] parameter(0)
 ROOT y.1 = SINE(v) }
two { w = f32[8] parameter(0)
 ROOT y.2 = SINE(w) }
ENTRY main { x.1 = f32[8] parameter(0)
 x.2 = f32[8] parameter(1)
 x.3 = pred[] parameter(2)
 ROOT u = f32[8] conditional(x.3, x.1, x.2), true_computation=one, false_computation=two }
"""
SINES = {
    "arguments": (
        "ENTRY main { x.1 = f32[8] parameter(0)\n x.2 = f32[8] parameter(1)\n y.1 = SINE(x.1)\n y.2 = SINE(x.2)\n"
        "ROOT y = f32[8] add(y.1, y.2) }",
        "f { p.1 = f32[8] parameter(0)\n p.2 = f32[8] parameter(1)\n z.2 = SINE(p.1)\n z.1 = SINE(p.2)\n"
        "ROOT z = f32[8] add(z.1, z.2) }\n ENTRY main { x.1 = f32[8] parameter(0)\n x.2 = f32[8] parameter(1)\n"
        "c.1 = f32[8] copy(x.1)\n ROOT y = f32[8] fusion(x.2, c.1), kind=kLoop, calls=f }",
    ),
    "loop": (LOOP.replace("BODY", "y.1 = SINE(v)\n y.2 = SINE(w)"), LOOP.replace("BODY", "y.2 = SINE(w)\n y.1 = SINE(v)")),
    "branches": (BRANCHES, BRANCHES.replace("y.1", "z.1").replace("y.2", "z.2")),
}


@pytest.mark.parametrize("case", SINES)
def test_operations_of_one_name_are_told_apart_by_what_they_read(case):
    def module(text):
        text = re.sub(r"SINE\(([\w.]+)\)", lambda match: SINE.format(match[1]), text)
        return HloModule(_compat.runtime.hlo_from_text(f"HloModule m\n{text}"))

    first, last = map(module, SINES[case])
    for instruction in last.instructions():  # As XLA renames what it clones.
        instruction.name = f"renamed.{instruction.name}"
    numbers = Instructions(first)
    named = Lineage(first, numbers).follow(last)
    found = {i.name[-1]: numbers.ops[named[i][0]].id for i in last.instructions() if i.opcode == "sine"}
    assert found == {i.name[-1]: numbers[i] for i in first.instructions() if i.opcode == "sine"}


def flow_of(text, **numbers):
    """The flow of a module, in which the named instructions are operations, and its instructions by name."""
    module = HloModule(_compat.runtime.hlo_from_text(f"HloModule m\n{text}"))
    by_name = {i.name: i for i in module.instructions()}
    return Flow(module, {by_name[name]: (number,) for name, number in numbers.items()}), by_name


@pytest.mark.parametrize("order", [("near", "far"), ("far", "near")])
def test_what_an_instruction_reads_does_not_depend_on_what_was_asked_before(order):
    count = 5000  # More than Python's stack holds.
    moves = "".join(f" c.{n + 1} = f32[8] copy(c.{n})\n" for n in range(count))
    text = f"""ENTRY main {{ x = f32[8] parameter(0)
 c.0 = f32[8] negate(x)
{moves} near = f32[8] negate(c.9)
 ROOT far = f32[8] multiply(c.{count}, near) }}"""
    flow, by_name = flow_of(text, **{"c.0": 1, "near": 2})
    assert {name: flow.inputs(by_name[name]) for name in order} == {"near": {1}, "far": {1, 2}}


def test_calls_of_a_function_on_its_own_result_have_the_same_sources():
    text = """f { p = f32[8] parameter(0)
 ROOT q = f32[8] copy(p) }
ENTRY main { x.1 = f32[8] parameter(0)
 x.2 = f32[8] parameter(1)
 y = f32[8] call(x.1), to_apply=f
 z = f32[8] call(y), to_apply=f
 u = f32[8] call(x.2), to_apply=f
 ROOT t = (f32[8], f32[8], f32[8]) tuple(y, z, u) }"""
    for name in ("y", "z", "u"):
        flow, by_name = flow_of(text)
        value = by_name[name]
        assert flow._of((value, None)) == flow.inputs(by_name["t"]) == {-1, -2}


def test_elements_that_a_tuple_lacks_are_passed_over():
    """As in a damaged dump."""
    text = LOOP.replace("BODY", "y.1 = SINE(v)\n y.2 = SINE(w)").replace("SINE", "sine")
    first, last = (HloModule(_compat.runtime.hlo_from_text(f"HloModule m\n{text}")) for _ in range(2))
    for instruction in last.instructions():
        instruction.proto.tuple_index = 9
        instruction.name = f"renamed.{instruction.name}"
    flow = Flow(last, Lineage(first, Instructions(first)).follow(last))
    assert [flow.inputs(i) for i in last.instructions() if i.opcode == "sine"] == [frozenset()] * 2


def test_a_computation_that_nothing_calls_is_passed_over(tmp_path):
    unused = "unused { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    entry = 'ENTRY e { x = f32[8] parameter(0)\n ROOT y = f32[8] sine(x), frontend_attributes={layer="1"} }'
    (tmp_path / "m.hlo").write_text(f"HloModule m\n{unused}{entry}")
    audit = hlotag.audit(tmp_path / "m.hlo")
    assert [(tag.value, str(tag.state)) for tag in audit.tags] == [("1", "kept")]
    assert "add" not in {i.opcode for i in audit.instructions}


def test_a_module_from_before_optimizations_is_not_taken_for_an_optimized_one(tmp_path):
    lowered = jax.jit(lambda x: jnp.sin(x @ x)).lower(jnp.ones((4, 4)))
    said = {}
    for name, text in {"before": lowered.as_text("hlo"), "after": lowered.compile().as_text()}.items():
        (tmp_path / f"{name}.txt").write_text(text)
        said[name] = str(hlotag.audit(tmp_path / f"{name}.txt"))
    assert "instructions before XLA" in said["before"] and "note: The module has no schedule" in said["before"]
    assert "instructions after XLA" in said["after"] and "schedule" not in said["after"]


def test_a_file_of_hlo_and_a_compiled_program_are_audited_alike(tmp_path, capsys):
    with hlotag.stage():
        compiled = (
            jax.jit(one_scan(lambda **entries: hlotag.tagged(entries))).lower(jnp.ones((4, 8)), jnp.ones((2, 8, 8))).compile()
        )
    (tmp_path / "m.hlo").write_text(compiled.as_text())
    expected = hlotag.audit(compiled)
    assert expected.tags and hlotag.audit(tmp_path / "m.hlo").counts == expected.counts
    assert main(["audit", str(tmp_path / "m.hlo"), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["notes"] == expected.notes and not document["has_program"]
