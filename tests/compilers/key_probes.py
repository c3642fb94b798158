# SPDX-License-Identifier: Apache-2.0
"""Which keys of the catalogue does a compiler read? For each a program of which a reader of the key makes something else.

python tests/compilers/key_probes.py    # docs/ahead_of_time.md; takes the packages of make test-compilers, and minutes
python tests/compilers/key_probes.py --late    # the keys that are read after PRE_SCHEDULER, by compiler

The same program is compiled with the key and with one that nobody reads. What differs, or fails with one of them only, shows a
reader; that nothing differs shows none, not that there is none.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hlo_text import without_names
from jax.experimental import pallas as pl
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlotag
from compilers import FOUR, KINDS, ONE, Compiler, block, mapped
from hlotag import _compat
from hlotag.audits.effects import JUDGES
from hlotag.hlo import HloModule
from hlotag.tagging import keys

PLATFORM = os.environ.get("HLOTAG_COMPILERS", "")
SIZE, LARGE = 512, 2048
LAYERS = P("i"), P(), P("i"), P("i")


def pointwise(x, **attrs):
    y = jnp.sin(x)
    with block(**attrs):
        z = jnp.tanh(y)
    return jnp.exp(z) + 1


def placed(x, **attrs):
    with block(**attrs):
        y = jax.ffi.ffi_call("annotate_device_placement", jax.ShapeDtypeStruct(x.shape, x.dtype), has_side_effect=True)(x)
    return jnp.sin(y)


def layers(x, first, second, third, *, gather=None, product=None, multiply=jnp.matmul, kernel=None):
    """Two layers and a projection, with sharded weights: the second one's are gathered while the first one computes."""

    def run(x, first, second, third):
        with block(**(gather or {})):
            gathered = jax.lax.all_gather(second, "i", tiled=True)
        with block(**(product or {})):
            hidden = multiply(x, first)
        last = jax.lax.all_gather(third, "i", tiled=True)
        out = jnp.tanh(jnp.tanh(hidden) @ gathered) @ last
        return out if kernel is None else out + kernel(hidden)

    return mapped(run, LAYERS, P("i"))(x, first, second, third)


def group(*weights, **attrs):
    return layers(*weights, gather=attrs, product=attrs)


def costly(*weights, **attrs):
    return layers(*weights, gather=attrs)


