# SPDX-License-Identifier: Apache-2.0
"""What tags change in XLA's compilers for GPU and TPU: the rows of docs/effects.md, a small program for each key."""

import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from effect_programs import (
    Program,
    broken_group,
    called,
    gather_after_its_product,
    gather_and_product,
    gradient,
    group,
    group_with_stream,
    host_with_two_results,
    offloaded,
    offloaded_at_once,
    often,
    once,
    pointwise,
    product_and_gradient,
    sharded_layers,
    sums,
    two_calls_in_a_row,
)
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import FOUR, KINDS, ONE, Compiler, block, is_here, mapped
from hlotag.audits import Audit, Effect, Verdict
from hlotag.tagging import keys

PLATFORM = os.environ["HLOTAG_COMPILERS"]
X = np.ones((512, 512), np.float32)
LARGE = np.ones((2048, 2048), np.float32)

CHANGED, SAME, REFUSED, UNREAD = Verdict.CHANGED, Verdict.SAME, Verdict.REFUSED, Verdict.UNREAD
# With jax 0.10.2, the compiler makes one fusion of both calls.
ONE_ID = (REFUSED, "operations in 2 instructions") if jax.__version_info__ >= (0, 12) else (CHANGED, "operations in ")


WEIGHTS = np.ones((3, 512, 512), np.float32)
HALF, LONG = np.ones((1024, 1024), jnp.bfloat16), np.ones((2048, 1024), jnp.bfloat16)
NOT_READ, NOT_SEEN = "does not read it", "was not seen to read it"

