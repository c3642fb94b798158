# SPDX-License-Identifier: Apache-2.0
"""`Audit.effects`: whether the compiler did what tags ask for, in scheduled modules as XLA's compilers write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import hlotag
from hlotag import _compat
from hlotag.audit import Effect
from hlotag.audit.dumps import of_modules
from hlotag.cli.condition import Condition
from hlotag.hlo import HloModule
from programs import W, X

F32 = "f32[8,8]{1,0}"
SUM = "f {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n\n"
HEAD = "HloModule m, is_scheduled=true\n\n"
GROUP = ', frontend_attributes={_scheduling_group_id="7"}'


def effect_of(text: str, platform: str) -> Effect:
    """The only effect of a module that came as it is."""
    module = HloModule(_compat.hlo_from_text(HEAD + text))
    (effect,) = of_modules(module, module, platform=platform).effects
    return effect


def entry(*lines: str) -> str:
    return "\n".join(["ENTRY main {", f" p = {F32} parameter(0)", *(f" {line}" for line in lines), "}"])


def dot(name: str, operand: str, attributes: str = "") -> str:
    return f"{name} = {F32} dot({operand}, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{attributes}"


START = f"s = ({F32}, {F32}) all-gather-start(p), replica_groups={{}}, dimensions={{0}}{GROUP}"
DONE = f"d = {F32} all-gather-done(s){GROUP}"
RESULT = f"ROOT r = {F32} add(d, a)"


def test_a_group_in_one_run():
    effect = effect_of(entry(START, dot("a", "p", GROUP), DONE, RESULT), "cuda")
    assert effect == Effect("_scheduling_group_id", "7", True, "s, a, d in one run; a beside s")


def test_a_group_that_a_dependence_keeps_apart():
    gap = f"x = {F32} tanh(a)"
    effect = effect_of(entry(START, dot("a", "p", GROUP), DONE, gap, dot("b", "x", GROUP), f"ROOT r = {F32} add(d, b)"), "cuda")
    assert effect.obeyed is False
    assert effect.evidence == "3 of 4 in one run (s, a, d); b is 2 instructions away"
    assert effect.reason == "a dependence through x"


def test_a_dependence_is_told_of_the_member_that_it_keeps_apart():
    """The farthest member, o, could follow the run; y is between o and b, which is no reason for either's distance."""
    lines = [
        *(START, dot("a", "p", GROUP), DONE, f"x = {F32} tanh(a)", f"c = {F32} copy(x)", dot("b", "c", GROUP)),
        *(f"z = {F32} exponential(b)", f"y = {F32} exponential(p)", dot("o", "y", GROUP)),
        *(f"t = {F32} add(b, o)", f"u = {F32} add(z, t)", f"ROOT r = {F32} add(d, u)"),
    ]
    effect = effect_of(entry(*lines), "cuda")
    assert effect.evidence == "3 of 5 in one run (s, a, d); b is 3 instructions away"
    assert effect.reason == "a dependence through x"


def test_members_outside_of_the_run_that_depend_on_each_other():
    lines = [
        *(dot("b", "p", GROUP), f"x = {F32} tanh(b)", dot("o", "x", GROUP), f"y = {F32} tanh(o)"),
        *(START, dot("a", "p", GROUP), DONE, f"t = {F32} add(y, a)", f"ROOT r = {F32} add(d, t)"),
    ]
    effect = effect_of(entry(*lines), "cuda")
    assert (effect.evidence, effect.reason) == (
        "3 of 5 in one run (s, a, d); b is 4 instructions away",
        "a dependence through x",
    )


def test_a_run_that_depends_on_an_earlier_member():
    start = START.replace("start(p)", "start(c)")
    lines = [dot("b", "p", GROUP), f"x = {F32} tanh(b)", f"c = {F32} copy(x)", start, dot("a", "p", GROUP), DONE, RESULT]
    effect = effect_of(entry(*lines), "cuda")
    assert (effect.evidence, effect.reason) == (
        "3 of 4 in one run (s, a, d); b is 3 instructions away",
        "a dependence through x",
    )


def test_a_copy_between_members_is_no_gap():
    copied = dot("a", "c", GROUP)
    lines = [START, f"c = {F32} copy(p)", copied, DONE, RESULT]
    assert effect_of(entry(*lines), "cuda").evidence == "s, a, d in one run; a beside s"


def test_a_group_whose_key_the_compiler_took_off():
    inner = f"f {{\n q = {F32} parameter(0)\n ROOT n = {F32} negate(q){GROUP}\n}}\n\n"
    fusion = f"a = {F32} fusion(p), kind=kLoop, calls=f"
    effect = effect_of(
        inner + entry(START, DONE, dot("o", "p"), fusion, f"t = {F32} add(d, a)", f"ROOT r = {F32} add(t, o)"), "cuda"
    )
    assert effect.obeyed is False
    assert effect.evidence == "2 of 3 in one run (s, d); a is 2 instructions away"
    assert effect.reason.startswith("XLA removed the key from a ")


