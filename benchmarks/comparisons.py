# SPDX-License-Identifier: Apache-2.0
"""How often a comparison notices a slower layer, and how often it calls an equal one slower.

    python benchmarks/comparisons.py [--trials 40] [--slower 1.2] [--seconds 30] [--sequences 8] [--load 4]

A network of four layers is compared with one whose second layer has 1.2 times the width, and with itself, each in a process of
its own. The more `--sequences`, the longer a step. `--load` keeps as many processes busy beside them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import hlotag
from hlotag.cli.processes import Apart, Spec
from hlotag.comparisons import Comparison, Trend
from hlotag.comparisons.run import compare_subjects

LAYERS, WIDTH, SLOW = 4, 128, 1
# The programs, which processes of their own load.
PROGRAMS = Path("compared_programs.py").resolve()


def make(slower: float, sequences: int) -> tuple[Any, tuple[Any, ...]]:
    """A gradient whose layer `SLOW` takes `slower` times as long, and its arguments."""

    def loss(weights: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
        for number, (up, down) in enumerate(weights):
            with hlotag.tagged({"layer": number}):
                x += jax.nn.gelu((x - x.mean(-1, keepdims=True)) @ up) @ down
        return (x**2).mean()

    sizes = [int(4 * WIDTH * (slower if number == SLOW else 1)) for number in range(LAYERS)]
    weights = [(jnp.full((WIDTH, size), 0.01), jnp.full((size, WIDTH), 0.01)) for size in sizes]
    return jax.grad(loss), (weights, jnp.ones((sequences, 64, WIDTH)))


def compare(program: str, seconds: float) -> Comparison:
    """Compares a program of `PROGRAMS` with `equal`."""
    subjects = [Apart(Spec("before", f"{PROGRAMS}:equal")), Apart(Spec("now", f"{PROGRAMS}:{program}"))]
    *_, found = compare_subjects(subjects, by="layer", visible=0.2, seconds=seconds, effects=False)
    return found


def _keep_busy() -> None:
    while True:
        pass


def _count(found: Comparison, counts: Counter[str]) -> None:
    """Counts rows of 5% of a step by what is said of them; the slower layer's apart."""
    (outcome,) = found.outcomes
    for row in (outcome.program, *outcome.rows):
        time_of = row.amount("time")
        if time_of and (time_of.trend != Trend.SAME or max(time_of.before, time_of.now) > 0.05 * _step(found)):
            counts[f"{'slow ' if row.value == str(SLOW) else ''}{time_of.trend}"] += 1


def _step(found: Comparison) -> float:
    amount = found.outcomes[0].program.amount("time")
    return amount.before if amount else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--slower", type=float, default=1.2)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--load", type=int, default=0)
    options = parser.parse_args()
    busy = [multiprocessing.Process(target=_keep_busy, daemon=True) for _ in range(options.load)]
    for each in busy:
        each.start()
    lines = ["import sys", f"sys.path.insert(0, {str(Path(__file__).parent)!r})", "from comparisons import make"]
    lines += [f"equal = lambda: make(1.0, {options.sequences})", f"slower = lambda: make({options.slower}, {options.sequences})"]
    PROGRAMS.write_text("\n".join([*lines, ""]))
    try:
        for program in ("equal", "slower"):
            counts, start = Counter[str](), time.monotonic()
            for number in range(options.trials):
                found = compare(program, options.seconds)
                _count(found, counts)
                print(f"{program} {number + 1}: {dict(counts)} step {1e3 * _step(found):.2f} ms", file=sys.stderr)
            took = (time.monotonic() - start) / options.trials
            print(f"load {options.load}, {options.trials} comparisons, {program}: rows {dict(counts)}; {took:.0f} s each")
    finally:
        PROGRAMS.unlink()
        for each in busy:
            each.terminate()


if __name__ == "__main__":
    main()