def kernel(x):
    """A custom call that the backend has."""
    x = x[:128, :128]
    if PLATFORM != "tpu":
        return cholesky(x)

    def double(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2.0

    return pl.pallas_call(double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def cholesky(x, **options):
    """JAX's own custom call, in a form that may be sharded; TPU's compiler has none and refuses it, when it has sharded it."""
    out = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct(x.shape[:-2], np.int32)
    if PLATFORM == "cpu":
        return jax.ffi.ffi_call("lapack_spotrf_ffi", out, **options)(x, uplo=np.uint8(ord("L")))[0]
    return jax.ffi.ffi_call("cusolver_potrf_ffi", out, **options)(x, lower=True)[0]


def hinted(*weights, **attrs):
    def two(x):
        with block(**attrs):
            first = kernel(x)
        return first.sum()

    return layers(*weights, kernel=two)


def prioritized(*weights, **attrs):
    def two(x):
        with block(scheduler_hint="force_delay"):
            with block(**attrs):
                first = kernel(x)
            with block(**dict.fromkeys(attrs, "9")):
                second = kernel(x + 1)
        return jnp.sin(first).sum() + second.sum()

    return layers(*weights, kernel=two)


def calls(x, w, **attrs):
    """A call that no compiler makes one fusion of, beside a product."""

    @hlotag.xla_metadata_call(**attrs)
    def inner(x, w):
        return jnp.tanh(jnp.sin(x @ w) @ w) @ w

    y = jnp.sin(x)
    return inner(y, w) + jnp.cos(y @ y)


def fused(x, w, **attrs):
    @hlotag.xla_metadata_call(**attrs)
    def inner(x, w):
        return jnp.tanh(x @ w)

    y = jnp.sin(x)
    return inner(y, w) + jnp.cos(y @ y)


def product(x, w, **attrs):
    with block(**attrs):
        return jnp.sin(x) @ w


def partitioned(x, w, **attrs):
    def sharded(value, *places):
        return jax.lax.with_sharding_constraint(value, NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P(*places)))

    x, w = sharded(x, "i"), sharded(w, None, "i")
    with block(**attrs):
        y = x @ w
    return sharded(y, None, "i")


def batched(x, **attrs):
    mesh = Mesh(np.array(jax.devices()), ("i",))
    x = jax.lax.with_sharding_constraint(x.reshape(4, SIZE // 2, SIZE // 2), NamedSharding(mesh, P("i")))
    with block(**attrs):
        return jnp.sin(cholesky(x))


def collectives(x, y, **attrs):
    def run(x, y):
        x, y = jnp.sin(x), jnp.cos(y)
        with block(**attrs):
            return jax.lax.psum(x, "i"), jax.lax.all_gather(y, "i")

    return mapped(run, (P("i"), P("i")), (P(), P()))(x, y)


def sums(x, y, **attrs):
    def run(x, y):
        first = jax.lax.psum(jnp.sin(x), "i")
        with block(**attrs):
            return first, jax.lax.psum(jnp.cos(y), "i")

    return mapped(run, (P("i"), P("i")), (P(), P()))(x, y)


def pipelined(x, weights, **attrs):
    """A loop over layers, each with a collective."""

    def run(x, weights):
        def body(_, carry):
            with block(**attrs):
                w = jax.lax.all_gather(weights, "i", tiled=True)
            return jnp.tanh(carry @ w)

        return jax.lax.fori_loop(0, 8, body, x)

    return mapped(run, (P(), P("i")), P())(x, weights)


def shifted(x, w, **attrs):
    """A loop whose carry goes to the next device."""

    def run(x, w):
        def body(_, carry):
            with block(**attrs):
                carry = jax.lax.ppermute(carry, "i", [(0, 1), (1, 2), (2, 3)])
            return jnp.tanh(carry @ w)

        return jax.lax.fori_loop(0, 8, body, x)

    return mapped(run, (P("i"), P()), P("i"))(x, w)


def loop(x, w, *, count=8, **attrs):
    with block(**attrs):
        return jax.lax.fori_loop(0, count, lambda _, y: jnp.sin(y @ jnp.tanh(w)) + y, x)


def ragged(x, w, **attrs):
    groups = jnp.full((4,), x.shape[0] // 4, jnp.int32)
    with block(**attrs):
        return jax.lax.ragged_dot(x, jnp.stack([w] * 4), groups)


def called_kernel(x, **attrs):
    with block(**attrs):
        return jnp.sin(kernel(x))


def unused_kernel(x, **attrs):
    """A custom call with a side effect, whose result is not used."""
    with block(**attrs):
        if PLATFORM == "tpu":
            from jax.experimental.pallas import tpu

            effectful = tpu.CompilerParams(has_side_effects=True)
            out = jax.ShapeDtypeStruct(x.shape, x.dtype)
            pl.pallas_call(lambda x, y: y.__setitem__(..., x[...] * 2.0), out_shape=out, compiler_params=effectful)(x)
        else:
            cholesky(x, has_side_effect=True)
    return jnp.sin(x)


@dataclass(frozen=True)
class Probe:
    """A program that shows whether a key is read."""

    value: str  # of the key
    program: Callable[..., Any]  # of arrays, and of the tag as keyword arguments
    arguments: int  # how many square arrays it takes
    shows: str  # what becomes of the program where the key is read
    devices: int = ONE  # the place in `KINDS`
    size: int = SIZE  # of the arrays
    options: dict[str, dict[str, Any]] = field(default_factory=dict)  # of the compiler, by platform


_GEMMS = {"gpu": {"xla_gpu_enable_triton_gemm": False}}
_WINDOWED = {"gpu": {"xla_gpu_threshold_for_windowed_einsum_mib": 0}}
_PIPELINED = {"gpu": {"xla_gpu_pipeline_all_gather": "COLLECTIVE_PIPELINING_MODE_EXPLICIT"}}
_UNROLLED = {"gpu": {"xla_gpu_enable_while_loop_unrolling": "WHILE_LOOP_UNROLLING_MANUAL_UNROLL"}}

PROBES = {
    "_xla_compute_type": Probe("host", pointwise, 1, "a call runs on the host's thread"),
    "_xla_buffer_placement": Probe("pinned_host", placed, 1, "an error: the result is not in the host's memory"),
    "_scheduling_group_id": Probe("7", group, 4, "the members are scheduled elsewhere", FOUR, LARGE),
    "keep_original_sequence_order_in_group": Probe(
        "true", partial(group, _scheduling_group_id="7"), 4, "the members keep their order", FOUR, LARGE
    ),
    "scheduler_hint": Probe("force_delay", hinted, 4, "a kernel is scheduled later", FOUR),
    "scheduler_delay_priority": Probe("20", prioritized, 4, "of two delayed kernels the other is first", FOUR),
    "latency_metadata": Probe("100000000", costly, 4, "a gather is scheduled elsewhere", FOUR),
    "_xla_stream_annotation": Probe("1", partial(fused, inlineable="false"), 2, "the call is asynchronous"),
    "inlineable": Probe("false", calls, 2, "the call is there"),
    "MUST_FUSE": Probe("a", fused, 2, "other fusions"),
    "MAXIMAL_FUSE": Probe("a", fused, 2, "other fusions"),
    "mosaic_fusion_group": Probe("a", fused, 2, "other fusions"),
    "FUSE_LIMIT": Probe("true", pointwise, 1, "two fusions"),
    "grad_x": Probe("true", product, 2, "the config of the gemm has it", options=_GEMMS),
    "grad_y": Probe("true", product, 2, "the config of the gemm has it", options=_GEMMS),
    "compilation_unit": Probe("a", fused, 2, "the call is there"),
    "collective_group_key": Probe("a", collectives, 2, "one asynchronous pair launches both collectives", FOUR),
    "combiner_key": Probe("a", sums, 2, "two all-reduces, not one", FOUR),
    "collective_communication_domain": Probe("scale_up_fabric", collectives, 2, "an error, or other collectives", FOUR),
    "is_pipelineable": Probe("true", pipelined, 2, "the collective is pipelined", FOUR, options=_PIPELINED),
    "_xla_collective_matmul": Probe(
        "none", partitioned, 2, "other collectives; on TPU, other channel ids", FOUR, options=_WINDOWED
    ),
    "always_sink": Probe("true", pipelined, 2, "the collective is pipelined", FOUR),
    "_xla_send_recv_source_target_pairs": Probe("{{0,1},{1,2}}", shifted, 2, "other pairs", FOUR),
    "_xla_send_recv_pipeline": Probe("1", shifted, 2, "a pipelined permute", FOUR),
    "_xla_gpu_collective_stream": Probe("p2p", shifted, 2, "another stream", FOUR),
    "_xla_loop_unroll_strategy": Probe("full", loop, 2, "no loop", options=_UNROLLED),
    "skip-simplify-while-loops_trip-count-one": Probe("true", partial(loop, count=1), 2, "a loop"),
    "_xla_disable_loop_instr_hoisting": Probe("true", loop, 2, "the invariant is in the loop"),
    "xla_disable_while_loop_copies": Probe("true", loop, 2, "fewer copies"),
    "xla_disable_while_loop_dce": Probe("true", loop, 2, "another carry"),
    "xla_preserve_tuple_indices": Probe("true", loop, 2, "another carry"),
    "ragged_dot_tiling": Probe("128,128,128", ragged, 2, "the kernel has other tiles"),
    "num_batch_dims": Probe("1", batched, 1, "the custom call is sharded, with no gather before it", FOUR),
    "kernel_metadata": Probe("{}", called_kernel, 1, "another kernel"),
    "xla_allow_dce_side_effecting_op": Probe("true", unused_kernel, 1, "the unused call is gone"),
    **{
        key: Probe("true", pointwise, 1, "another module")
        for key in (
            *("_xla_log", "breakpoint", "_xla_tag", "_xla_log_tag", "_xla_log_callback", "_xla_summary_mode"),
            "xla_log_for_comparison",
        )
    },
}


def is_read(key: str, probe: Probe | None = None) -> bool:
    """Whether this process's compiler makes something else of a program with a key than with one that nobody reads."""
    probe = probe or PROBES[key]
    compiler = list(KINDS[PLATFORM].values())[probe.devices]()
    return _made(compiler, probe, key) != _made(compiler, probe, "_nobody")


def _made(compiler: Compiler, probe: Probe, key: str) -> str:
    """The module's text, or the error."""
    jax.clear_caches()  # What JAX traced before, for another test, has the devices of that.
    arrays = (np.ones((probe.size, probe.size), np.float32),) * probe.arguments
    with hlotag.stage(hlo=False):
        lowered = compiler.lower(partial(probe.program, **{key: probe.value}), *arrays)
    try:
        text = without_names(lowered.compile(probe.options.get(PLATFORM)).as_text().replace(key, "_nobody"))
        return re.sub(r"(?<=frontend_attributes=\{)[^}]*", lambda found: ",".join(sorted(found[0].split(","))), text)
    except jax.errors.JaxRuntimeError as error:
        return str(error).replace(key, "_nobody")


def is_read_late(key: str) -> bool:
    """Whether this process's compiler makes something else of a program if the key is written where PRE_SCHEDULER is called."""
    probe, written = PROBES[key], "somebody"
    compiler = list(KINDS[PLATFORM].values())[probe.devices]()

    def write(serialized: bytes) -> bytes | None:
        module = HloModule(serialized)
        tagged = {
            i: {written if k == "_nobody" else k: v for k, v in i.attributes.items()}
            for i in module.instructions()
            if "_nobody" in i.attributes
        }
        return module.with_attributes(tagged) if tagged else None

    client = getattr(compiler.devices[0], "client", None)
    remove = _compat.transformations.register_transformation(
        client, write, name="late", stage=_compat.transformations.PipelineStage.PRE_SCHEDULER
    )
    try:
        unread = _made(compiler, probe, "_nobody").replace(written, "_nobody")
        written = key
        return _made(compiler, probe, "_nobody").replace(key, "_nobody") != unread
    finally:
        remove()


def table(found: dict[str, dict[str, bool]]) -> str:
    """The Markdown table key x backend; `found` says by platform and key whether it is read."""
    rows = ["| key | CPU | GPU | TPU | what shows it | judged |", "|---|---|---|---|---|---|"]
    for key, probe in PROBES.items():
        read = ["read" if found[platform][key] else "" for platform in keys.BACKENDS]
        rows += [f"| `{key}` | {' | '.join(read)} | {probe.shows if any(read) else ''} | {'yes' if key in JUDGES else ''} |"]
    return "\n".join(rows)


def _all(question: str = "is_read") -> dict[str, dict[str, bool]]:
    """What a function of this file says of each key and compiler, each in a process with an environment of its own."""
    found = {}
    here = Path(__file__).parent
    path = os.pathsep.join([str(here.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    code = f"import conftest, json, key_probes as k; print(json.dumps({{key: k.{question}(key) for key in k.PROBES}}))"
    for platform in keys.BACKENDS:
        environment = {**os.environ, "HLOTAG_COMPILERS": platform, "PYTHONPATH": path}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found[platform] = json.loads(done.stdout.splitlines()[-1])
    return found


def missing() -> set[str]:
    """The keys of the catalogue without a probe. Entries of libraries need none: it would take the library's own program."""
    known = {key.name for key in keys.catalogue() if not key.reserved and key.consumer != "registered" and key.restored}
    return known - PROBES.keys()


if __name__ == "__main__":
    if "--late" in sys.argv:
        for platform, found in _all("is_read_late").items():
            print(f"{platform}: {', '.join(key for key, is_late in found.items() if is_late)}")
    else:
        print(table(_all()))
