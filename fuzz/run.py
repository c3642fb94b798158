# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers one after another, and records what they show.

    python fuzz/run.py SECONDS [NAME ...]

The targets of libFuzzer need clang and are left out where there is none. What ends a target is written to build/fuzz/artifacts;
a found input belongs into corpus/, where the tests run it again, once its cause is mended.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from record import Outcome, record

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "fuzz"
TARGETS = ("location_name", "rules_text", "module", "hlo")
SCRIPTS = ("lowered", "random_programs")
LENGTHS = {"module": 1500, "hlo": 4000}


def build() -> tuple[str, ...]:
    """Builds the targets of libFuzzer; returns those that there are."""
    if shutil.which("clang++-22") is None:
        print(
            "no clang++-22 (apt-get install clang-22 libclang-rt-22-dev): the targets of libFuzzer are left out", file=sys.stderr
        )
        return ()
    subprocess.run(["cmake", "--preset", "fuzz"], cwd=HERE.parent, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "fuzz"], cwd=HERE.parent, check=True)
    return tuple(name for name in TARGETS if (BUILD / "fuzz" / f"fuzz_{name}").exists())


def run_target(name: str, seconds: int) -> Outcome:
    """Runs a target of libFuzzer."""
    grown, artifacts = BUILD / "corpus" / name, BUILD / "artifacts" / name
    for folder in (grown, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = HERE / "corpus" / name
    command = [BUILD / "fuzz" / f"fuzz_{name}", grown, *([seeds] if seeds.is_dir() else []), f"-artifact_prefix={artifacts}/"]
    command += [f"-max_total_time={seconds}", "-print_final_stats=1", f"-max_len={LENGTHS.get(name, 500)}", "-rss_limit_mb=4000"]
    if (words := HERE / f"{name}.dict").exists():
        command.append(f"-dict={words}")
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    found = re.search(r"number_of_executed_units: *(\d+)", done.stderr)
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
    wrong = "not so: " in done.stderr
    return Outcome(
        inputs=int(found[1]) if found else 0, crashes=int(done.returncode != 0 and not wrong), wrong=int(wrong), seconds=seconds
    )


def run_script(name: str, seconds: int) -> Outcome:
    """Runs a fuzzer in Python, which says in its last line what it did."""
    command = [sys.executable, HERE / f"{name}.py", str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    found = re.search(r"(\d+) inputs, (\d+) crashes, (\d+) wrong\s*\Z", done.stdout)
    print(done.stdout[-3000:], end="", file=sys.stderr)
    if found is None:
        return Outcome(crashes=1, seconds=seconds)
    return Outcome(inputs=int(found[1]), crashes=int(found[2]), wrong=int(found[3]), seconds=seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=int)
    parser.add_argument("name", nargs="*", help=f"some of {', '.join(TARGETS + SCRIPTS)}; default: all")
    args = parser.parse_args()
    names = [name for name in (*build(), *SCRIPTS) if not args.name or name in args.name]
    failed = 0
    for name in names:
        started = time.monotonic()
        outcome = (run_script if name in SCRIPTS else run_target)(name, max(1, args.seconds // len(names)))
        failed += outcome.crashes + outcome.wrong
        record(f"Fuzzing: {name}", outcome, add=True)
        print(
            f"{name:15} {outcome.inputs:>12,} inputs in {time.monotonic() - started:.0f} s: "
            f"{outcome.crashes} crashes, {outcome.wrong} wrong",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
