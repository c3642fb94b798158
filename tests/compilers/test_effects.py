# SPDX-License-Identifier: Apache-2.0
"""What tags change in XLA's compilers for GPU and TPU: the rows of docs/ahead_of_time.md, a small program for each key."""

import re
from functools import partial
from typing import Any

import effect_programs as programs
import jax
import jax.numpy as jnp
import key_probes
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import FOUR, KINDS, ONE, Compiler, block, is_here, mapped
from conftest import PLATFORM
from hlotag.audits import Audit, Effect, Verdict
from hlotag.tagging import keys

SQUARE = {size: np.ones((size, size), np.float32) for size in (512, 1024, 2048)}
X = SQUARE[512]
WEIGHTS = np.ones((3, 512, 512), np.float32)
HALF, LONG = np.ones((1024, 1024), jnp.bfloat16), np.ones((2048, 1024), jnp.bfloat16)
CHANGED, SAME, REFUSED, UNREAD = Verdict.CHANGED, Verdict.SAME, Verdict.REFUSED, Verdict.UNREAD
# With jax 0.12, the compiler for v5e fuses the forward pass alike without the tags; with 0.10.2 it does not.
_IDS_OF_PASSES = {
    "MUST_FUSE=a": (SAME if jax.__version_info__ >= (0, 12) else CHANGED, "operations in "),
    "MUST_FUSE=b": (SAME, "operations in "),
}
# With jax 0.10.2, the compiler makes one fusion of both calls.
ONE_ID = (REFUSED, "operations in 2 instructions") if jax.__version_info__ >= (0, 12) else (CHANGED, "operations in ")

NOT_READ, NOT_SEEN = "does not read it", "was not seen to read it"
Expected = dict[str, tuple[Verdict, str]]


def row(devices: int, program: Any, *arguments: Any, gpu: Expected | None = None, tpu: Expected | None = None) -> tuple:
    """By compiler and key the verdict, with a part of what is said."""
    expected = {"gpu": gpu, "tpu": tpu}
    return devices, program, arguments, {name: found for name, found in expected.items() if found is not None}


def of_both(devices: int, program: Any, *arguments: Any, expected: Expected) -> tuple:
    return row(devices, program, *arguments, gpu=expected, tpu=expected)


ALONE = {"_scheduling_group_id=7": (REFUSED, "nothing during all")}
BESIDE = {"_scheduling_group_id=7": (CHANGED, "during async-collective-start")}
NO_STREAM = {"_xla_stream_annotation=1": (UNREAD, NOT_READ)}
NO_FUSING = {"MUST_FUSE=a": (UNREAD, NOT_READ)}
ON_THE_HOST = {"_xla_compute_type=host": (CHANGED, "on the host, run by host-call")}
OUT = {"_xla_buffer_placement=device": (CHANGED, "out of the host's memory (S(5))")}
STREAM, FUSED = partial(key_probes.fused, _xla_stream_annotation="1"), partial(key_probes.fused, MUST_FUSE="a")

