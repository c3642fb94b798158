# SPDX-License-Identifier: Apache-2.0
"""`Audit.effects`: what tags changed, in scheduled modules as XLA's compilers write them, and on this machine's compiler."""

import dataclasses
import runpy
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag import _compat
from hlotag.audits import Audit, Effect, TagState, Verdict, effects
from hlotag.audits.dumps import of_modules
from hlotag.audits.effects.schedule import Member, Schedule
from hlotag.cli import main
from hlotag.cli.condition import Condition
from hlotag.hlo import HloModule
from hlotag.results.tags import Op
from programs import W, X

F32 = "f32[8,8]{1,0}"
SUM = "f {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n\n"
HEAD = "HloModule m, is_scheduled=true\n\n"
GROUP = ', frontend_attributes={_scheduling_group_id="7"}'
CHANGED, SAME, REFUSED, UNREAD, OPEN = Verdict.CHANGED, Verdict.SAME, Verdict.REFUSED, Verdict.UNREAD, Verdict.OPEN


def read(text: str) -> HloModule:
    return HloModule(_compat.runtime.hlo_from_text(HEAD + text))


def audited(tagged: str, platform: str, untagged: str = "") -> Audit:
    """The audit of a module that came as it is; compared with that of the program without the tags, if there is one.

    Instructions of one name compute the same operation.
    """
    module = read(tagged)
    audit = of_modules(module, module, platform=platform)
    if not untagged:
        return audit
    with_tags, without = (schedule(audit, each) for each in (module, read(untagged)))
    found = effects.find(audit.tags, audit.ops, with_tags, without, platform)
    return dataclasses.replace(audit, effects=found, tags=effects.without_lost(audit.tags, found))


def schedule(audit: Audit, module: HloModule) -> Schedule:
    by_name = {i.name: i for i in module.instructions()}
    return Schedule(module, {op.id: [by_name[name] for name in op.instructions if name in by_name] for op in audit.ops})


def effect_of(tagged: str, platform: str, untagged: str = "") -> Effect:
    """The only effect of a module."""
    (effect,) = audited(tagged, platform, untagged).effects
    return effect


def entry(*lines: str) -> str:
    return "\n".join(["ENTRY main {", f" p = {F32} parameter(0)", *(f" {line}" for line in lines), "}"])


def dot(name: str, operand: str, attributes: str = "") -> str:
    return f"{name} = {F32} dot({operand}, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{attributes}"


START = f"s = ({F32}, {F32}) all-gather-start(p), replica_groups={{}}, dimensions={{0}}{GROUP}"
DONE = f"d = {F32} all-gather-done(s){GROUP}"
RESULT = f"ROOT r = {F32} add(d, a)"


def fused(*lines: str, name: str = "f") -> str:
    return "\n".join([f"{name} {{", f" q = {F32} parameter(0)", *(f" {line}" for line in lines), "}\n\n"])


# --- One effect in a module --------------------------------------------------------------------------------------------------