def test_a_group_of_both_passes():
    backward = ', metadata={op_name="jit(f)/transpose(jvp())/mul"}' + GROUP
    lines = [START, dot("a", "p", GROUP), DONE, dot("o", "p"), dot("b", "o", backward), f"ROOT r = {F32} add(d, b)"]
    effect = effect_of(entry(*lines), "tpu")
    assert (effect.obeyed, effect.reason) == (
        False,
        "forward and backward operations share the id; give derived ones another by grad=",
    )


def test_a_group_that_another_operation_is_put_into():
    effect = effect_of(entry(START, dot("o", "p"), dot("a", "o", GROUP), DONE, RESULT), "tpu")
    assert effect.obeyed is False
    assert effect.reason == "the scheduler put other instructions between them"


def test_a_group_of_one():
    effect = effect_of(entry(dot("a", "p", GROUP), f"ROOT r = {F32} tanh(a)"), "tpu")
    assert (effect.obeyed, effect.reason) == (None, "a group of one has nothing to run with")


def test_a_group_without_asynchronous_members():
    lines = [dot("a", "p", GROUP), dot("o", "p"), dot("b", "p", GROUP), f"t = {F32} add(a, b)", f"ROOT r = {F32} add(t, o)"]
    assert effect_of(entry(*lines), "tpu").reason == "XLA dissolves groups without an asynchronous operation"


def test_the_end_of_an_asynchronous_call_is_a_member():
    inner = f"f {{\n q = {F32} parameter(0)\n ROOT n = {F32} negate(q){GROUP}\n}}\n\n"
    call = f"c = (({F32}), {F32}) call-start(p), to_apply=f"
    effect = effect_of(inner + entry(START, call, f"a = {F32} call-done(c)", DONE, RESULT), "cuda")
    assert (effect.obeyed, effect.evidence) == (True, "s, c, a, d in one run; c, a beside s")


STREAM = ', frontend_attributes={_xla_stream_annotation="1"}'
CALLED = f"f {{\n q = {F32} parameter(0)\n ROOT n = {F32} negate(q){STREAM}\n}}\n\n"


def test_a_stream():
    body = entry(
        f"s = (({F32}), {F32}) call-start(p), to_apply=f",
        dot("a", "p"),
        f"d = {F32} call-done(s)",
        RESULT,
    )
    assert effect_of(CALLED + body, "cuda").evidence == "stream 1: s to d, beside a"
    effect = effect_of(entry(f"a = {F32} negate(p){STREAM}", f"ROOT r = {F32} tanh(a)"), "cuda")
    assert effect.obeyed is False
    assert "inlineable='false'" in effect.reason


def test_the_host():
    key = ', frontend_attributes={_xla_compute_type="host"}'
    body = f"f {{\n q = {F32} parameter(0)\n ROOT n = {F32} negate(q){key}\n}}"
    start = (
        f's = (({F32}), {F32}, u32[]) custom-call-start(p), async_execution_thread="host", '
        'custom_call_target="HostExecute", called_computations={f}'
    )
    text = body + ', execution_thread="host"\n\n' + entry(start, f"ROOT d = {F32} custom-call-done(s)")
    effect = effect_of(text, "tpu")
    assert (effect.obeyed, effect.evidence) == (True, "n on the host, run by s")
    effect = effect_of(entry(f"ROOT n = {F32} negate(p){key}"), "tpu")
    assert (effect.obeyed, effect.evidence) == (False, "n on the thread main")


@pytest.mark.parametrize("space", ["", "S(5)"])
def test_a_copy_into_the_hosts_memory(space):
    key = ', frontend_attributes={_xla_buffer_placement="pinned_host"}'
    there = "f32[8,8]{1,0:" + space + "}"
    effect = effect_of(
        entry(
            f"n = {F32} negate(p){key}",
            f"s = ({there}, {F32}, u32[]) copy-start(n)",
            f"d = {there} copy-done(s)",
            f"ROOT b = {F32} copy(d)",
        ),
        "tpu",
    )
    expected = "1 move into the host's memory (S(5)) for 1 operation: s" if space else "no move into"
    assert effect.obeyed is bool(space)
    assert effect.evidence.startswith(expected)


def test_an_operation_without_the_copy_that_another_one_has():
    key = ', frontend_attributes={_xla_buffer_placement="pinned_host"}'
    there = "f32[8,8]{1,0:S(5)}"
    copy = f"s = ({there}, {F32}, u32[]) copy-start(n)", f"d = {there} copy-done(s)"
    effect = effect_of(entry(f"n = {F32} negate(p){key}", f"m = {F32} tanh(p){key}", *copy, f"ROOT b = {F32} copy(m)"), "tpu")
    assert (effect.obeyed, effect.evidence) == (False, "no move into the host's memory (S(5)) for 1 operation: tanh")


def fused(*lines: str) -> str:
    return "\n".join(["f {", f" q = {F32} parameter(0)", *(f" {line}" for line in lines), "}\n\n"])


