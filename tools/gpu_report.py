# SPDX-License-Identifier: Apache-2.0
"""What hlotag does on a device that runs programs: a table of tags in executables, of names in a profile, and of recipes' times.

    python tools/gpu_report.py    on the GPU that JAX finds, else on the CPU

Fails if the stage changes a result, or a tag is in no instruction or no profile.
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

import hlotag

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "examples" / "effects"), str(ROOT / "tests")]
RECIPES = ("must_fuse", "stream", "offload")
REPEATS, SECONDS = 20, 2.0
# In a command buffer, events have the names of kernels, and no arguments.
OPTIONS = {"gpu": {"xla_gpu_enable_command_buffer": ""}}

Row = tuple[str, str, str]


def layers(w: jax.Array, x: jax.Array) -> jax.Array:
    for layer in range(2):
        with hlotag.tagged({"layer": layer}):
            x = jnp.tanh(x @ w)
    return x.sum()


def tags() -> Iterator[Row]:
    """How many instructions of a gradient have a tag without and with the HLO pass, and that its result is the same."""
    arguments = jnp.ones((512, 512)), jnp.ones((512, 512))
    counts, results = [], []
    for hlo in (False, True):
        with hlotag.stage(hlo=hlo):
            executable = jax.jit(jax.grad(layers)).lower(*arguments).compile()
        counts.append(sum("layer" in entries for entries in import_module("hlo_programs").entries_with_fusion(executable)))
        results.append(executable(*arguments))
    np.testing.assert_allclose(*results, rtol=1e-3)  # XLA may choose other algorithms for the second.
    assert counts[1] >= max(counts[0], 1), counts
    yield "tags in the executable", f"{counts[0]} without the HLO pass, {counts[1]} with it", "results agree"


def profile() -> Iterator[Row]:
    """Which names of a profile have tags, and the time of each layer."""
    arguments = jnp.ones((512, 512)), jnp.ones((512, 512))
    with hlotag.stage(op_names=["layer"]):
        step = jax.jit(jax.grad(layers)).lower(*arguments).compile(OPTIONS.get(jax.default_backend()))
    jax.block_until_ready(step(*arguments))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(REPEATS):
                jax.block_until_ready(step(*arguments))
        (planes,) = Path(folder).rglob("*.xplane.pb")
        (trace,) = Path(folder).rglob("*.trace.json.gz")
        data, events = planes.read_bytes(), json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    named = [event for event in events if "{layer=" in json.dumps(event.get("args", {}))]
    for layer in range(2):
        assert f"{{layer={layer}}}".encode() in data, f"no name in the profile has layer={layer}"
        spent = sum(event["dur"] for event in named if f"{{layer={layer}}}" in json.dumps(event["args"])) / REPEATS
        said = f"{spent:.0f} us a step in events with it" if spent else "in the profile's modules, in no event's arguments"
        yield f"profile: layer={layer}", said, f"{len(named)} events"


def median_time(run: Callable[[], Any]) -> float:
    jax.block_until_ready(run())
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < SECONDS:
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def recipes() -> Iterator[Row]:
    """The median time of each variant of the recipes of `examples/effects` that need one device."""
    compiling = import_module("compiling")
    mesh = compiling.mesh_of("here", 1)
    for name in RECIPES:
        for variant, (step, *shapes) in import_module(name).recipe(mesh).items():
            arguments = [jax.device_put(np.ones(s, kind), NamedSharding(mesh, place)) for s, kind, place in shapes]
            with hlotag.stage():
                executable = jax.jit(step).lower(*arguments).compile()
            seconds = median_time(lambda executable=executable, arguments=arguments: executable(*arguments))
            memory = executable.memory_analysis().temp_size_in_bytes / 1e6
            yield f"{name}: {variant}", f"{seconds * 1e3:.2f} ms", f"{memory:.1f} MB temporary"


def main() -> int:
    device = jax.devices()[0]
    rows: list[Row] = [("device", device.device_kind, f"jax {jax.__version__}, {device.platform}")]
    failed = False
    for part in (tags, profile, recipes):
        try:
            rows += part()
        except Exception as error:  # The other parts are to be seen, too.
            rows.append((part.__name__, "FAILED", f"{type(error).__name__}: {str(error).splitlines()[0]}"))
            failed = True
    print("| what | seen | |\n|---|---|---|")
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return failed


if __name__ == "__main__":
    sys.exit(main())