STREAM = ', frontend_attributes={_xla_stream_annotation="1"}'
CALLED = f"f {{\n q = {F32} parameter(0)\n ROOT n = {F32} negate(q){STREAM}\n}}\n\n"
PLAIN = entry(f"n = {F32} negate(p)", dot("a", "p"), f"ROOT r = {F32} add(n, a)")
STREAM_OF_NO_CALL = PLAIN.replace("negate(p)", f"negate(p){STREAM}")
PINNED = ', frontend_attributes={_xla_buffer_placement="pinned_host"}'
THERE = "f32[8,8]{1,0:S(5)}"
OUT = f"s = ({THERE}, {F32}, u32[]) copy-start(n)", f"d = {THERE} copy-done(s)"
BACK = f"t = ({F32}, {THERE}, u32[]) copy-start(d)", f"b = {F32} copy-done(t)"
MADE = f"n = {F32} negate(p){PINNED}"
NO_MOVE = "no move into the host's memory (S(5))"
NOT_SHOWN = "the compiled module does not show its effect"
MUST = ', frontend_attributes={MUST_FUSE="a"}'
ONE = fused(f"n = {F32} negate(q){MUST}", f"ROOT t = {F32} tanh(n){MUST}") + entry(
    f"ROOT k = {F32} fusion(p), kind=kLoop, calls=f"
)
TWO = entry(f"n = {F32} negate(p){MUST}", f"ROOT t = {F32} tanh(n){MUST}")
LIMIT = ', frontend_attributes={FUSE_LIMIT="true"}'
FUSION_AND_TANH = entry(f"k = {F32} fusion(p), kind=kLoop, calls=f", f"ROOT e = {F32} tanh(k)")
ACROSS = fused(f"n = {F32} negate(q){LIMIT}", f"ROOT t = {F32} tanh(n)") + FUSION_AND_TANH
HOST = ', frontend_attributes={_xla_compute_type="host"}'
ON_THE_MAIN_THREAD = entry(f"ROOT n = {F32} negate(p){HOST}")
GLUE = {
    "copy": f"c = {F32} copy(p)",
    "bitcast": f"c = {F32} bitcast(p)",
    "call": f'c = {F32} custom-call(p, p), custom_call_target="ConcatBitcast"',
    "slice": f"h = (({F32}), {F32}, s32[]) slice-start(p), slice={{[0:8], [0:8]}}\n c = {F32} slice-done(h)",
    "copy-start": f"h = ({F32}, {F32}, u32[]) copy-start(p)\n c = {F32} copy-done(h)",
    "tuple": f"h = ({F32}, {F32}) tuple(p, p)\n c = {F32} get-tuple-element(h), index=0",
}


def asynchronous(*between: str) -> str:
    return CALLED + entry(f"s = (({F32}), {F32}) call-start(p), to_apply=f", *between, f"d = {F32} call-done(s)", RESULT)


def beside_a_gather() -> str:
    start, done = (
        line.replace(GROUP, "").replace("(s)", "(g)") for line in (START.replace("s =", "g ="), DONE.replace("d =", "e ="))
    )
    tagged = asynchronous(f"a = {F32} copy(p)")
    return tagged.replace(" s =", f" {start}\n s =").replace(" ROOT r", f" {done}\n ROOT r")


def ends_in_fusions() -> str:
    """TPU's: a collective's parts are in the fusions of both ends and in the product between them."""
    part = f"n = {F32} all-gather(q), replica_groups={{}}, dimensions={{0}}{GROUP}"
    return (
        fused(part.replace("n =", "ROOT n.0 ="), name="f")
        + fused(part.replace("n =", "n.1 ="), dot("ROOT a", "q", GROUP).replace(", p)", ", n.1)"), name="g")
        + fused(part.replace("n =", "ROOT n.2 ="), name="h")
        + entry(
            f"all-start.1 = {F32} fusion(p), kind=kLoop, calls=f",
            f"k = {F32} fusion(all-start.1), kind=kOutput, calls=g",
            f"ROOT all-done.1 = {F32} fusion(k), kind=kLoop, calls=h",
        )
    )


def on_the_host() -> str:
    body = f"f {{\n q = {F32} parameter(0)\n ROOT n = {F32} negate(q){HOST}\n}}"
    start = (
        f's = (({F32}), {F32}, u32[]) custom-call-start(p), async_execution_thread="host", '
        'custom_call_target="HostExecute", called_computations={f}'
    )
    return body + ', execution_thread="host"\n\n' + entry(start, f"ROOT d = {F32} custom-call-done(s)")


