# SPDX-License-Identifier: Apache-2.0
"""A folder of dumps against the audit in process: it says the same, or that it does not know."""

import contextlib
import functools
import json
import re
from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.xla_metadata import set_xla_metadata

import hlotag
from hlotag import _compat
from hlotag.audits import Op, TagState, dumps, program
from hlotag.audits.instructions import Instructions
from hlotag.audits.states import History
from hlotag.cli import main
from hlotag.errors import ParseError
from hlotag.hlo import HloModule
from hlotag.mlir.modules import to_bytecode

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
def test_a_dump_says_what_the_audit_in_process_says_or_nothing(make, tagging, every_pass, tmp_path):
    block = set_xla_metadata if tagging == "jax" else lambda **entries: hlotag.tagged(entries)
    x, w = jnp.ones((4, WIDTH)), jnp.ones((4, WIDTH, WIDTH))
    passes = {"xla_dump_hlo_pass_re": ".*"} if every_pass else {}
    with hlotag.stage() if tagging == "hlotag" else contextlib.nullcontext(), _compat.modules.without_disk_cache():
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
    unknown = Counter(tag.state for tag in audit.tags)[TagState.UNKNOWN]
    assert bool(unknown) == any("do not say where" in note for note in audit.notes)
    assert unknown < len(audit.tags) or make is unrolled
    if tagging == "hlotag" and every_pass:
        assert unknown < len(audit.tags) / 4


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
    assert "compiled with hlotag's HLO stage" in found["notes"][0]
    assert expected.counts[TagState.RESTORED]
    assert main(["audit", str(file), "--no-hlo", "--fail-if", "lost"]) == 1
    assert "compiled without hlotag's HLO stage" in capsys.readouterr().out.replace("\n", " ")


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


@pytest.mark.parametrize(("by", "state"), [*((by, TagState.USED) for by in READ_A_KEY), ("algsimp", TagState.LOST)])
def test_a_key_that_a_pass_of_xlas_reads_and_takes_is_used(by, state):
    def module(name, attributes):
        return HloModule(_compat.runtime.hlo_from_text(SCHEDULED.format(name=name, attributes=attributes)))

    first, last = module("tanh.1", GROUP), module("tanh.2", 'frontend_attributes={k="v"}, ')
    found = {tag.key: tag for tag in dumps.of_modules(first, last, [(by, last)]).tags}
    assert found["k"].state == TagState.KEPT
    assert found["_scheduling_group_id"].state == state
    assert state == TagState.LOST or found["_scheduling_group_id"].by == by


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
    def twice(x, w):
        with set_xla_metadata(layer="1"):
            return jnp.tanh(jnp.tanh(x @ w) @ w)

    jax.jit(twice).lower(jnp.ones((4, 8)), jnp.ones((8, 8))).compile({"xla_dump_to": str(tmp_path)})
    audit = hlotag.audit(tmp_path)
    assert [tag.state for tag in audit.tags] == [TagState.UNKNOWN] * 4
    assert re.search(
        r"because several operations have one name\. \d+ instructions of the optimized module have tags\.", audit.notes[0]
    )


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
