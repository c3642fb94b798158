# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks one after the other and writes what they print to docs/performance.md: `make bench`.

    python benchmarks/record.py [--only NAME ...] [--print]

Each section is a script of this folder that can be run alone; its docstring says what the rows are.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"

# Name, arguments, what is measured, and what bounds it.
SECTIONS = [
    (
        "passes",
        [],
        "The passes, beside a floor and beside other ways to do such work",
        "Ratios to the bare walk are the figures to compare. Most of the default pipeline is `hlotag-resolve`: it sets an\n"
        "attribute and a location on nearly every operation, and MLIR uniques both. MLIR's verifier costs more than all\n"
        "passes; it runs once, after the last of them.",
    ),
    (
        "passes",
        ["--scale"],
        "From small modules to large ones",
        "What grows with the size is what the processor's caches do not hold.",
    ),
    (
        "tags",
        [],
        "Tags while tracing and lowering",
        "The stage records which equations each operation makes; that is its cost in tracing.",
    ),
    (
        "stage",
        [],
        "Having the stage on",
        "A call of a compiled function compares one more entry of JAX's key. Lowering pays for marks (tagged jaxprs are\n"
        "copied), the passes, and one run of the verifier.",
    ),
    (
        "hlo_stage",
        [],
        "Tags in optimized HLO, and what restoring them costs",
        "",
    ),
    (
        "audit",
        [],
        "Audits",
        "",
    ),
]


def machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    versions = ", ".join(f"{package} {version(package)}" for package in ("hlotag", "jax", "jaxlib"))
    system = f"{platform.system()} {platform.machine()}; Python {platform.python_version()}, {versions}"
    return f"{processor}, {os.cpu_count()} cores; {system}"


def run(name: str, arguments: list[str]) -> str:
    command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout.rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = sorted({name for name, *_ in SECTIONS})
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="which benchmarks; implies --print")
    parser.add_argument("--print", action="store_true", help="leave docs/performance.md as it is")
    options = parser.parse_args()
    page = [
        "# Performance\n\nWritten by `make bench`. Times are of one machine and say little; ratios within a table are of one\n"
        f"run, in turns, and are what to compare.\n\n{machine()}.\n"
    ]
    for name, arguments, title, comment in SECTIONS:
        if name not in options.only:
            continue
        print(f"=== {title}\n", flush=True)
        text = run(name, arguments)
        print(text + "\n", flush=True)
        command = " ".join(["python", f"benchmarks/{name}.py", *arguments])
        page.append(f"## {title}\n\n`{command}`\n\n```text\n{text}\n```\n\n{comment}\n")
    if not options.print and options.only == names:
        PAGE.write_text("\n".join(page))
        print(f"written: {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