BESIDE = entry(START, dot("a", "p", GROUP), DONE, RESULT)
SYNCHRONOUS = entry(
    f"s = {F32} all-gather(p), replica_groups={{}}, dimensions={{0}}{GROUP}", dot("a", "p", GROUP), f"ROOT r = {F32} add(s, a)"
)
OF_BOTH = ', metadata={op_name="jit(f)/transpose(jvp())/mul"}' + GROUP
BOTH_PASSES = [START, dot("a", "p", GROUP), DONE, dot("o", "p"), dot("b", "o", OF_BOTH), f"ROOT r = {F32} add(d, b)"]
APART = entry(dot("a", "p", GROUP), dot("o", "p"), dot("b", "p", GROUP), f"t = {F32} add(a, b)", f"ROOT r = {F32} add(t, o)")
CALL = f"f {{\n q = {F32} parameter(0)\n ROOT n = {F32} negate(q){GROUP}\n}}\n\n" + entry(
    START, f"c = (({F32}), {F32}) call-start(p), to_apply=f", f"a = {F32} call-done(c)", DONE, RESULT
)
AROUND = CALL.replace(f" {START}\n c =", " c =").replace(
    f" a = {F32} call-done(c)\n {DONE}", f" {START}\n {DONE}\n a = {F32} call-done(c)"
)
REDUCES = SUM.replace("add(x, y)", f"add(x, y){MUST}") + fused(
    "z = f32[] constant(0)",
    f"t = {F32} tanh(q){MUST}",
    f"ROOT r = f32[8]{{0}} reduce(t, z), dimensions={{1}}, to_apply=f{MUST}",
    name="g",
)
MOVED = entry(MADE, *OUT, dot("a", "p"), *BACK, f"ROOT r = {F32} add(a, b)")
BACK_AT_ONCE = entry(MADE, *OUT, *BACK, dot("a", "p"), f"ROOT r = {F32} add(a, b)")
KEPT = entry(MADE, f"ROOT b = {F32} copy(n)")
VMEM = entry(f"ROOT n = {F32} negate(p)" + PINNED.replace("pinned_host", "vmem"))
LAUNCH = ', frontend_attributes={collective_group_key="g"}'
ONE_BY_ONE = SUM + entry(
    f"s = {F32} all-reduce(p), to_apply=f{LAUNCH}", f"t = {F32} all-reduce(s), to_apply=f{LAUNCH}", f"ROOT r = {F32} add(s, t)"
)
RUN, NOT_COMPARED = "s, a, d contiguous; a during s", "not compared with the program without the tags"
# The compiler, the module, that of the program without the tags, and the effect: verdict, what, evidence, without, reason.
EFFECTS = {
    "a product beside its gather": (
        *("cuda", BESIDE, entry(START, DONE, dot("a", "p"), RESULT)),
        *(CHANGED, "schedule", RUN, "s, d, a contiguous; nothing during s"),
    ),
    "as without": ("cuda", BESIDE, BESIDE, SAME, "schedule", RUN, ""),
    "not compared": ("cuda", BESIDE, "", OPEN, "", RUN, "", NOT_COMPARED),
    "a gather made synchronous": (
        *("cuda", SYNCHRONOUS, entry(START, dot("a", "p"), DONE, RESULT)),
        *(REFUSED, ..., "s, a contiguous; nothing during s", RUN),
    ),
    **{f"glue: {k}": ("tpu", entry(START, c, dot("a", "c", GROUP), DONE, RESULT), "", ..., ..., RUN) for k, c in GLUE.items()},
    "ends in fusions": ("tpu", ends_in_fusions(), "", ..., ..., "all-start.1, k, all-done.1 contiguous; k during all-start.1"),
    "both passes": (
        *("tpu", entry(*BOTH_PASSES), entry(START, DONE, *BOTH_PASSES[3:], dot("a", "p"))),
        *(REFUSED, ..., "3 of 4 contiguous (s, a, d); a during s", ...),
        "forward and backward operations share the id; give derived ones another by grad=",
    ),
    "a group of one": (
        *("tpu", entry(dot("a", "p", GROUP), f"ROOT r = {F32} tanh(a)"), ""),
        *(OPEN, ..., ..., ..., "a group of one has nothing to run with"),
    ),
    "products in the old order": ("tpu", APART, APART, SAME, ..., "1 of 2 contiguous (a)"),
    "the end of a call": ("cuda", CALL, "", ..., ..., "s, c, a, d contiguous; c during s"),
    "a gather beside a call that is under way": (
        *("cuda", AROUND, entry(START, DONE, f"a = {F32} negate(p)", RESULT)),
        *(CHANGED, ..., "c, s, d, a contiguous; c during s"),
    ),
    "a stream": (
        *("cuda", asynchronous(dot("a", "p")), PLAIN),
        *(CHANGED, ..., "a during s on stream 1", "n not in an asynchronous pair"),
    ),
    "a stream beside a gather": ("cuda", beside_a_gather(), PLAIN, CHANGED, ..., "g during s on stream 1"),
    "a stream beside nothing": ("cuda", asynchronous(f"a = {F32} copy(p)"), PLAIN, SAME, ..., "nothing during s on stream 1"),
    "a stream of no call": (
        *("cuda", STREAM_OF_NO_CALL, STREAM_OF_NO_CALL, SAME, ..., ..., ...),
        "XLA for gpu needs a call that it does not inline: hlotag.xla_metadata_call(..., inlineable='false')",
    ),
    "the host": ("tpu", on_the_host(), ON_THE_MAIN_THREAD, CHANGED, ..., "n on the host, run by s", "n on the thread main"),
    "not the host": ("tpu", ON_THE_MAIN_THREAD, ON_THE_MAIN_THREAD, SAME, "thread", "n on the thread main"),
    "a copy to the host": (
        *("tpu", MOVED, KEPT, CHANGED, "memory space"),
        *("1 move of 256 B into the host's memory (S(5)) for 1 operation: s", NO_MOVE),
        "back after 1 to 1 instructions that compute; d to t is the shortest",
    ),
    "a copy that comes back at once": (
        *("tpu", BACK_AT_ONCE, KEPT, CHANGED, ..., ..., ...),
        "1 of 1 value (256 B) comes back at once: nothing computes between d and t, so the device kept the value until then",
    ),
    "a memory that is not judged": ("tpu", VMEM, VMEM, OPEN, "", "", "", NOT_SHOWN),
    "no copy": ("tpu", KEPT, KEPT, SAME, "memory space", NO_MOVE),
    "a copy of another operation": (
        *("tpu", entry(MADE, f"m = {F32} tanh(p){PINNED}", *OUT, f"ROOT b = {F32} copy(m)")),
        *(entry(MADE, f"ROOT m = {F32} tanh(p)"), REFUSED, ..., ..., ..., "no move for tanh"),
    ),
    "fused": ("tpu", ONE, TWO, CHANGED, "fusion", "2 operations in k", "2 operations in 2 instructions: n, t"),
    "fused anyway": ("tpu", ONE, ONE, SAME, "fusion", "2 operations in k"),
    "not fused": (
        *("tpu", TWO, ONE, REFUSED, "fusion", "2 operations in 2 instructions: n, t", "2 operations in k", "n, t not fused"),
    ),
    "a fused reduction": (
        *("tpu", REDUCES + entry("ROOT k = f32[8]{0} fusion(p), kind=kLoop, calls=g"), ONE),
        *(CHANGED, "fusion", "3 operations in k"),
    ),
    "a fusion limit": (
        *("tpu", fused(f"ROOT n = {F32} negate(q){LIMIT}") + FUSION_AND_TANH, ACROSS),
        *(CHANGED, "fusion", "n at the end of k", "t fused across it, in k"),
    ),
    "a fusion limit that is none": ("tpu", ACROSS, ACROSS, SAME, "fusion", "t fused across it, in k"),
    "collectives that XLA did not launch together": (
        *("cuda", ONE_BY_ONE, ONE_BY_ONE.replace(LAUNCH, ""), SAME, "launch"),
        *("s.1, t launched one by one", "", "XLA did not launch them together"),
    ),
    "a key of another compiler": (
        *("cuda", entry(f"n = {F32} negate(p){LIMIT}", f"ROOT t = {F32} tanh(n)"), ""),
        *(UNREAD, ..., ..., ..., "XLA for gpu does not read it; read by tpu"),
    ),
    "a key that was not seen to be read": (
        *("tpu", SUM + entry(f'ROOT a = {F32} all-reduce(p), to_apply=f, frontend_attributes={{combiner_key="a"}}'), ""),
        *(UNREAD, ..., ..., ..., "XLA for tpu was not seen to read it; read by gpu"),
    ),
    "a key whose effect is not shown": (
        *("tpu", entry(f"ROOT n = {F32} negate(p)" + ', frontend_attributes={scheduler_hint="force_early"}'), ""),
        *(OPEN, ..., ..., ..., NOT_SHOWN),
    ),
}


