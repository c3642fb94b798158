# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks one after the other and writes what they print to docs/performance.md: `make bench`.

    python benchmarks/record.py [--short] [--only NAME ...] [--print]

Each section is a script of this folder that can be run alone; its docstring says what the rows are.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"


@dataclass(frozen=True)
class Section:
    """One benchmark.

    Attributes:
        name: The script.
        arguments: Its arguments.
        short: Its arguments with `--short`.
        title: What is measured.
        comment: What limits the figures, in Markdown.
        shown: Whether the page has the output. Else it has the figures of `COSTS` only.
    """

    name: str
    arguments: str
    short: str
    title: str
    comment: str = ""
    shown: bool = True


SECTIONS = [
    Section(
        "passes",
        "--layers 48",
        "--layers 8 --repeat 2 --processes 1",
        "Pass cost compared with alternatives",
        "Compare the ratios to the bare walk. `text` prints and parses the module, which a pass in another process has to do.\n"
        "`sdy-lift-inlined-meshes` is a pass of JAX's own that every module goes through. MLIR's verifier costs more than all\n"
        "passes. After its passes hlotag verifies only operations that they may have made invalid; tags cannot make an\n"
        "operation invalid.",
    ),
    Section(
        "counts",
        "--layers 8",
        "--layers 2",
        "What limits them: instructions an operation",
        "Instructions an operation. Most of the cost is MLIR's uniquing of attributes and locations.",
        shown=False,
    ),
    Section(
        "growth",
        "",
        "--largest 100000",
        "From a thousand operations to a million",
        "A visit takes longer once a module is larger than the processor's caches.",
        shown=False,
    ),
    Section(
        "passes",
        "--scale",
        "--scale --times 2 --only autodiff",
        "Ten thousand operations and a million, pass by pass",
        "Ten thousand operations and a million, pass by pass.",
        shown=False,
    ),
    Section(
        "tags",
        "--layers 12 --repeat 5",
        "--layers 4 --repeat 2",
        "Tags while tracing and lowering",
        "Tracing and lowering. A value for each layer costs most by blocks, for which JAX traces each layer; rules are\n"
        "matched when it lowers the program.",
        shown=False,
    ),
    Section(
        "stage",
        "--layers 58 --repeat 5 --compile-layers 2",
        "--layers 4 --repeat 2 --compile-layers 1",
        "Having the stage on: a call, a lowering, a compilation",
        "A call, a lowering and a compilation, in the stage and without.",
        shown=False,
    ),
    Section(
        "hlo_pass",
        "--repeat 15",
        "--repeat 1 mlp",
        "Tags in optimized HLO, and what restoring them costs",
        "Of six programs on CPU, 30 heavy instructions have no tag or a wrong one with JAX alone, and none with the HLO pass.",
        shown=False,
    ),
    Section(
        "audit",
        "--instructions 100000 --operations 50000 --layers 4",
        "--instructions 10000 --operations 5000 --layers 1",
        "Audits: time and memory",
        "Time and memory of an audit.",
        shown=False,
    ),
]


# A cost that a user meets, the script that measures it, and its figure in the output: a text, or two numbers and their ratio.
# Then the most that it may be.
COSTS = [
    ("A call of a compiled function", "stage", r"^cached call .* ([+-]\S+ us)$", "+1 us"),
    ("`import hlotag` and `hlotag.enable()`", "stage", r"^import .* ([+-]\S+ ms)$", "+60 ms"),
    ("Trace and lower: value tags, relative to JAX's own", "tags", r"^value tags / .*: (\S+)$", "1.05"),
    ("Trace and lower: rules, relative to the same tags by blocks", "tags", r"^rules / the same .*: (\S+)$", "1.05"),
    ("Trace and lower: a stage without tags, relative to none", "tags", r"^stage without .*: (\S+)$", "1.02"),
    (
        "The passes, relative to one of JAX's own",
        "passes",
        r"^default .* verifier +\S+ +(\S+)(?s:.*)^sdy-.* verifier +\S+ +(\S+)",
        "0.4",
    ),
    ("An operation among 860,000, relative to one among 9,000", "passes", r"^default pipeline +[\d.]+ +[\d.]+ +(\S+)x$", "2"),
    ("Compile a transformer with the HLO pass, relative to without", "hlo_pass", r"^transformer .* (\S+)$", "1.02"),
    ("An audit of 100,000 instructions", "audit", r"audited (\S+ s)", "1 s"),
]


def number_in(figure: str) -> float:
    return float(re.match(r"[+-]?[\d.]+", figure)[0])


def costs(outputs: dict[str, str]) -> str:
    """The table of COSTS, from what each script printed."""
    rows = ["| | at most | measured |", "|---|---|---|"]
    for what, name, pattern, most in COSTS:
        if found := re.search(pattern, outputs.get(name, ""), re.MULTILINE):
            figures = found.groups()
            figure = figures[0] if len(figures) == 1 else f"{float(figures[0]) / float(figures[1]):.2f}"
            over = " **over**" if number_in(figure) > number_in(most) else ""
            rows.append(f"| {what} | {most} | {figure}{over} |")
    return "\n".join(rows)


def machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    versions = ", ".join(f"{package} {version(package)}" for package in ("hlotag", "jax", "jaxlib"))
    system = f"{platform.system()} {platform.machine()}; Python {platform.python_version()}, {versions}"
    return f"{processor}, {os.cpu_count()} cores; {system}"


def load() -> str:
    """What else the machine does, if that is more than a little."""
    busy = os.getloadavg()[0]
    if busy <= 1:
        return ""
    return f"\n\n**The machine was busy (load {busy:.1f}) when this was recorded: rely on ratios and counts only.**"


def run(section: Section, arguments: str) -> str:
    command = [sys.executable, str(HERE / f"{section.name}.py"), *arguments.split()]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=HERE.parent, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout.rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="which benchmarks; implies --print")
    parser.add_argument("--print", action="store_true", help="leave docs/performance.md as it is")
    parser.add_argument("--short", action="store_true", help="small programs and few repetitions, to see whether it works")
    options = parser.parse_args()
    start = time.monotonic()
    first = f"{machine()}; {date.today()}.{load()}\n"
    page: list[str] = []
    further: list[str] = []
    outputs: dict[str, str] = {}
    for section in SECTIONS:
        if section.name not in options.only:
            continue
        print(f"=== {section.title}\n", flush=True)
        arguments = section.short if options.short else section.arguments
        text = run(section, arguments)
        print(text + "\n", flush=True)
        outputs[section.name] = outputs.get(section.name, "") + text + "\n"
        command = f"`python benchmarks/{' '.join([f'{section.name}.py', *arguments.split()])}`"
        if section.shown:
            page.append("\n\n".join([f"## {section.title}", command, f"```text\n{text}\n```", section.comment]).rstrip() + "\n")
        else:
            further.append(textwrap.fill(f"- {command}: {section.comment}", 118, subsequent_indent="  ", break_on_hyphens=False))
    print(f"{time.monotonic() - start:.0f} s in all")
    if not options.print and options.only == names:
        head = (
            "<!-- Made by `make bench`; do not edit. -->\n# Performance\n\n## What will it cost me?\n\n"
            f"{costs(outputs)}\n\n"
            "Figures without a unit are ratios of processor time. An operation's cost is that of the passes with rules.\n\n"
            "Compare ratios: all rows of a table are of one run, in turns. Times are of this machine:\n"
        )
        PAGE.write_text("\n".join([head + first, *page, "## Further benchmarks\n", *further, ""]))
        print(f"written: {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