# By name: devices, the program, its arguments, and by compiler and key the verdict, with a part of what is said.
ROWS: dict[str, tuple[int, Program, tuple[Any, ...], dict[str, dict[str, tuple[Verdict, str]]]]] = {
    "group": (
        FOUR,
        group,
        (LARGE,) * 4,
        {
            "gpu": {"_scheduling_group_id=7": (REFUSED, "nothing beside all")},
            "tpu": {"_scheduling_group_id=7": (CHANGED, "beside async-collective-start")},
        },
    ),
    "group with a stream": (
        FOUR,
        group_with_stream,
        (LARGE,) * 4,
        {
            "gpu": {
                "_scheduling_group_id=7": (CHANGED, "call-start beside all-gather-start"),
                "_xla_stream_annotation=1": (CHANGED, "all-gather-start beside call-start on stream 1"),
                "inlineable=false": (CHANGED, "is a call"),
            },
            "tpu": {
                "_scheduling_group_id=7": (CHANGED, "beside async-collective-start"),
                "_xla_stream_annotation=1": (UNREAD, NOT_READ),
            },
        },
    ),
    "stream": (
        ONE,
        called(_xla_stream_annotation="1", inlineable="false"),
        (X, X),
        {
            "gpu": {"_xla_stream_annotation=1": (CHANGED, "gemm_fusion_dot.1 beside call-start")},
            "tpu": {"_xla_stream_annotation=1": (UNREAD, NOT_READ)},
        },
    ),
    "stream of a call that is inlined": (
        ONE,
        called(_xla_stream_annotation="1"),
        (X, X),
        {
            "gpu": {"_xla_stream_annotation=1": (SAME, "inlineable='false'")},
            "tpu": {"_xla_stream_annotation=1": (UNREAD, NOT_READ)},
        },
    ),
    "host": (
        ONE,
        pointwise(_xla_compute_type="host"),
        (X,),
        {name: {"_xla_compute_type=host": (CHANGED, "on the host, run by host-call")} for name in ("gpu", "tpu")},
    ),
    "offload": (
        ONE,
        offloaded,
        (X, WEIGHTS),
        {
            name: {
                "_xla_buffer_placement=pinned_host": (CHANGED, "1 move of 1.05 MB into the host's memory (S(5))"),
                "_xla_buffer_placement=device": (CHANGED, "1 move of 1.05 MB out of the host's memory (S(5))"),
            }
            for name in ("gpu", "tpu")
        },
    ),
    "must fuse": (
        ONE,
        called(MUST_FUSE="a"),
        (X, X),
        {"gpu": {"MUST_FUSE=a": (UNREAD, NOT_READ)}, "tpu": {"MUST_FUSE=a": (SAME, "3 operations in fusion")}},
    ),
    "must fuse, one id in both passes": (
        ONE,
        gradient({"MUST_FUSE": "a"}, "same"),
        (X,),
        {"gpu": {"MUST_FUSE=a": (UNREAD, NOT_READ)}, "tpu": {"MUST_FUSE=a": ONE_ID}},
    ),
    "must fuse, an id for each pass": (
        ONE,
        gradient({"MUST_FUSE": "a"}, {"MUST_FUSE": "b"}),
        (X,),
        {
            "gpu": {f"MUST_FUSE={name}": (UNREAD, NOT_READ) for name in "ab"},
            "tpu": {"MUST_FUSE=a": (CHANGED, "operations in "), "MUST_FUSE=b": (SAME, "operations in ")},
        },
    ),
    "fusion limit": (
        ONE,
        pointwise(FUSE_LIMIT="true"),
        (X,),
        {"gpu": {"FUSE_LIMIT=true": (UNREAD, NOT_READ)}, "tpu": {"FUSE_LIMIT=true": (CHANGED, "at the end of sine_tanh_fusion")}},
    ),
    "call": (
        ONE,
        called(inlineable="false"),
        (X, X),
        {"gpu": {"inlineable=false": (CHANGED, "is a call")}, "tpu": {"inlineable=false": (UNREAD, NOT_SEEN)}},
    ),
    "combiner": (
        FOUR,
        sums,
        (X, X),
        {
            "gpu": {"combiner_key=a": (CHANGED, "combined with none but its own")},
            "tpu": {"combiner_key=a": (UNREAD, "was not seen to read it; read by gpu")},
        },
    ),
    "loop that runs once": (
        ONE,
        once,
        (X,),
        {
            name: {"skip-simplify-while-loops_trip-count-one=true": (CHANGED, "is a while; without the tags: no while")}
            for name in ("gpu", "tpu")
        },
    ),
    "unrolled loop": (
        ONE,
        often,
        (X,),
        {
            "gpu": {"_xla_loop_unroll_strategy=full": (UNREAD, NOT_SEEN)},
            "tpu": {"_xla_loop_unroll_strategy=full": (UNREAD, NOT_READ)},
        },
    ),
    **{
        f"gather and product, {n}": (
            FOUR,
            gather_and_product,
            (np.ones((n, n), np.float32),) * 3,
            {
                "gpu": {"_scheduling_group_id=7": (REFUSED, "nothing beside all")},
                "tpu": {"_scheduling_group_id=7": (CHANGED, "beside async-collective-start")},
            },
        )
        for n in (512, 1024)
    },
    "product and gradient": (
        ONE,
        product_and_gradient,
        (np.ones((1024, 1024), np.float32),) * 2,
        {name: {f"_scheduling_group_id={n}": (SAME, "") for n in (1, 2)} for name in ("gpu", "tpu")},
    ),
    "sharded layers": (
        FOUR,
        sharded_layers,
        (HALF, HALF, HALF, LONG),
        {
            "tpu": {
                "_scheduling_group_id=0": (SAME, " beside async-collective-start"),
                "_scheduling_group_id=1": (SAME, "async-collective-done.1 in one run; fusion."),
            }
        },
    ),
    "gather after its product": (
        FOUR,
        gather_after_its_product,
        (HALF, HALF, LONG),
        {"gpu": {"_scheduling_group_id=7": (REFUSED, "nothing beside all")}},
    ),
    "stream with nothing beside it": (
        ONE,
        two_calls_in_a_row,
        (WEIGHTS[:2], X),
        {"gpu": {"_xla_stream_annotation=1": (SAME, "nothing beside call-start, call-start.1")}},
    ),
    "host, two results": (
        ONE,
        host_with_two_results,
        (X, X[:256], X),
        {name: {"_xla_compute_type=host": (CHANGED, "on the host, run by host-call")} for name in ("gpu", "tpu")},
    ),
    "offload that comes back at once": (
        ONE,
        offloaded_at_once,
        (X, WEIGHTS),
        {
            name: {
                "_xla_buffer_placement=pinned_host": (CHANGED, "come back at once: nothing computes between copy-done"),
                "_xla_buffer_placement=device": (CHANGED, "out of the host's memory (S(5))"),
            }
            for name in ("gpu", "tpu")
        },
    ),
}


@pytest.fixture(scope="module")
def compilers() -> list[Compiler]:
    assert is_here(PLATFORM), "make test-compilers"
    return [make() for make in KINDS[PLATFORM].values()]


def audited(compiler: Compiler, program: Program, *arguments: Any) -> Audit:
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage():
        return hlotag.audit(compiler.lower(program, *arguments))


