# SPDX-License-Identifier: Apache-2.0
"""The cost of tags while tracing and lowering: a training step with and without value tags, by JAX alone, with the stage on, and
with rules: three typical ones, one that matches every operation, and two by scope, beside blocks with the same entries.

python benchmarks/tags.py [--layers 24] [--repeat 7]
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import time
from contextlib import nullcontext
from functools import partial

import jax
import scale
import train_module
from jax.experimental import xla_metadata

import hlotag

RATIOS = (
    ("value tags / JAX's own tags", "stage on, tags", "JAX alone, tags"),
    ("rules / none", "three rules, no tags", "JAX alone, no tags"),
    ("stage without tags / off", "stage on, no tags", "JAX alone, no tags"),
    ("rules / the same entries by blocks", "rules by scope", "blocks"),
    ("rules, a value for each layer / the same entries by blocks", "rules by scope, values", "blocks, values"),
)
SCOPE = {"rules by scope": ("1", "layer_*"), "rules by scope, values": ("{n}", "layer_{n}")}


def by_block(value):
    return lambda number: hlotag.tagged({"layer": value or number})


def untagged(x=None, **_):
    return nullcontext() if x is None else x


def seconds(layers: int, stage, set_xla_metadata, block_of=lambda _: nullcontext()) -> tuple[float, float]:
    """Processor time to trace and to lower, with nothing cached."""
    jax.clear_caches()
    gc.collect()
    train_module.set_xla_metadata = set_xla_metadata
    train_module.block_of = block_of
    with stage():
        start = time.process_time()
        traced = train_module.trace(layers)
        between = time.process_time()
        traced.lower()
        return between - start, time.process_time() - between


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--layers", type=int, default=24)
    arguments.add_argument("--repeat", type=int, default=7)
    options = arguments.parse_args()
    # JAX alone is hlotag without a stage: its wrappers pass through.
    tags, off, on = xla_metadata.set_xla_metadata, nullcontext, hlotag.stage
    variants = {
        "JAX alone, no tags": (off, untagged),
        "JAX alone, tags": (off, tags),
        "stage on, no tags": (on, untagged),
        "stage on, tags": (on, tags),
        "three rules, no tags": (partial(on, rules=scale.RULES), untagged),
        "a rule for all, no tags": (partial(on, rules=[hlotag.Rule({"k": "v"}, op="*")]), untagged),
    }
    for name, (value, scope) in SCOPE.items():
        variants[name] = (partial(on, rules=[hlotag.Rule({"layer": value}, scope=scope)]), untagged)
    variants |= {"blocks": (on, untagged, by_block("1")), "blocks, values": (on, untagged, by_block(None))}
    for variant in variants.values():
        seconds(options.layers, *variant)
    # In turns, each time in another order: a slow moment of the machine is shared by all, and none is always the first.
    runs = []
    for turn in range(options.repeat):
        first = turn % len(variants)
        order = [*variants][first:] + [*variants][:first]
        runs.append({name: seconds(options.layers, *variants[name]) for name in order})
    print(f"{options.layers}-layer transformer training step; jax {jax.__version__}, Python {platform.python_version()}")
    print(f"{'':24}{'trace ms':>10}{'lower ms':>10}{'together':>10}{'x JAX alone, no tags':>22}")
    base = next(iter(variants))
    for name in variants:
        trace, lower = (statistics.median(run[name][part] for run in runs) for part in (0, 1))
        both = statistics.median(sum(run[name]) for run in runs)
        ratio = statistics.median(sum(run[name]) / sum(run[base]) for run in runs)
        print(f"{name:24}{trace * 1e3:>10.0f}{lower * 1e3:>10.0f}{both * 1e3:>10.0f}{ratio:>22.3f}")
    for name, of, to in RATIOS:
        print(f"{name}: {statistics.median(sum(run[of]) / sum(run[to]) for run in runs):.3f}")


if __name__ == "__main__":
    main()