def test_must_fuse():
    key = ', frontend_attributes={MUST_FUSE="a"}'
    text = fused(f"n = {F32} negate(q){key}", f"ROOT t = {F32} tanh(n){key}") + entry(
        f"ROOT k = {F32} fusion(p), kind=kLoop, calls=f"
    )
    assert effect_of(text, "tpu")[2:4] == (True, "2 operations in k")
    effect = effect_of(entry(f"n = {F32} negate(p){key}", f"ROOT t = {F32} tanh(n){key}"), "tpu")
    assert effect[2:] == (False, "2 operations in 2 instructions: n, t", "n, t not fused")


def test_a_fusion_limit():
    key = ', frontend_attributes={FUSE_LIMIT="true"}'
    call = entry(f"k = {F32} fusion(p), kind=kLoop, calls=f", f"ROOT e = {F32} tanh(k)")
    assert effect_of(fused(f"ROOT n = {F32} negate(q){key}") + call, "tpu").evidence == "n at the end of k"
    effect = effect_of(fused(f"n = {F32} negate(q){key}", f"ROOT t = {F32} tanh(n)") + call, "tpu")
    assert (effect.obeyed, effect.evidence) == (False, "t fused across it, in k")


def test_what_a_compiler_does_not_read_is_not_judged():
    effect = effect_of(
        entry(f"n = {F32} negate(p)" + ', frontend_attributes={FUSE_LIMIT="true"}', f"ROOT t = {F32} tanh(n)"), "cuda"
    )
    assert effect.obeyed is None
    assert effect.reason == "XLA for gpu does not read it; read by tpu"


def test_what_a_compiler_was_not_seen_to_read_is_not_judged():
    key = ', frontend_attributes={combiner_key="a"}'
    effect = effect_of(entry(f"ROOT n = {F32} all-reduce(p), to_apply=f{key}").replace("ENTRY", SUM + "ENTRY"), "tpu")
    assert effect.obeyed is None
    assert effect.reason == "XLA for tpu was not seen to read it; read by gpu"


# --- On this machine's compiler --------------------------------------------------------------------------------------------


def audit(**attrs) -> hlotag.audit.Audit:
    @hlotag.xla_metadata_call(**attrs)
    def inner(x, w):
        return jnp.tanh(x @ w)

    with hlotag.stage():
        return hlotag.audit(jax.jit(lambda x, w: jnp.sin(inner(x, w))), X, W)


def test_a_call_that_stays():
    (effect,) = audit(inlineable="false").effects
    assert effect.obeyed
    assert effect.evidence.endswith("is a call")


def test_keys_that_nobody_reads_have_no_effects():
    assert audit(block="a").effects == ()


@pytest.mark.parametrize("kept", [True, False])
def test_a_loop_that_runs_once(kept):
    with hlotag.stage():
        found = hlotag.audit(lambda x: once(x, kept), X).effects
    assert [effect.obeyed for effect in found] == ([True] if kept else [None])


def once(x, kept):
    with hlotag.tagged({"skip-simplify-while-loops_trip-count-one": str(kept).lower()}):
        return jax.lax.fori_loop(0, 1, lambda _, y: jnp.sin(y), x)


# --- Views -----------------------------------------------------------------------------------------------------------------


def test_a_condition_and_the_summary():
    key = ', frontend_attributes={MUST_FUSE="a"}'
    module = HloModule(_compat.hlo_from_text(HEAD + entry(f"n = {F32} negate(p){key}", f"ROOT t = {F32} tanh(n){key}")))
    found = of_modules(module, module, platform="tpu")
    line = "MUST_FUSE=a: not obeyed; 2 operations in 2 instructions: n, t; n, t not fused"
    assert Condition.parse("effect:MUST_FUSE").violations(found) == [line]
    assert Condition.parse("effect:FUSE_LIMIT").violations(found) == []
    assert Condition.parse("effect").violations(of_modules(module, module, platform="cuda")) == []
    (problem,) = found.report.problems
    assert (problem.kind, problem.tag, problem.count) == ("not obeyed", "MUST_FUSE=a", 2)
    assert problem.why == "2 operations in 2 instructions: n, t: n, t not fused."
    assert "2 x not obeyed  MUST_FUSE=a on negate, tanh" in found.summary(200)
    assert "Effects" not in found.summary(200)


def test_groups_of_one_line_with_one_cause_are_one_problem():
    def group(number: int, done: str = "p") -> list[str]:
        own = GROUP.replace("7", str(number))
        parts = [dot(f"a.{number}", done, own), f"x.{number} = {F32} tanh(a.{number})", dot(f"b.{number}", f"x.{number}", own)]
        return parts

    lines = [*group(1), *group(2, "b.1"), f"ROOT r = {F32} add(b.2, p)"]
    module = HloModule(_compat.hlo_from_text(HEAD + entry(*lines)))
    (problem,) = of_modules(module, module, platform="cuda").report.problems
    assert (problem.tag, problem.count) == ("_scheduling_group_id=1, 2", 4)
    assert problem.why == "Of 1: 1 of 2 in one run (a.1); b.1 is 2 instructions away: a dependence through x.1."
    assert problem.effect == "The compiler did not do what the key asks for: Operations to schedule as one group."
