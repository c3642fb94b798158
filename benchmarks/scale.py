# SPDX-License-Identifier: Apache-2.0
"""Whether the passes are linear: each on about 10,000 operations and on a hundred times as many, in one function.

Run by `python benchmarks/passes.py --scale`. The modules are training steps with 22 layers and with a hundred times as many: what
a backward operation stems from is as far away as it is in a program of that size. Small and large runs alternate.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from jaxlib.mlir import ir
from train_module import lower

import hlotag
from hlotag.lowering.staging import under
from hlotag.mlir.modules import parse_module, to_bytecode
from hlotag.passes.pipeline import run_and_report
from hlotag.passes.rules import Rule, attach
from hlotag.tagging.state import Stage, unique

LAYERS = 22  # about 10,000 operations
RULES = [
    Rule({"g": 40}, op="dot_general", scope="layer_*", grad={"g": 50}),
    Rule({"h": 1}, op="exponential", source="train_module.py"),
    Rule({"b": 1}, phase="backward", op="multiply"),
]

# Pass, the passes that make its input from a module with marks, and the pass with options that give it something to do.
CASES = {
    "hlotag-resolve": ("", "hlotag-resolve"),
    "hlotag-attach": ("hlotag-resolve", attach(RULES)),
    "hlotag-propagate": ("hlotag-resolve", "hlotag-propagate"),
    "hlotag-propagate-autodiff": ("hlotag-resolve," + attach(RULES), "hlotag-propagate-autodiff"),
    "hlotag-strip": ("hlotag-resolve", "hlotag-strip"),
    "hlotag-finalize": ("hlotag-resolve," + attach(RULES), "hlotag-finalize"),
    "default pipeline": ("", hlotag.passes.DEFAULT_PIPELINE),
}


def _lowered(layers: int) -> tuple[bytes, int]:
    with under(unique(Stage("", ""))):
        module = lower(layers).compiler_ir()
    count = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return to_bytecode(module), count


def module(layers: int) -> tuple[bytes, int]:
    """The training step with that many layers, as bytecode with marks; and how many operations that is.

    It is lowered in another process, which takes JAX's memory for it along.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_lowered, layers).result()


def prepared(code: bytes, pipeline: str) -> bytes:
    module = parse_module(code)
    result = run_and_report(module, pipeline, verify=False)
    assert result.ok, [str(d) for d in result.diagnostics]
    return to_bytecode(module)


def spent(code: bytes, pipeline: str, clock: Callable[[], float]) -> float:
    module = parse_module(code)
    gc.collect()
    start = clock()
    result = run_and_report(module, pipeline, verify=False)
    elapsed = clock() - start
    assert result.ok, [str(d) for d in result.diagnostics]
    return elapsed


def rows(
    layers: int, times: int, cases: Collection[str], clock: Callable[[], float] = time.process_time, repeat: int = 3
) -> Iterator[tuple[str, float, float]]:
    """For each case: what the clock says of an operation, small and large; first the numbers of operations.

    Args:
        layers: Of the small module.
        times: How many times as many the large one has.
        cases: Names in `CASES`.
        clock: What is measured with.
        repeat: How often the large module is run. The small one is run five times before and after each; medians count.

    Yields:
        The case, and both figures.
    """
    with hlotag.mlir.modules.new_context(), ir.Location.unknown():
        (small, small_count), (large, large_count) = module(layers), module(layers * times)
        yield "operations", small_count, large_count
        inputs: dict[str, tuple[bytes, bytes]] = {}
        for name, (before, pipeline) in CASES.items():
            if name not in cases:
                continue
            text = hlotag.passes.pipeline.pipeline_text(pipeline)
            if before not in inputs:
                inputs = {before: (prepared(small, before), prepared(large, before))}
            few, many = inputs[before]
            at_small, at_large = [], []
            for _ in range(repeat):
                at_small += [spent(few, text, clock) for _ in range(5)]
                at_large.append(spent(many, text, clock))
                at_small += [spent(few, text, clock) for _ in range(5)]
            yield name, statistics.median(at_small) / small_count, statistics.median(at_large) / large_count


def report(layers: int, times: int, only: str) -> None:
    """Prints the table; `only` is a part of the names of passes."""
    results = rows(layers, times, [name for name in CASES if only in name])
    _, few, many = next(results)
    print(f"{'ns an operation, with':36}{few:>12.0f}{many:>12.0f}  operations")
    for name, small, large in results:
        print(f"{name:36}{small * 1e9:>12.1f}{large * 1e9:>12.1f}{large / small:>8.2f}x", flush=True)
