# SPDX-License-Identifier: Apache-2.0
"""What having the stage on costs a program, beside having it off, in one run.

    python benchmarks/stage.py [--layers 58] [--compile-layers 4] [--repeat 5]

Rows:
  cached call          a call of a compiled function, with `hlotag.enable()` and without, in turns
  trace, lower         of a transformer training step (58 layers: 23,000 operations) with tags in it, by JAX alone and with the
                       stage on, in turns; processor time. hlotag's share, in runs of their own, is the time in value tags, in
                       marks and in passes; Python's garbage collector is off in these, for all of trace and lower: it runs when
                       JAX has allocated enough, in whatever part that happens to be. What else hlotag changes, such as the
                       recording of equations, only shows in the whole
  compile              the module with all tags beside the same module without any, and then with the HLO pass besides; processor
                       time, median ratios of neighbours
  import               `import jax`, and `import jax, hlotag; hlotag.enable()` beside it, in fresh processes; processor time
  look-up              of MLIR's functions in jaxlib: the first process on a machine, which also tries them in a child process;
                       and the next ones
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from unittest import mock

import jax
import jax.numpy as jnp
from train_module import trace

import hlotag
from hlotag.lowering import hlo_pass, staging
from hlotag.passes.pipeline import run_or_raise
from hlotag.tagging import marks, tags, walk

Clock = Callable[[], float]
Spent = dict[str, tuple[float, ...]]  # of each part of hlotag: the amount, and its share of all


def timed(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def cached_calls(repeat: int) -> tuple[float, float]:
    """Median seconds of a call with the stage off, and the same plus the median difference of neighbours with it on."""
    f, x = jax.jit(lambda x: x + 1.0), jnp.ones(8)
    count = 2000

    def batch() -> float:
        f(x).block_until_ready()
        return timed(lambda: [f(x) for _ in range(count)]) / count

    off, on = [], []
    for _ in range(repeat * 8):
        off.append(batch())
        hlotag.enable()
        on.append(batch())
        hlotag.disable()
    # The machine's speed drifts by more than the difference: neighbours have it in common.
    return statistics.median(off), statistics.median(off) + statistics.median(b - a for a, b in zip(off, on, strict=True))


@contextmanager
def stopwatch(clock: Clock):
    """Adds up, in the counter it gives, what hlotag's parts of tracing and lowering take: value tags, marks and passes."""
    spent = Counter({"tags": 0, "marks": 0, "passes": 0})

    def clocked(part, function):
        def run(*args, **kwargs):
            start = clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent[part] += clock() - start

        return run

    with (
        mock.patch.object(walk.Walk, "rewrite", clocked("marks", walk.Walk.rewrite)),
        mock.patch.object(tags, "tag_equations", clocked("tags", tags.tag_equations)),
        mock.patch.object(marks, "attach_table", clocked("marks", marks.attach_table)),
        mock.patch.object(staging, "run_or_raise", clocked("passes", run_or_raise)),
        mock.patch.object(hlo_pass, "prepare", clocked("passes", hlo_pass.prepare)),
    ):
        yield spent


def lowering(layers: int, repeat: int, clock: Clock = time.process_time) -> tuple[dict[str, tuple[float, float]], Spent]:
    """Of tracing and of lowering, with the stage off and on, and of hlotag's parts, with their shares: what the clock says.

    With it off, that is the median; with it on, that and the median difference of neighbours.
    """

    def once(stage: Callable[[], AbstractContextManager]) -> tuple[float, float]:
        jax.clear_caches()
        gc.collect()
        with stage():
            start = clock()
            traced = trace(layers)
            middle = clock()
            traced.lower()
            return middle - start, clock() - middle

    def with_stopwatch() -> Spent:
        gc.disable()
        try:
            with stopwatch(clock) as spent:
                total = sum(once(hlotag.stage))
        finally:
            gc.enable()
        return {part: (amount, amount / total) for part, amount in spent.items()}

    once(hlotag.stage)
    pairs, parts = [], []
    for turn in range(repeat):
        # JAX alone is hlotag without a stage: its wrappers pass through.
        variants = [nullcontext, hlotag.stage][:: 1 if turn % 2 else -1]
        times = {variant: once(variant) for variant in variants}
        pairs.append((times[nullcontext], times[hlotag.stage]))
        parts.append(with_stopwatch())

    def row(part) -> tuple[float, float]:
        off = statistics.median(part(off) for off, _ in pairs)
        return off, off + statistics.median(part(on) - part(off) for off, on in pairs)

    rows = {"trace": row(lambda times: times[0]), "lower": row(lambda times: times[1]), "trace + lower": row(sum)}
    medians = {part: tuple(map(statistics.median, zip(*(spent[part] for spent in parts), strict=True))) for part in parts[0]}
    return rows, medians