def effects(compiler: Compiler, program: Program, *arguments: Any) -> dict[str, Effect]:
    return {f"{effect.key}={effect.value}": effect for effect in audited(compiler, program, *arguments).effects}


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if PLATFORM in row[-1]])
def test_effect(name, compilers):
    devices, program, arguments, expected = ROWS[name]
    audit = audited(compilers[devices], program, *arguments)
    found = {f"{effect.key}={effect.value}": effect for effect in audit.effects}
    for key, (verdict, said) in expected[PLATFORM].items():
        assert found[key].verdict == verdict, found[key]
        assert said in str(found[key])
    done = {key for key, (verdict, _) in expected[PLATFORM].items() if verdict == CHANGED}
    assert not [tag for tag in audit.lost if f"{tag.key}={tag.value}" in done]
    assert "report this" not in audit.summary()


def test_a_broken_group(compilers):
    if PLATFORM == "tpu":
        with pytest.raises(jax.errors.JaxRuntimeError, match="annotation groups with gaps"):
            effects(compilers[FOUR], broken_group, *(LARGE,) * 4)
    else:
        effect = effects(compilers[FOUR], broken_group, *(LARGE,) * 4)["_scheduling_group_id=7"]
        assert effect.verdict == REFUSED
        assert effect.evidence.startswith("2 of 3 in one run")


def test_groups_that_the_compiler_combines(compilers):
    """Docs/scheduling_groups.md: gathers of two groups need a combiner key each."""

    def run(a, b, x, *, key):
        def tag(value, group):
            return hlotag.tag(value, {"_scheduling_group_id": group} | ({"combiner_key": group} if key else {}))

        first, y = tag(jax.lax.all_gather(a, "i", tiled=True), "10"), tag(x @ x.T, "10")
        second, z = tag(jax.lax.all_gather(b, "i", tiled=True), "11"), tag(jnp.tanh(y) @ first[:256], "11")
        return (z @ second).sum()[None]

    def compiled(key):
        return effects(compilers[FOUR], mapped(partial(run, key=key), (P("i"),) * 3, P("i")), HALF, HALF, HALF)

    if PLATFORM == "gpu":
        with pytest.raises(jax.errors.JaxRuntimeError, match="annotation: 10,11"):
            compiled(key=False)
    assert compiled(key=True)


def test_products_that_the_compiler_merges(compilers):
    """H100's compiler makes one product of two that share an operand."""

    def gated(x, gate, up):
        left = hlotag.tag(jnp.einsum("btd,df->btf", x, gate), {"part": "gate"})
        return (jax.nn.silu(left) * hlotag.tag(jnp.einsum("btd,df->btf", x, up), {"part": "up"})).astype(jnp.float32).mean()

    operands = [np.ones(shape, jnp.bfloat16) for shape in ((4, 128, 256), (256, 704), (256, 704))]
    audit = audited(compilers[ONE], jax.grad(gated, (1, 2)), *operands)
    products = [tag for tag in audit.tags if tag.op.name == "stablehlo.dot_general"]
    assert len(products) == 4
    if PLATFORM == "gpu":
        opcodes = {name.partition(".")[0] for tag in products for name in tag.op.instructions}
        assert opcodes == {"dot", "reduce"}
        assert sorted((tag.value, str(tag.state)) for tag in products) == [
            *(("gate", "restored"), ("gate", "restored"), ("up", "lost"), ("up", "lost"))
        ]


@pytest.mark.parametrize("compiler", [True, False])
def test_tags_of_people_keep_collectives_apart(compiler, compilers, monkeypatch):
    """TPU's compiler combines collectives only if their tags are equal."""
    monkeypatch.setattr(keys, "_registered", {})
    hlotag.register_key("layer", compiler=compiler)

    def run(x):
        parts = []
        for layer in range(6):
            with block(layer=str(layer)):
                parts.append(jax.lax.psum(jnp.sin(x * (layer + 1.5)), "i"))
        return parts

    audit = audited(compilers[FOUR], mapped(run, P("i"), [P()] * 6), X)
    if PLATFORM == "gpu" or not compiler:
        assert audit.apart == ()
    else:
        (apart,) = audit.apart
        assert (apart.keys, apart.opcode, apart.separate, apart.combined) == (("layer",), "all-reduce", 6, 1)
        assert "`layer` keeps 6 all-reduces apart that XLA would combine into 1 instruction." in str(audit.report.problems[0])
