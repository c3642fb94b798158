# SPDX-License-Identifier: Apache-2.0
"""Time by tag: what profiling costs, how exact it is, and how long the join with a long trace takes.

    python benchmarks/profile_tags.py [--layers 4] [--steps 20] [--instructions 100000] [--events 1000000]

Rows:
  traced step / untraced     the step of a transformer under JAX's profiler, relative to the same calls without
  sums / step                what all rows of one key sum to
  sleeps, share of truth     the time of blocks that sleep for known times in callbacks, relative to these times
  read, join                 seconds for a trace with that many events of a program with that many instructions
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import train_module

import hlotag
from hlotag.audits import Audit, Instruction, Op, Tag, TagState
from hlotag.profiles.join import profile_of
from hlotag.profiles.program import Program
from hlotag.profiles.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import traces  # The tests' writer of traces.

SLEEPS = {"short": 0.02, "long": 0.1}  # seconds


def sleeping(x: jax.Array) -> jax.Array:
    """Two blocks, each with a callback that sleeps."""
    for name, seconds in SLEEPS.items():

        def wait(x: Any, seconds: float = seconds) -> Any:
            time.sleep(seconds)
            return x

        with hlotag.tagged({"block": name}):
            x = jnp.tanh(jax.pure_callback(wait, x, x))
    return x


def report_programs(layers: int, steps: int) -> None:
    p = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.01, leaf.dtype), train_module.parameters(layers))
    tokens = jnp.zeros((train_module.BATCH, train_module.LENGTH + 1), jnp.int32)
    profile = hlotag.profile(train_module.train_step, p, p, p, tokens, steps=steps)
    key = next(row.key for row in profile.rows if row.key)
    total = sum(row.seconds for row in profile.rows if row.key in ("", key))
    print(f"{'traced step / untraced':28}{profile.total_seconds / (profile.untraced_seconds or 1):8.3f}")
    print(f"{'sums / step':28}{total / profile.total_seconds:8.3f}")
    found = hlotag.profile(sleeping, jnp.ones(8), steps=steps, by="block")
    for name, seconds in SLEEPS.items():
        measured = sum(row.seconds for row in found.rows if row.value == name)
        print(f"{f'sleep of {seconds * 1e3:.0f} ms':28}{measured / seconds:8.3f}")


def report_join(instructions: int, events: int) -> None:
    ops = [Op(n, "stablehlo.dot_general", flops=8, phase=("forward", "backward")[n % 2]) for n in range(instructions)]
    known = [Instruction(f"dot.{n}", "dot", ops=(n,), phase=ops[n].phase) for n in range(instructions)]
    tags = [Tag("layer", str(n % 100), op, TagState.KEPT) for n, op in enumerate(ops)]
    program = Program(Audit("jit_step", ops, tags, instructions=known))
    made = [
        (f"dot.{n % instructions}", n * 1000, 900, {"hlo_op": f"dot.{n % instructions}", "hlo_module": "jit_step", "run_id": 1})
        for n in range(events)
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = traces.write(Path(folder), {"/host:CPU": {"thread": made}})
        start = time.perf_counter()
        devices = Trace(file).of("jit_step")
        middle = time.perf_counter()
        profile_of(program, devices)
        end = time.perf_counter()
    print(f"{events:,} events, {instructions:,} instructions: read {middle - start:.2f} s, join {end - middle:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--instructions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    hlotag.enable()
    report_programs(options.layers, options.steps)
    report_join(options.instructions, options.events)


if __name__ == "__main__":
    main()