@pytest.mark.parametrize("case", EFFECTS)
def test_an_effect(case):
    platform, tagged, untagged, *expected = EFFECTS[case]
    found = effect_of(tagged, platform, untagged)[2:]
    assert all(one in (..., other) for one, other in zip(expected, found, strict=False)), found


def test_collectives_that_xla_combined_are_one_launch():
    module = read(
        SUM + entry(f"s = ({F32}, {F32}) all-reduce(p, p), to_apply=f", f"ROOT r = {F32} get-tuple-element(s), index=0")
    )
    (combined,) = (i for i in module.instructions() if i.opcode == "all-reduce")
    ops = [Op(n, "stablehlo.all_reduce") for n in range(2)]
    made = Schedule(module, {op.id: [combined] for op in ops})
    found = effects.JUDGES["collective_group_key"][1]([Member(op, [combined], []) for op in ops], made, "g")
    assert not isinstance(found, str) and found.is_done
    assert found.evidence == f"{combined.name} combined from 2 operations: one launch"


def test_a_tag_that_took_effect_is_not_lost():
    audit = audited(asynchronous(dot("a", "p")), "cuda", PLAIN)
    (tag,) = audit.tags
    lost = tag._replace(state=TagState.LOST)
    assert [found.state for found in effects.without_lost([lost], audit.effects)] == [TagState.CONSUMED]
    refused = [effect._replace(verdict=REFUSED) for effect in audit.effects]
    assert [found.state for found in effects.without_lost([lost], refused)] == [TagState.LOST]


