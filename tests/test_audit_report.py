# SPDX-License-Identifier: Apache-2.0
"""What an audit reports: the sentence, and the problems that terminal, page, JSON and command show."""

import re
import warnings

import jax
import jax.numpy as jnp
import pytest

import hlotag
from audits import made_up
from hlotag.audits import Audit, Op, Tag, TagState
from hlotag.cli import audit as command
from hlotag.cli.condition import Condition
from hlotag.errors import Diagnostic
from hlotag.tagging.tags import Dropped
from programs import W as X  # Square.

LAYERS = 4


def layers(ws, x):
    for number in range(LAYERS):
        with jax.named_scope(f"layer_{number}"), hlotag.tagged({"block": "mlp"}):
            x = jnp.tanh(x @ ws[number])
    return x.sum()


def ops_of(*states: TagState, by: str = "algsimp", line: int = 7, flops: int = 0, **fields) -> list[Tag]:
    of = {"file": "/x/model.py", "line": line, "type": "f32[8,8]", "flops": flops}
    ops = [Op(number, "stablehlo.dot_general", f"layer_{number}", **of) for number in range(len(states))]
    return [Tag("k", "v", op, state, by=by, **fields) for op, state in zip(ops, states, strict=True)]


def audit_of(tags: list[Tag], **fields) -> Audit:
    return Audit("m", [tag.op for tag in tags], tags, **fields)


LOST, KEPT = TagState.LOST, TagState.KEPT
WELL = "on an instruction or went away with their operation"


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        ((), "No operation has a tag."),
        ((KEPT,) * 3, f"All 3 tags are {WELL}."),
        ((LOST, LOST, KEPT), f"2 of 3 tags need attention; all others are {WELL}."),
        (
            (LOST, TagState.UNKNOWN, KEPT),
            f"1 of 3 tags needs attention; all others are {WELL}, but for 1 that the modules do not tell of.",
        ),
    ],
)
def test_sentence(states, sentence):
    assert audit_of(ops_of(*states)).report.sentence == sentence


def test_an_entry_of_a_library_that_xla_drops_is_no_problem():
    lost, kept = ops_of(LOST, KEPT)
    audit = audit_of([lost._replace(key="xla_metadata_payload"), kept])
    assert audit.report.problems == () and audit.lost == [audit.tags[0]]
    assert (
        audit.report.sentence == f"1 of 2 tags are {WELL}, but for 1 that libraries wrote and XLA dropped (xla_metadata_payload)."
    )
    assert [len(Condition.parse(text).violations(audit)) for text in ("lost", "attention")] == [1, 0]
    assert audit.keys == ["k"] and audit.costs_by("xla_metadata_payload") == []  # No table by default.


READ_LATE = "_scheduling_group_id"


@pytest.mark.parametrize(
    ("key", "step", "audit", "words"),
    [
        (
            "k",
            {},
            {"hlo_pass": False},
            r"pass algsimp rewrote .* its tag. Profiles .* 4 operations \(2 Mflop\) without k. .*enable",
        ),
        ("k", {"by": ""}, {}, "XLA rewrote .* its tag. xla_passes=True, or --xla-passes, names the pass."),
        ("k", {"why": "the instruction has k=w"}, {"hlo_pass": True}, "; the instruction has k=w. .* one value for a key"),
        (READ_LATE, {}, {"hlo_pass": True, "platform": "cuda"}, f"XLA does not see {READ_LATE}.* XLA reads this key before"),
        (READ_LATE, {}, {"hlo_pass": True, "platform": "cpu"}, "Profiles and dumps show .* Please report this"),
    ],
)
def test_lost_tags_of_one_line_are_one_problem_in_words(key, step, audit, words):
    tags = [tag._replace(key=key) for tag in ops_of(*[LOST] * LAYERS, flops=500_000, **step)]
    (problem,) = [p for p in audit_of(tags, **audit).report.problems if p.kind == "lost"]
    assert (problem.count, problem.source, problem.tag, problem.on) == (4, "model.py:7", f"{key}=v", "dot_general f32[8,8]")
    assert re.search(words, str(problem)) and problem.tags == (0, 1, 2, 3)