def compiling(layers: int, repeat: int, clock: Clock = time.process_time) -> tuple[float, float, float]:
    """What the clock says of compiling the step without any tag; and with all of them, without and with the HLO pass.

    The last two are the first times the median ratio of neighbours: the machine's speed drifts by more than they differ.
    """
    variants = (("hlotag-strip", False), ("hlotag-finalize", False), ("hlotag-finalize", True))

    def once(last: str, hlo: bool) -> float:
        with hlotag.stage(f"{hlotag.passes.DEFAULT_PIPELINE},{last}", hlo=hlo):
            jax.clear_caches()
            lowered = trace(layers).lower()
            start = clock()
            lowered.compile()
            return clock() - start

    for variant in variants:
        once(*variant)
    rounds = []
    for turn in range(repeat):
        order = variants[turn % 3 :] + variants[: turn % 3]
        times = {variant: once(*variant) for variant in order}
        rounds.append([times[variant] for variant in variants])
    none = statistics.median(first for first, _, _ in rounds)
    tags, both = (none * statistics.median(times[n] / times[0] for times in rounds) for n in (1, 2))
    return none, tags, both


def process(code: str) -> float:
    """What a fresh process prints; compiled files are kept for the next one, as they are of what is installed."""
    finished = subprocess.run(
        [sys.executable, "-c", f"import time; start = time.perf_counter(); {code}"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(finished.stdout)


def in_processes(code: str, repeat: int) -> float:
    return statistics.median(process(code) for _ in range(repeat))


ELAPSED = "print(time.perf_counter() - start)"
BUSY = "print(time.process_time())"
CONNECTION = "import jax; from hlotag.mlir import connection, library"
SYMBOLS = f"{CONNECTION}; start = time.perf_counter(); connection._read_offsets(library.find_library()); {ELAPSED}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--layers", type=int, default=58)
    arguments.add_argument("--compile-layers", type=int, default=4)
    arguments.add_argument("--repeat", type=int, default=5)
    options = arguments.parse_args()
    begin = time.perf_counter()
    repeat = options.repeat
    print(f"jax {jax.__version__}, Python {platform.python_version()}; medians of {repeat}\n")
    print(f"{'':34}{'off':>11}{'on':>11}{'on / off':>11}{'on - off':>13}")

    def row(name: str, off: float, on: float, unit: str = "ms") -> None:
        scale = {"ms": 1e3, "us": 1e6}[unit]
        print(f"{name:34}{off * scale:>8.2f} {unit}{on * scale:>8.2f} {unit}{on / off:>11.3f}{(on - off) * scale:>+10.2f} {unit}")

    row("cached call", *cached_calls(repeat), "us")
    lowered, spent = lowering(options.layers, repeat)
    for name, (off, on) in lowered.items():
        row(f"{name}, {options.layers} layers", off, on)
    for part, (seconds, share) in spent.items():
        print(f"{'  in ' + part:34}{'':11}{seconds * 1e3:>8.2f} ms{share:>10.2%} of trace + lower")
    none, tags, both = compiling(options.compile_layers, repeat)
    row(f"compile, {options.compile_layers} layers", none, tags)
    row("  with the HLO pass", none, both)
    row(
        "import",
        in_processes(f"import jax; {BUSY}", repeat),
        in_processes(f"import jax, hlotag; hlotag.enable(); {BUSY}", repeat),
    )
    print(f"\nlook-up of MLIR's functions: {in_processes(SYMBOLS, repeat) * 1e3:.1f} ms")
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