# --- Collectives -----------------------------------------------------------------------------------------------------------


def sums(*tags: str) -> str:
    """An all-reduce for each tag."""
    names = [f"a{n}" for n in range(len(tags))]
    sum_of = f"{F32} all-reduce(p), replica_groups={{}}, to_apply=f"
    lines = [f"{name} = {sum_of}, frontend_attributes={{{tag}}}" for name, tag in zip(names, tags, strict=True)]
    return SUM + entry(*lines, f"ROOT r = ({', '.join([F32] * len(tags))}) tuple({', '.join(names)})")


def test_an_asynchronous_collective_in_a_function_is_no_call_of_it():
    pair = f"({F32}, {F32})"
    permute = f"{F32} collective-permute(x), source_target_pairs={{{{0,1}}}}"
    alone = f"alone {{\n x = {F32} parameter(0)\n ROOT c = {permute}\n}}\n\n"
    two = f"two {{\n x = {F32} parameter(0)\n c = {permute}\n d = {permute}\n ROOT t = {pair} tuple(c, d)\n}}\n\n"
    starts = {"alone": f"(({F32}), {F32})", "two": f"(({F32}), {pair})"}
    lines = [f"{name}.start = {shape} async-start(p), calls={name}" for name, shape in starts.items()]
    lines += [f"{name}.done = {result} async-done({name}.start)" for name, result in (("alone", F32), ("two", pair))]
    module = read(alone + two + entry(*lines, f"ROOT r = ({F32}, {pair}) tuple(alone.done, two.done)"))
    by_name = {i.name: i for i in module.instructions()}

    def seen(name: str) -> Any:
        call = Op(0, "func.call", "", "main", "forward", "", 0)
        member = Member(call, [by_name[f"{name}.start"]], [])
        return effects.JUDGES["inlineable"][1]([member], Schedule(module, {}), "false")

    assert (seen("alone").is_done, seen("two").is_done) == (False, True)


# --- On this machine's compiler --------------------------------------------------------------------------------------------


def audit(compare=True, **attrs) -> Audit:
    @hlotag.xla_metadata_call(**attrs)
    def inner(x, w):
        return jnp.tanh(x @ w)

    with hlotag.stage():
        return hlotag.audit(jax.jit(lambda x, w: jnp.sin(inner(x, w))), X, W, effects=compare)


def test_a_call_that_stays_and_one_that_is_inlined_anyway():
    (kept,), (inlined,) = (audit(inlineable=value).effects for value in ("false", "true"))
    assert (kept.verdict, kept.what, kept.without) == (CHANGED, "kept call", "no call") and kept.evidence.endswith("is a call")
    assert (inlined.verdict, inlined.evidence) == (SAME, "no call")
    (effect,) = audit(compare=False, inlineable="false").effects
    assert (effect.verdict, effect.reason) == (OPEN, NOT_COMPARED)


def test_a_program_that_does_not_compile_without_its_tags(monkeypatch):
    replaced = []

    def with_module(lowered, module, original=_compat.modules.with_module):
        replaced.append(module)
        if len(replaced) > 1:
            raise RuntimeError("no such call\nmore")
        return original(lowered, module)

    monkeypatch.setattr(_compat.modules, "with_module", with_module)
    found = audit(inlineable="false")
    assert [effect.verdict for effect in found.effects] == [OPEN]
    assert found.notes == ["XLA cannot compile the program without the tags, so effects are not compared: no such call"]


