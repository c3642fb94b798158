# SPDX-License-Identifier: Apache-2.0
"""Which bugs in cpp/lib would no lit or unit test notice?

    python tools/mutate.py [--minutes 20] [--seed 0] [FILE ...]

Makes one bug after the other in a copy of the sources: a condition negated, an early return dropped, an entry of a table dropped.
Builds the copy, runs the unit tests and the lit tests of passes, and prints the bugs that survive. Takes a sample of all
bugs in the files (all of cpp/lib by default) until the time is up. Runs in an environment with hlotag's test requirements.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants"
CONDITION = re.compile(r"^( *(?:else )?if \()(.+)(\)(?: \{| return .*;)?)$")
RETURN = re.compile(r"^ {4,}return\b.*;$")
ENTRY = re.compile(r"^ {4}\{.+\},$")


class Mutant(NamedTuple):
    """A line of a file, and the text in its place."""

    file: Path
    line: int
    text: str


def mutants(file: Path) -> Iterator[Mutant]:
    """All bugs that can be made in a file."""
    lines = file.read_text().split("\n")
    for number, line in enumerate(lines):
        condition = CONDITION.match(line)
        if (
            condition
            and ";" not in condition[2]
            and "constexpr" not in condition[1]
            and condition[2].count("(") == condition[2].count(")")
        ):
            yield Mutant(file, number, f"{condition[1]}!({condition[2]}){condition[3]}")
        if RETURN.match(line) and lines[number - 1].lstrip().startswith("if (") and lines[number - 1].endswith(")"):
            yield Mutant(file, number, re.sub(r"return\b.*", ";", line))
        if ENTRY.match(line) and line.count("{") == line.count("}"):
            yield Mutant(file, number, "")


def prepare() -> None:
    """Copies the sources and builds them once."""
    shutil.rmtree(WORK / "source", ignore_errors=True)
    shutil.copytree(ROOT / "cpp", WORK / "source" / "cpp")
    for name in ("python", "tools"):
        shutil.copytree(ROOT / name, WORK / "source" / name, ignore=shutil.ignore_patterns("__pycache__", "corpus"))
    shutil.copy(ROOT / "CMakeLists.txt", WORK / "source")
    options = ["-DHLOTAG_BUILD_UNITTESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"]
    command = [
        "cmake",
        "-S",
        WORK / "source",
        "-B",
        WORK / "build",
        "-G",
        "Ninja",
        *options,
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    site = WORK / "site" / "hlotag"
    shutil.rmtree(site.parent, ignore_errors=True)
    site.mkdir(parents=True)
    for path in (ROOT / "python" / "hlotag").iterdir():
        (site / path.name).symlink_to(path)
    (site.parent / "jax_plugins").symlink_to(ROOT / "python" / "jax_plugins")


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(WORK / "site")}


def passes(*command: str | Path) -> bool:
    try:
        done = subprocess.run(command, env=environment(), timeout=300, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def survives() -> bool | None:
    """Whether the tests pass with the copy as it is; None if it does not build."""
    if not passes("cmake", "--build", WORK / "build"):
        return None
    assert passes("cmake", "--install", WORK / "build", "--prefix", WORK / "site")
    lit = (sys.executable, "-c", "from lit.main import main; main()", "-q", "--max-failures=1", "--timeout=60")
    tests = (ROOT / "lit_tests" / "passes", ROOT / "lit_tests" / "opt")
    return passes(WORK / "build" / "cpp" / "unittests" / "hlotag_unittests") and passes(*lit, *tests)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("file", nargs="*", type=Path)
    options = parser.parse_args()
    prepare()
    if not survives():
        print("hlotag: the tests fail without a bug", file=sys.stderr)
        return 1
    find = "import importlib.util; print(importlib.util.find_spec('hlotag._core').origin)"
    used = subprocess.run([sys.executable, "-c", find], env=environment(), capture_output=True, text=True, check=True).stdout
    if not used.startswith(str(WORK)):
        print(f"hlotag: {used.strip()} would be tested; install hlotag without --editable", file=sys.stderr)
        return 1
    files = [path.resolve() for path in options.file] or sorted((ROOT / "cpp" / "lib").rglob("*.cpp"))
    found = [mutant for file in files for mutant in mutants(file)]
    random.Random(options.seed).shuffle(found)
    end = time.monotonic() + 60 * options.minutes
    counts = {True: 0, False: 0, None: 0}
    for mutant in found:
        if time.monotonic() > end:
            break
        copy = WORK / "source" / mutant.file.relative_to(ROOT)
        text = mutant.file.read_text()
        lines = text.split("\n")
        before, lines[mutant.line] = lines[mutant.line], mutant.text
        copy.write_text("\n".join(lines))
        outcome = survives()
        counts[outcome] += 1
        if outcome:
            place = f"{mutant.file.relative_to(ROOT)}:{mutant.line + 1}"
            print(f"{place}: survives: {before.strip()} -> {mutant.text.strip() or 'nothing'}", flush=True)
        copy.write_text(text)
    tried = counts[True] + counts[False]
    print(f"{counts[False]} of {tried} killed ({len(found)} bugs in all, {counts[None]} did not build)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
