# SPDX-License-Identifier: Apache-2.0
"""What becomes of tags in XLA's pipeline, and what the stage inside XLA costs.

    python benchmarks/hlo_pass.py [--compiler cpu|h100|v5e] [--large] [--repeat 9] [PROGRAM ...]

The programs are those of `tests/hlo_programs.py`, each a gradient. Columns: JAX alone | hlotag with `hlo=False` | both stages.
The compilers for H100 and TPU v5e need no hardware, but their packages (`pip install 'hlotag[compilers]'`).

  without a tag    optimized instructions that have none although all of the program is tagged (one block around it); what XLA
                   adds for its own ends, nameless copies and bitcasts, parameters and tuples, does not count
  heavy and wrong  dots, convolutions, reductions, scatters, collectives, sorts, gathers, FFTs that have another operation's tag
                   or none, when each operation was given one of its own before XLA; by sizes, and not by anything XLA carries.
                   The CPU's compiler only: others make something else of operations, which this does not know again
  compile          processor time with both stages over that with `hlo=False`, medians of runs in turns
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
os.environ["XLA_FLAGS"] += " --xla_gpu_autotune_level=0"
os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # There is no machine to ask what it is.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "compilers"))

import jax
from jax.experimental.xla_metadata import set_xla_metadata

import compilers
import hlo_programs
import hlotag
from hlotag.hlo.module import Instruction

SIGN = "benchmark-sign-operations"
COMPILERS = {"cpu": None, "h100": lambda: compilers.gpu("h100", 4), "v5e": lambda: compilers.tpu("v5e")}

_used: list[compilers.Compiler] = []


def use(name: str) -> None:
    """Has programs compiled by a compiler of COMPILERS, for four devices."""
    if (make := COMPILERS[name]) is not None:
        _used[:] = [make()]


def lower(function: Callable[..., Any], *arguments: Any) -> Any:
    return _used[0].lower(function, *arguments) if _used else jax.jit(function).lower(*arguments)


def lowered(name: str, pipeline: str | None = hlotag.passes.DEFAULT_PIPELINE, *, hlo: bool = False, sign: bool = False) -> Any:
    """A program, lowered; all of it is tagged, or each operation."""
    function, arguments = hlo_programs.program(name)

    def whole(*args: Any) -> Any:
        with set_xla_metadata(t="1"):
            return function(*args)

    with hlotag.stage(pipeline, hlo=hlo):
        made = lower(function if sign else whole, *arguments)
    # JAX alone, with every operation tagged all the same.
    return hlotag.run_passes(made, SIGN) if sign and pipeline is None else made


def cost(name: str, *, clock: Callable[[], float] = time.process_time, **stage: Any) -> float:
    """What the clock says of compiling a program."""
    made = lowered(name, **stage)
    start = clock()
    made.compile()
    return clock() - start


def untagged(instructions: Iterable[Instruction]) -> int:
    return sum("t" not in i.attributes and not hlo_programs.is_xlas_own(i) for i in instructions)


def wrong(instructions: Iterable[Instruction]) -> int:
    signed = ((i, hlo_programs.signature_of_instruction(i)) for i in instructions)
    return sum(s is not None and not hlo_programs.has_signature(i, s) for i, s in signed)


def ratio(name: str, repeat: int) -> tuple[float, float]:
    """Median processor time of a compilation with `hlo=False`, and the median of what the stage takes times.

    Each compilation with the stage is compared with the mean of those before and after it: the second of two equal ones takes
    1 to 2% longer.
    """
    off, ratios = [cost(name)], []
    for _ in range(repeat):
        both = cost(name, hlo=True)
        off.append(cost(name))
        ratios.append(2 * both / (off[-2] + off[-1]))
    return statistics.median(off), statistics.median(ratios)


def row(name: str, cells: Iterable[object]) -> str:
    return f"{name:<12}" + "".join(f"{cell!s:>12}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=list(hlo_programs.PROGRAMS))
    parser.add_argument("--compiler", choices=COMPILERS, default="cpu")
    parser.add_argument("--large", action="store_true", help="the transformer of 12 layers too")
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    use(options.compiler)
    hlotag.register_pass(hlo_programs.sign_operations, name=SIGN)
    both = f"{hlotag.passes.DEFAULT_PIPELINE},{SIGN}"
    print(f"jax {jax.__version__}, {options.compiler}")
    print(row("", ["instructions", "", "without", "a tag", "", "heavy and", "wrong", "compile", ""]))
    print(row("program", ["", "JAX", "+ stage", "+ HLO", "JAX", "+ stage", "+ HLO", "s", "ratio"]))
    signed = ((None, False), (both, False), (both, True)) if options.compiler == "cpu" else ()
    totals = [0] * (4 + len(signed))
    for name in [*options.programs, *(hlo_programs.LARGE if options.large else ())]:
        alone, staged, both_stages = (
            hlo_programs.compiled_instructions(made) for made in (lowered(name, None), lowered(name), lowered(name, hlo=True))
        )
        counts = [
            len(alone),
            *map(untagged, (alone, staged, both_stages)),
            *(wrong(hlo_programs.compiled_instructions(lowered(name, p, hlo=hlo, sign=True))) for p, hlo in signed),
        ]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        seconds, times = ratio(name, options.repeat)
        print(row(name, [*counts, *[""] * (3 - len(signed)), f"{seconds:.2f}", f"{times:.3f}"]), flush=True)
    print(row("total", totals))


if __name__ == "__main__":
    main()