def test_keys_that_nobody_reads_have_no_effects():
    assert audit(block="a").effects == ()


@pytest.mark.parametrize("kept", [True, False])
def test_a_loop_that_runs_once(kept):
    def once(x):
        with hlotag.tagged({"skip-simplify-while-loops_trip-count-one": str(kept).lower()}):
            return jax.lax.fori_loop(0, 1, lambda _, y: jnp.sin(y), x)

    with hlotag.stage():
        found = hlotag.audit(once, X).effects
    assert [(effect.verdict, effect.without) for effect in found] == ([(CHANGED, "no while")] if kept else [(OPEN, "")])


# --- Views -----------------------------------------------------------------------------------------------------------------


def test_a_condition_and_the_summary():
    found = audited(TWO, "tpu", ONE)
    line = (
        "MUST_FUSE=a: refused (fusion); 2 operations in 2 instructions: n, t; without the tags: 2 operations in k; n, t not fused"
    )
    assert Condition.parse("effect:MUST_FUSE").violations(found) == [line]
    assert Condition.parse("effect:FUSE_LIMIT").violations(found) == []
    assert Condition.parse("effect").violations(audited(TWO, "cuda")) == []
    assert Condition.parse("effect").violations(audited(ONE, "tpu", ONE)) == []
    assert Condition.parse("no-difference").violations(audited(ONE, "tpu", ONE)) == [
        "MUST_FUSE=a: no difference (fusion); 2 operations in k"
    ]
    (problem,) = found.report.problems
    assert (problem.kind, problem.tag, problem.count) == ("refused", "MUST_FUSE=a", 2)
    assert f"MUST_FUSE=a: refused (fusion); {problem.why}" == f"{line}."
    assert "2 x refused  MUST_FUSE=a on negate, tanh" in found.summary(200)
    assert "Effects" not in found.summary(200)
    assert audited(ONE, "tpu", TWO).summary(200).splitlines()[2:5] == [
        *("Effects", "  changed        MUST_FUSE=a (fusion)"),
        "      2 operations in k; without the tags: 2 operations in 2 instructions: n, t",
    ]


def test_groups_of_one_line_with_one_cause_are_one_problem():
    def groups(*between: str) -> str:
        lines = []
        for n in (1, 2):
            key = GROUP.replace("7", str(n))
            lines += [f"s.{n} = {F32} all-gather(p), replica_groups={{}}, dimensions={{0}}{key}"]
            lines += [f"{name}.{n} = {F32} tanh(p)" for name in between]
            lines += [dot(f"a.{n}", "p", key), f"r.{n} = {F32} add(s.{n}, a.{n})"]
        return entry(*lines, f"ROOT r = {F32} add(r.1, r.2)")

    (problem,) = audited(groups(), "cuda", groups("t")).report.problems
    assert (problem.tag, problem.count) == ("_scheduling_group_id=1, 2", 4)
    assert problem.why.startswith("Of 1: s.1, a.1 contiguous; nothing during s.1; without the tags: 1 of 2 contiguous")
    assert problem.effect == "The compiler did not do what the key asks for: Operations to schedule as one group."


PROGRAM = """
import hlotag, jax, jax.numpy as jnp
inner = hlotag.xla_metadata_call(lambda x: jnp.tanh(x) * x, inlineable="false")
def step():
    return lambda x: jnp.sin(inner(x)), (jnp.ones((4, 4)),)
"""


@pytest.mark.parametrize("form", ["program", "module"])
@pytest.mark.parametrize(
    ("options", "label"), [([], "changed        inlineable=false (kept call)"), (["--no-effects"], "not judged")]
)
def test_the_command_compares(form, options, label, tmp_path, capsys):
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    if form == "module":
        function, arguments = runpy.run_path(str(file))["step"]()
        with hlotag.stage():
            (tmp_path / "m.mlir").write_text(jax.jit(function).lower(*arguments).as_text())
    assert main(["audit", f"{file}:step" if form == "program" else str(tmp_path / "m.mlir"), *options]) == 0
    assert label in capsys.readouterr().out
