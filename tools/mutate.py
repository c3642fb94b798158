# SPDX-License-Identifier: Apache-2.0
"""Which bugs in cpp/lib would no lit or unit test notice?

    python tools/mutate.py [--minutes 20] [--seed 0] [--skip 0] [--count N] [--least 0] [--changed] [FILE[:LINE] ...]

Makes one bug after the other in a copy of the sources: a condition negated or halved, an early return, a `continue`, a sort or an
entry of a table dropped, `=` for `|=`, `<` for `<=`, min for max, another constant, two arguments swapped.
Builds the copy, runs the unit tests and the lit tests that belong to the file, and prints the bugs that survive. Takes a sample
of all bugs in the files until the time is up: in all of cpp/lib by default, or with --changed in those that differ from main (on
main, from the commit before). --skip and --count continue a sample: a seed gives each bug its place in the order, whatever else
the files contain. Fails if fewer percent than --least are noticed. Runs in an environment with hlotag's test requirements, and
hlotag installed without --editable.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants"
# Copied too, so that the tests may change while bugs are tried.
LIT = WORK / "source" / "lit_tests"
CONDITION = re.compile(r"^( *(?:else )?if \()(.+)(\)(?: \{| return .*;)?)$")
RETURN = re.compile(r"^ {4,}return\b.*;$")
ENTRY = re.compile(r"^ {4}\{.+\},$")


# What a line has, and what it has with the bug; each place in a line is a bug of its own.
REPLACED = [
    (re.compile(r"(?<=\w) [|&]= "), lambda found: " = "),
    (re.compile(r" (<=?|>=?) "), lambda found: {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "}[found[0]]),
    (re.compile(r"std::(min|max)\b"), lambda found: {"std::min": "std::max", "std::max": "std::min"}[found[0]]),
    (re.compile(r"(?<=constexpr )(.* = )(\d+)(?=;)"), lambda found: f"{found[1]}{int(found[2]) // 2}"),
    (re.compile(r"(?<=\w)\((\w+(?:\[\w+\])?), (\w+(?:\[\w+\])?)\)"), lambda found: f"({found[2]}, {found[1]})"),
]
DROPPED = re.compile(r"^ {4,}(?:std::(?:sort|stable_sort|reverse)\(.*\);|continue;)$")


def halves(line: str) -> Iterator[str]:
    """The line without one of the conditions after `&&`."""
    for found in re.finditer(r" && ", line):
        end, depth = found.end(), 0
        while end < len(line) and depth >= 0 and not (depth == 0 and line.startswith((" &&", " ||", " ? ", ";"), end)):
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
        yield line[: found.start()] + line[end - (depth < 0) :]


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
        if (ENTRY.match(line) and line.count("{") == line.count("}")) or DROPPED.match(line):
            yield Mutant(file, number, "" if ENTRY.match(line) else "    ;")
        code = line.partition("//")[0]
        if code.lstrip().startswith(("#", "template", "using", "*")) or code != line:
            continue
        yield from (Mutant(file, number, half) for half in halves(line))
        for pattern, replace in REPLACED:
            for found in pattern.finditer(line):
                yield Mutant(file, number, line[: found.start()] + replace(found) + line[found.end() :])


def refresh(folder: Path, copy: Path) -> None:
    """Makes a copy of a folder. Leaves equal files alone, so that a build of the copy compiles only what changed."""
    copy.mkdir(parents=True, exist_ok=True)
    wanted = {path.name: path for path in folder.iterdir() if path.name not in ("__pycache__", "corpus")}
    for old in copy.iterdir():
        if old.name not in wanted:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, path in wanted.items():
        if path.is_dir():
            refresh(path, copy / name)
        elif not (copy / name).exists() or not filecmp.cmp(path, copy / name, shallow=False):
            shutil.copy(path, copy / name)


def prepare() -> None:
    """Copies the sources and configures their build."""
    for name in ("cpp", "lit_tests", "python", "tools"):
        refresh(ROOT / name, WORK / "source" / name)
    shutil.copy2(ROOT / "CMakeLists.txt", WORK / "source")
    # Assertions of the standard library: a missing check for nothing or for an end is a crash, not luck.
    flags = "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -D_GLIBCXX_ASSERTIONS"
    options = ["-DHLOTAG_BUILD_UNITTESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", flags]
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


def run(command: Sequence[str | Path], environment: dict[str, str], timeout: float) -> bool:
    """Whether a command succeeds in time. Ends all that it started: a bug may be a loop without an end, in a child of a child."""
    quiet = subprocess.DEVNULL
    done = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        return done.wait(timeout) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(done.pid, signal.SIGKILL)
        done.wait()


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(WORK / "site")}


def passes(*command: str | Path, timeout: float = 300) -> bool:
    return run(command, environment(), timeout)


def suites_of(file: Path) -> tuple[Path, ...]:
    """The lit tests that belong to a file: the passes do not run what is in cpp/lib/hlo."""
    names = ("hlo",) if file.parent.name == "hlo" else ("hlo", "passes", "opt")
    return tuple(LIT / name for name in names)


def survives(suites: tuple[Path, ...]) -> bool | None:
    """Whether the unit tests and these lit tests pass with the copy as it is; None if it does not build."""
    if not passes("cmake", "--build", WORK / "build", "--target", "hlotag_unittests"):
        return None
    if not passes(WORK / "build" / "cpp" / "unittests" / "hlotag_unittests", timeout=30):
        return False
    assert passes("cmake", "--build", WORK / "build")
    assert passes("cmake", "--install", WORK / "build", "--prefix", WORK / "site")
    lit = (sys.executable, "-c", "from lit.main import main; main()", "-q", "--max-failures=1", "--timeout=60")
    return passes(*lit, *suites)


def git(*arguments: str) -> str:
    """What git says, or nothing if it fails."""
    return subprocess.run(["git", "-C", ROOT, *arguments], check=False, capture_output=True, text=True).stdout.strip()


def changed() -> list[str]:
    """The files of cpp/lib that differ from those where this branch left main; on main, from those of the commit before."""
    base = git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main")
    if base in ("", git("rev-parse", "HEAD")):
        base = "HEAD~1"
    return [str(ROOT / name) for name in git("diff", "--name-only", "--diff-filter=d", base, "--", "cpp/lib/*.cpp").split()]


def place(mutant: Mutant, seed: int) -> str:
    """Sorts the bugs at random. The place of a bug depends on its file and its line, and on no other bug."""
    line = mutant.file.read_text().split("\n")[mutant.line]
    return hashlib.sha256(f"{seed} {mutant.file.name} {line} {mutant.text}".encode()).hexdigest()


def chosen(files: list[str]) -> Iterator[Mutant]:
    """The bugs of files, or of one line where `:LINE` follows the file."""
    for text in files:
        name, _, line = text.partition(":")
        yield from (mutant for mutant in mutants(Path(name).resolve()) if line in ("", str(mutant.line + 1)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, metavar="N")
    parser.add_argument("--count", type=int, metavar="N")
    parser.add_argument("--least", type=float, default=0, metavar="PERCENT")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("file", nargs="*", metavar="FILE[:LINE]")
    options = parser.parse_args()
    everything = sorted(str(path) for path in (ROOT / "cpp" / "lib").rglob("*.cpp"))
    found = list(chosen(changed() if options.changed else options.file or everything))
    if not found:
        print("no bugs to make in these files")
        return 0
    prepare()
    if not survives((LIT / "passes", LIT / "opt", LIT / "hlo")):
        print("hlotag: the tests fail without a bug", file=sys.stderr)
        return 1
    find = "import importlib.util; print(importlib.util.find_spec('hlotag._core').origin)"
    used = subprocess.run([sys.executable, "-c", find], env=environment(), capture_output=True, text=True, check=True).stdout
    if not used.startswith(str(WORK)):
        print(f"hlotag: {used.strip()} would be tested; install hlotag without --editable", file=sys.stderr)
        return 1
    found.sort(key=lambda mutant: place(mutant, options.seed))
    end = time.monotonic() + 60 * options.minutes
    counts = {True: 0, False: 0, None: 0}
    for number, mutant in enumerate(found[options.skip :][: options.count], options.skip):
        if time.monotonic() > end:
            break
        copy = WORK / "source" / mutant.file.relative_to(ROOT)
        text = mutant.file.read_text()
        lines = text.split("\n")
        before, lines[mutant.line] = lines[mutant.line], mutant.text
        copy.write_text("\n".join(lines))
        outcome = survives(suites_of(mutant.file))
        counts[outcome] += 1
        print(number, {True: "survives", False: "is killed", None: "does not build"}[outcome], file=sys.stderr, flush=True)
        if outcome:
            where = f"{mutant.file.relative_to(ROOT)}:{mutant.line + 1}"
            print(f"{where}: survives: {before.strip()} -> {mutant.text.strip() or 'nothing'}", flush=True)
        copy.write_text(text)
    tried = counts[True] + counts[False]
    print(f"{counts[False]} of {tried} killed ({len(found)} bugs in all, {counts[None]} did not build)")
    return int(100 * counts[False] < options.least * tried)


if __name__ == "__main__":
    sys.exit(main())
