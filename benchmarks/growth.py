# SPDX-License-Identifier: Apache-2.0
"""From a thousand operations to a million: nanoseconds and bytes an operation.

    python benchmarks/growth.py [--largest 1000000]

Rows: the training step of the other benchmarks, with layers until it has that many operations. Columns:
  walk        one C++ walk that sets one attribute on every StableHLO operation: the floor
  pipeline    what `hlotag.enable()` runs, on the module with its marks
  verifier    MLIR's, of the whole module
  module      memory of the module itself, bytes an operation
  peak        what the pipeline needs at most beside it, bytes an operation
Times are the least of several runs, of the processor; what a run keeps is part of its peak.
"""

from __future__ import annotations

import argparse
import gc
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import scale
from passes import build_bare_walk

import hlotag
from hlotag.mlir import connection
from hlotag.mlir.modules import new_context, parse_module
from hlotag.passes.pipeline import pipeline_text, run_and_report

COLUMNS = ("walk", "pipeline", "verifier", "module", "peak")
SMALLEST = 2  # layers: about 1,000 operations
LARGE = 50_000  # operations from which on memory is more than what the allocator had left


def memory(field: str) -> int:
    """Bytes of this process, by the name that Linux gives them: VmRSS, or VmHWM for the most since `reset_peak`."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def sizes(largest: int) -> Iterator[int]:
    """How many layers have 1,000, 10,000, ... operations."""
    yield SMALLEST
    few, many = scale.module(SMALLEST)[1], scale.module(scale.LAYERS)[1]
    of_layer = (many - few) / (scale.LAYERS - SMALLEST)
    for exponent in range(4, round(math.log10(largest)) + 1):
        yield SMALLEST + math.ceil((10**exponent - few) / of_layer)


def least(runs: int, prepare: Callable[[], Any], run: Callable[[Any], Any]) -> float:
    times = []
    for _ in range(runs):
        module = prepare()
        gc.collect()
        start = time.process_time()
        run(module)
        times.append(time.process_time() - start)
    return min(times)


def row(layers: int, walk: Callable[[Any], int]) -> tuple[int, dict[str, float]]:
    code, count = scale.module(layers)
    text = pipeline_text(hlotag.passes.DEFAULT_PIPELINE)

    def pipeline(module: Any) -> None:
        assert run_and_report(module, text, verify=False).ok

    gc.collect()
    before = memory("VmRSS")
    module = parse_module(code)
    own = memory("VmRSS") - before
    reset_peak()
    start = memory("VmRSS")
    pipeline(module)
    peak = memory("VmHWM") - start
    del module
    runs = max(1, min(15, 300_000 // count))

    def read() -> Any:
        return parse_module(code)

    seconds = {
        "walk": least(runs, read, walk),
        "pipeline": least(runs, read, pipeline),
        "verifier": least(runs, read, lambda module: module.operation.verify()),
    }
    figures = {name: value * 1e9 / count for name, value in seconds.items()}
    return count, figures | {"module": own / count, "peak": peak / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1_000_000)
    options = parser.parse_args()
    connection.ensure()
    print(f"{'operations':>12}" + "".join(f"{name:>12}" for name in COLUMNS) + f"{'x walk':>10}")
    print(f"{'':12}" + "".join(f"{'ns/op' if name in COLUMNS[:3] else 'B/op':>12}" for name in COLUMNS))
    with tempfile.TemporaryDirectory() as folder, new_context(), scale.ir.Location.unknown():
        walk = build_bare_walk(Path(folder))
        for layers in sizes(options.largest):
            count, figures = row(layers, walk)
            shown = COLUMNS if count >= LARGE else COLUMNS[:3]
            cells = "".join(f"{figures[name]:>12.0f}" if name in shown else f"{'':12}" for name in COLUMNS)
            print(f"{count:>12,}{cells}{figures['pipeline'] / figures['walk']:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
