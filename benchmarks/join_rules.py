# SPDX-License-Identifier: Apache-2.0
"""What each rule of the join finds: instructions that come from other operations without this one rule.

    python benchmarks/join_rules.py CPU
    XLA_FLAGS=--xla_gpu_autotune_level=0 python benchmarks/join_rules.py H100
    TPU_SKIP_MDS_QUERY=1 python benchmarks/join_rules.py 'TPU v5e'

In brackets stand those that do heavy work (a product, a reduction, a collective, a sort, ...) or hold it. The programs are
those of `tests/hlo_programs.py` and `tests/compilers/parallel_programs.py`, and a transformer's training step; for CPU also
those of `tests/audit_programs.py`. The rules are tried on the names that XLA left: nothing is compiled twice.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "compilers"))
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import gpu_tpu
import jax
import parallel_programs

import audit_programs
import hlo_programs
import hlotag
from hlotag import _core
from hlotag.hlo import HloModule, opcodes
from hlotag.lowering import hlo_pass

RULES = _core.join_rules()


def lowerings(kind: str) -> Iterator[Callable[[], Any]]:
    """Functions that lower one program each."""
    for name in [*hlo_programs.PROGRAMS, "train"]:
        function, arguments = gpu_tpu.program(name)
        yield partial(gpu_tpu.compiler_for(kind, name).lower, function, *arguments)
    devices = gpu_tpu.KINDS[f"4 {kind}"]().devices
    for name in parallel_programs.PROGRAMS:
        yield partial(parallel_programs.lower, name, devices)
    for function, arguments in audit_programs.programs().values() if kind == "CPU" else ():
        yield partial(jax.jit(function).lower, *arguments)


def heavy_instructions(module: HloModule) -> list[bool]:
    """Whether each instruction does heavy work or calls a computation that does. Callees come first in a module."""
    heavy: dict[Any, bool] = {}
    for instruction in module.instructions():
        called = (inner for computation in instruction.called for inner in computation.instructions)
        heavy[instruction] = opcodes.kind_of(instruction.opcode) == opcodes.Kind.HEAVY or any(
            heavy.get(inner) for inner in called
        )
    return list(heavy.values())


def measure(record: hlo_pass.Record) -> tuple[int, Counter[str], Counter[str]]:
    """(instructions, those that each rule changes, the heavy ones of these)."""
    join = record.origins.program.join
    module, heavy = record.before.parsed, heavy_instructions(record.before)
    found, changed, heavily = join(module), Counter[str](), Counter[str]()
    for rule in RULES:
        differs = [a != b for a, b in zip(found, join(module, without=rule), strict=True)]
        changed[rule] += sum(differs)
        heavily[rule] += sum(a and b for a, b in zip(differs, heavy, strict=True))
    return len(found), changed, heavily


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["CPU", "H100", "TPU v5e"])
    kind = parser.parse_args().kind
    number, changed, heavily = 0, Counter[str](), Counter[str]()
    for lower in lowerings(kind):
        jax.clear_caches()
        with hlotag.stage(rules=[hlotag.Rule({"k": "v"}, op="*")], hlo=True), hlo_pass.recorded() as records:
            lower().compile()
        for record in records:
            count, all_, heavy = measure(record)
            number, changed, heavily = number + count, changed + all_, heavily + heavy
    print(f"{kind}, jax {jax.__version__}, {number:,} instructions")
    for rule in RULES:
        print(f"{rule:<12}{changed[rule]:>7,} ({heavily[rule]:,})")


if __name__ == "__main__":
    main()