def test_lines_and_causes_are_apart_and_heavy_operations_first():
    light, heavy = ops_of(LOST, flops=10), ops_of(LOST, flops=1000, line=9)
    others = ops_of(LOST, by="dce", flops=100)
    found = audit_of([*light, *others, *heavy]).report.problems
    assert [(problem.line, problem.by) for problem in found] == [(9, "algsimp"), (7, "dce"), (7, "algsimp")]


def test_the_command_groups_what_made_it_fail(capsys):
    condition = Condition.parse("lost")
    assert command._report(audit_of(ops_of(*[LOST] * LAYERS)), [condition]) == 1
    said = capsys.readouterr().err
    assert "--fail-if lost holds:\n  4 x k=v on stablehlo.dot_general (model.py:7): lost\n" in said


def test_what_no_tag_stands_for_is_a_problem_too():
    tags = ops_of(KEPT)
    reports = [Diagnostic("remark", "rule 1 matched nothing: {}"), Diagnostic("warning", "a gap", file="/x/model.py", line=4)]
    audit = audit_of(tags, dropped=[Dropped((("k", "w"),), "/x/model.py", 3)], reports=reports)
    found = {problem.kind: problem for problem in audit.report.problems}
    assert list(found) == ["no operation", "unmatched rule", "warning"]
    assert found["no operation"].source == "model.py:3" and found["warning"].source == "model.py:4"
    assert audit.report.sentence.endswith(" 3 other problems.")


@pytest.mark.parametrize(
    ("key", "platform", "words"),
    [
        ("MUST_FUSE", "cuda", "XLA for cuda does not read this key; read by: tpu"),
        ("_sheduling_group_id", "cuda", "The key is not known to hlotag."),
        *((key, "cpu", None) for key in ("_scheduling_group_id", "inlineable", "block")),
        ("_scheduling_group_id", "cuda", None),
    ],
)
def test_a_key_that_nobody_reads(key, platform, words):
    tags = [tag._replace(key=key) for tag in ops_of(KEPT, KEPT)]
    found = audit_of(tags, platform=platform).report.problems
    assert [(problem.kind, problem.count) for problem in found] == ([("unread key", 2)] if words else [])
    assert not words or found[0].why.startswith(words)


def test_operations_have_types_work_and_primals():
    with hlotag.stage(hlo=False):
        audit = hlotag.audit(jax.grad(layers), [jnp.ones((8, 16)), *[jnp.ones((16, 16))] * 3], jnp.ones((4, 8)))
    dots = [tag.op for tag in audit.tags if tag.op.name == "stablehlo.dot_general"]
    forward = {op.scope: op for op in dots if op.phase == "forward"}
    assert (forward["layer_0"].type, forward["layer_0"].flops, forward["layer_0"].bytes) == ("f32[4,16]", 1024, 256)
    backward = [op for op in dots if op.phase == "backward"]
    assert backward and all(op.derived_from == (forward[op.scope].id,) for op in backward)
    assert any(op.fusions for op in audit.ops)
    assert audit.hlo_pass is False


def test_operations_of_a_shared_function_have_the_callers_line():
    def f(x):
        for _ in range(2):
            with hlotag.tagged({"k": "v"}):
                x = jnp.where(x > 0, x, jnp.float32(1.0)) * jnp.tril(x)
        return x

    with hlotag.stage():
        audit = hlotag.audit(f, jnp.ones((4, 4)))
    inner = [tag.op for tag in audit.tags if tag.op.function != "main"]
    assert inner and {op.source.partition(":")[0] for op in inner} == {"test_audit_report.py"}


def test_a_report_of_many_tags_is_short():
    audit = made_up(4000)
    assert sum(problem.count for problem in audit.report.problems) == len(audit.lost)
    assert len(audit.summary(100).splitlines()) < 80


def test_an_audit_without_the_stage_says_so_first():
    def f(x):
        return jnp.sin(hlotag.tag(x @ x, {"k": "v"}, grad={"k": "g"})).sum()

    with warnings.catch_warnings(action="ignore"):
        off = hlotag.audit(jax.grad(f), X)
    with hlotag.stage():
        on = hlotag.audit(jax.grad(f), X)
    assert off.summary(200).splitlines()[1].startswith("hlotag is off:") and off.is_off
    assert not on.is_off and "is off" not in on.report.sentence