ROWS = {
    "group": row(FOUR, partial(key_probes.group, **programs.GROUP), *[SQUARE[2048]] * 4, gpu=ALONE, tpu=BESIDE),
    "group with a stream": row(
        *(FOUR, programs.group_with_stream, *[SQUARE[2048]] * 4),
        gpu={
            "_scheduling_group_id=7": (CHANGED, "call-start during all-gather-start"),
            "_xla_stream_annotation=1": (CHANGED, "all-gather-start during call-start on stream 1"),
            "inlineable=false": (CHANGED, "is a call"),
        },
        tpu=BESIDE | NO_STREAM,
    ),
    "stream": row(
        *(ONE, partial(STREAM, inlineable="false"), X, X),
        gpu={"_xla_stream_annotation=1": (CHANGED, "gemm_fusion_dot.1 during call-start")},
        tpu=NO_STREAM,
    ),
    "stream of a call that is inlined": row(
        *(ONE, STREAM, X, X), gpu={"_xla_stream_annotation=1": (SAME, "inlineable='false'")}, tpu=NO_STREAM
    ),
    "host": of_both(ONE, partial(key_probes.pointwise, _xla_compute_type="host"), X, expected=ON_THE_HOST),
    "offload": of_both(
        *(ONE, programs.offloaded, X, WEIGHTS),
        expected={
            f"_xla_buffer_placement={place}": (CHANGED, f"1 move of 1.0 MiB {way} the host's memory (S(5))")
            for place, way in (("pinned_host", "into"), ("device", "out of"))
        },
    ),
    "must fuse": row(ONE, FUSED, X, X, gpu=NO_FUSING, tpu={"MUST_FUSE=a": (SAME, "3 operations in fusion")}),
    "must fuse, one id in both passes": row(
        *(ONE, programs.gradient({"MUST_FUSE": "a"}, "same"), X), gpu=NO_FUSING, tpu={"MUST_FUSE=a": ONE_ID}
    ),
    "must fuse, an id for each pass": row(
        *(ONE, programs.gradient({"MUST_FUSE": "a"}, {"MUST_FUSE": "b"}), X),
        gpu=NO_FUSING | {"MUST_FUSE=b": (UNREAD, NOT_READ)},
        tpu=_IDS_OF_PASSES,
    ),
    "fusion limit": row(
        *(ONE, partial(key_probes.pointwise, FUSE_LIMIT="true"), X),
        gpu={"FUSE_LIMIT=true": (UNREAD, NOT_READ)},
        tpu={"FUSE_LIMIT=true": (CHANGED, "at the end of sine_tanh_fusion")},
    ),
    "call": row(
        *(ONE, partial(key_probes.fused, inlineable="false"), X, X),
        gpu={"inlineable=false": (CHANGED, "is a call")},
        tpu={"inlineable=false": (UNREAD, NOT_SEEN)},
    ),
    "combiner": row(
        *(FOUR, partial(key_probes.sums, combiner_key="a"), X, X),
        gpu={"combiner_key=a": (CHANGED, "combined with none but its own")},
        tpu={"combiner_key=a": (UNREAD, "was not seen to read it; read by gpu")},
    ),
    "loop that runs once": of_both(
        *(ONE, partial(key_probes.loop, count=1, **{"skip-simplify-while-loops_trip-count-one": "true"}), X, X),
        expected={"skip-simplify-while-loops_trip-count-one=true": (CHANGED, "is a while; without the tags: no while")},
    ),
    "unrolled loop": row(
        *(ONE, partial(key_probes.loop, _xla_loop_unroll_strategy="full"), X, X),
        gpu={"_xla_loop_unroll_strategy=full": (UNREAD, NOT_SEEN)},
        tpu={"_xla_loop_unroll_strategy=full": (UNREAD, NOT_READ)},
    ),
    **{
        f"gather and product, {size}": row(FOUR, programs.gather_and_product, *[SQUARE[size]] * 3, gpu=ALONE, tpu=BESIDE)
        for size in (512, 1024)
    },
    "product and gradient": of_both(
        *(ONE, programs.product_and_gradient, *[SQUARE[1024]] * 2),
        expected={f"_scheduling_group_id={n}": (SAME, "") for n in (1, 2)},
    ),
    "sharded layers": row(
        *(FOUR, programs.sharded_layers, HALF, HALF, HALF, LONG),
        tpu={
            "_scheduling_group_id=0": (SAME, " during async-collective-start"),
            "_scheduling_group_id=1": (SAME, "async-collective-done.1 contiguous; fusion."),
        },
    ),
    "gather after its product": row(FOUR, programs.gather_after_its_product, HALF, HALF, LONG, gpu=ALONE),
    "stream with nothing beside it": row(
        *(ONE, programs.two_calls_in_a_row, WEIGHTS[:2], X),
        gpu={"_xla_stream_annotation=1": (SAME, "nothing during call-start, call-start.1")},
    ),
    "host, two results": of_both(ONE, programs.host_with_two_results, X, X[:256], X, expected=ON_THE_HOST),
    "offload that comes back at once": of_both(
        *(ONE, programs.offloaded_at_once, X, WEIGHTS),
        expected=OUT | {"_xla_buffer_placement=pinned_host": (CHANGED, "come back at once: nothing computes between copy-done")},
    ),
}


@pytest.fixture(scope="module")
def compilers() -> list[Compiler]:
    assert is_here(PLATFORM), "make test-compilers"
    return [make() for make in KINDS[PLATFORM].values()]


def audited(compiler: Compiler, program: Any, *arguments: Any) -> Audit:
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    with hlotag.stage():
        return hlotag.audit(compiler.lower(program, *arguments))


def effects(compiler: Compiler, program: Any, *arguments: Any) -> dict[str, Effect]:
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


def test_an_offload_says_whether_it_saved_memory(compilers):
    """Three activations of 512 x 512 floats go to the host. v5e keeps them in on-chip memory without the tags."""
    found = {
        program.__name__: str(effects(compilers[ONE], program, X, WEIGHTS)["_xla_buffer_placement=pinned_host"])
        for program in (programs.offloaded, programs.offloaded_at_once)
    }
    for text in found.values():
        tagged, _, untagged = text.partition("without the tags")
        assert "3.0 MiB on the host" in tagged or "2.0 MiB on the host" in tagged
        assert "0 B on the host" in untagged
        before, after = (_bytes(part) for part in (untagged, tagged))
        assert ("the device needs" in text) == (after >= before)
    if jax.__version_info__ >= (0, 12):
        assert ("the device needs" in found["offloaded"]) == (PLATFORM == "tpu")
        assert "iB more than without the tags" in found["offloaded_at_once"]


def _bytes(text):
    """The temporary memory of the device that an effect names."""
    number, unit = re.findall(r"([\d.]+) (B|KiB|MiB) of temporary memory on the device", text)[0]
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]


def test_a_broken_group(compilers):
    found = partial(effects, compilers[FOUR], programs.broken_group, *[SQUARE[2048]] * 4)
    if PLATFORM == "tpu":
        with pytest.raises(jax.errors.JaxRuntimeError, match="annotation groups with gaps"):
            found()
    else:
        effect = found()["_scheduling_group_id=7"]
        assert effect.verdict == REFUSED
        assert effect.evidence.startswith("2 of 3 contiguous")


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
        assert opcodes == {"dot"}
        assert sorted((tag.value, str(tag.state)) for tag in products) == [
            *(("gate", "kept"), ("gate", "kept"), ("up", "lost"), ("up", "lost"))
        ]


@pytest.mark.parametrize("compiler", [None, False, True])
def test_tags_of_people_keep_collectives_apart_only_if_xla_sees_them(compiler, compilers, monkeypatch):
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
    sums = {name for tag in audit.tags if tag.op.name == "stablehlo.all_reduce" for name in tag.op.instructions}
    assert len(sums) == (6 if compiler and PLATFORM == "tpu" else 1) and not audit.lost
