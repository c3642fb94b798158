# SPDX-License-Identifier: Apache-2.0
"""What hlotag costs in instructions that are executed, which do not depend on what else the machine does, as times do.

    python benchmarks/instructions.py [--layers 24] [--compile-layers 1] [--times 10]
    python benchmarks/instructions.py --programs mlp shard_map rnn mix [--runs 3]

The processor counts them where it has counters that a process may read (Linux, rarely in a virtual machine); elsewhere valgrind's
callgrind does, in a quarter of an hour instead of one minute. Where there is neither, it says so and ends.

Rows, each once and after a run for its caches:
  trace, lower       of a transformer training step, with tags in it, by JAX alone and with the stage on; of the latter, the
                     instructions in value tags, in marks and in passes
  compile            the module with all tags, by XLA alone and with the HLO pass
  passes             instructions an operation, in a module of 10,000 operations and in one that is as many times larger as
                     `--times` says; without MLIR's verifier

With `--programs`, of `tests/hlo_programs.py`, only their compilations are counted, in one thread: with JAX alone, with the
StableHLO passes, and with the HLO pass too. It is the least of `--runs`, since some runs of the same program take XLA 2% more;
how far those of one kind are apart at most is in the last column.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

Clock = Callable[[], int]

# Of perf_event_open(2).
SYSTEM_CALL = {"x86_64": 298, "aarch64": 241}
HARDWARE, INSTRUCTIONS = 0, 1
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
SIZE = 64  # of the first version of its argument

PASSES = ("hlotag-propagate-autodiff", "default pipeline")
NOWHERE = """\
Did not run: nothing here counts instructions. The processor has no counters that this process may read ({reason}),
and there is no valgrind (apt-get install valgrind)."""


def processor_clock(kind: int = HARDWARE, event: int = INSTRUCTIONS) -> Clock:
    """Reads how many instructions this process has executed, threads that it starts from now on included.

    Raises:
        OSError: There is no such counter, or this process may not read it.
    """
    if platform.system() != "Linux" or platform.machine() not in SYSTEM_CALL:
        raise OSError(f"{platform.system()} on {platform.machine()}")
    flags = INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR
    attributes = struct.pack("=IIQQQQQ", kind, SIZE, event, 0, 0, 0, flags).ljust(SIZE, b"\0")
    library = ctypes.CDLL(None, use_errno=True)
    # Of this process, on any processor, in no group.
    counter = library.syscall(SYSTEM_CALL[platform.machine()], attributes, 0, -1, -1, 0)
    if counter < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return lambda: int.from_bytes(os.read(counter, 8), sys.byteorder)


def callgrind_clock(switch: Path) -> Clock:
    """The same in a process of callgrind's, which writes what came since it wrote last: beside the library, as out.*."""
    library = ctypes.CDLL(str(switch))
    library.start()
    total = 0

    def read() -> int:
        nonlocal total
        library.pause()
        for path in switch.parent.glob("out.*"):
            total += total_of(path)
            path.unlink()
        library.resume()
        return total

    return read


def total_of(dump: Path) -> int:
    """The number of instructions in what callgrind wrote, from its end."""
    with dump.open("rb") as file:
        file.seek(max(0, dump.stat().st_size - 100))
        return int(file.read().rpartition(b"\ntotals: ")[2].split()[0])


def report(clock: Clock, layers: int, compile_layers: int, times: int) -> None:
    # Not before the clock runs: it counts threads that are started later only.
    import jax
    import scale
    import stage

    print(f"jax {jax.__version__}, Python {platform.python_version()}; millions of instructions\n")
    print(f"{'':34}{'off':>12}{'on':>12}{'on / off':>12}")

    def row(name: str, off: float, on: float) -> None:
        print(f"{name:34}{off / 1e6:>12.1f}{on / 1e6:>12.1f}{on / off:>12.4f}", flush=True)

    rows, parts = stage.lowering(layers, 1, clock)
    for name, (off, on) in rows.items():
        row(f"{name}, {layers} layers", off, on)
    for part, (count, share) in parts.items():
        print(f"{'  in ' + part:34}{'':12}{count / 1e6:>12.1f}{share:>12.2%}")
    if compile_layers:
        _, tags, both = stage.compiling(compile_layers, 1, clock)
        row(f"compile, {compile_layers} layers, HLO pass", tags, both)
    figures = scale.rows(scale.LAYERS, times, PASSES, clock, 1)
    _, few, many = next(figures)
    print(f"\n{'an operation, with':34}{few:>12,}{many:>12,}  operations")
    for name, small, large in figures:
        print(f"{name:34}{small:>12.0f}{large:>12.0f}{large / small:>12.3f}", flush=True)


def report_programs(clock: Clock, programs: list[str], runs: int) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # XLA starts as many threads as there are processors to run them.
    import hlo_pass
    import jax

    print(f"jax {jax.__version__}, Python {platform.python_version()}; millions of instructions\n")
    print(f"{'compile':16}{'JAX':>12}{'+ StableHLO':>12}{'+ HLO':>12}{'StableHLO / JAX':>18}{'HLO / StableHLO':>18}{'apart':>8}")
    variants = ({"pipeline": None}, {}, {"hlo": True})
    for name in programs:
        for variant in variants:
            hlo_pass.cost(name, **variant)
        rounds = [[hlo_pass.cost(name, **variant, clock=clock) for variant in variants] for _ in range(runs)]
        counts = list(zip(*rounds, strict=True))
        alone, tags, both = map(min, counts)
        apart = max((max(count) - min(count)) / min(count) for count in counts)
        figures = "".join(f"{count / 1e6:>12.1f}" for count in (alone, tags, both))
        print(f"{name:16}{figures}{tags / alone:>18.4f}{both / tags:>18.4f}{apart:>8.2%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--compile-layers", type=int, default=1, help="0: nothing is compiled, which takes valgrind longest")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--programs", nargs="+")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()

    def report_asked(clock: Clock) -> None:
        if options.programs:
            report_programs(clock, options.programs, options.runs)
        else:
            report(clock, options.layers, options.compile_layers, options.times)

    if options.count:
        report_asked(callgrind_clock(options.count))
        return
    import counts

    try:
        clock = processor_clock()
    except OSError as error:
        if not counts.has_valgrind():
            print(NOWHERE.format(reason=error))
            return
    else:
        report_asked(clock)
        return
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONHASHSEED": "0"}
        done = counts.under_valgrind(Path(folder), __file__, *sys.argv[1:], env=environment, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"callgrind ended with {done.returncode}:\n{done.stderr[-3000:]}")


if __name__ == "__main__":
    main()
