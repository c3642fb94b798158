# SPDX-License-Identifier: Apache-2.0
"""Makes docs/reliability.md of fuzz/record.json, fuzz/findings.toml and fuzz/mutants.toml.

`make fuzz` and `make hostile` write the record; with `--faults` this script adds the faults that the tests inject.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "fuzz"))

from record import Outcome, findings, read, record  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
MUTANTS = ROOT / "fuzz" / "mutants.toml"
# Tests that break something on purpose, and what they break; each test counts as one fault.
FAULTS = {
    "Faults: files": ["tests/test_files.py"],
    "Faults: jaxlib and the cache": ["tests/test_mlir.py"],
    "Faults: input of the command line": ["tests/test_hostile.py", "tests/test_cli.py"],
    "Faults: failing passes": ["tests/test_failure.py", "tests/test_python_passes.py"],
}
HEAD = """<!-- Made by tools/reliability.py from fuzz/record.json and the TOML files of fuzz/; do not edit. -->
# Reliability

What was tried to break hlotag, and what broke.

- **crash**: a process that ended neither with a result nor with an error message.
- **wrong result**: other numbers, an invalid module, a wrong tag, a pass that changes its own result, or two results
  for a module and its copy.
- **loss**: an old file, a tag or a module that is gone after a failure.
- **found**: all fixed; `fuzz/findings.toml` names the test of each. The other counts are of runs after that.

| tried | inputs | faults | crashes | wrong results | losses | found | minutes |
|---|--:|--:|--:|--:|--:|--:|--:|
"""
BUGS = """
## Bugs that the tests notice

Random samples of bugs made on purpose, one at a time: a condition negated or halved, `<=` for `<`, another constant, an
entry of a table dropped. `fuzz/mutants.toml` lists those that the tests still miss, and why: most change nothing.

| bugs in | tried | missed at first | missed now | date | command |
|---|--:|--:|--:|---|---|
"""
TAIL = """
## How

- `make fuzz TIME=seconds` fuzzes rules, names in locations, symbol tables and modules with libFuzzer and sanitizers;
  mutates JAX's modules; and tags random JAX programs under random transformations.
- `make hostile` tries a million operations, deep regions, a constant of 1 GiB, long names, and cycles of calls.
- `python tools/reliability.py --faults` runs the tests that break files, disks, caches, libraries and passes.
- `tools/jax_tests.sh` runs JAX's own tests in the stage, and with a rule for every operation. With jax 0.12, of 1,516
  tests with the rule 37 fail: 34 compare texts with tags, and 3 count [lowerings](compatibility.md#limits). Of 412
  tests in the stage 6 fail, which [want a tag on fewer
  operations](tags.md#where-hlotag-differs-from-jaxs-own-tagging).
- Other libraries' tests with a rule for every operation: Flax 330, Equinox 161, chex 158, Lineax 48, distrax 15,
  diffrax 7, optax 7. One of Equinox fails: it counts lowerings.

## Known limits

- **Deep text.** MLIR's text parser needs stack for each nested region, and time with the square of the depth. hlotag
  reads text up to [1,000 brackets deep](design_notes.md#hostile-input) and refuses deeper text.
- **Deep modules in XLA.** XLA's threads have stack for some 200 nested regions; beyond that the process ends.
  `hlotag audit` refuses a module whose operations are nested more than 128 deep.
- **Invalid loops without StableHLO.** Under `mlir-opt`, where StableHLO's verifier is missing, a `while` or `case`
  whose region has no terminator may end the process.
"""


def render() -> str:
    """The page that the record makes."""
    outcomes, found = read(), findings()
    rows = [_row(name, outcome, len(found.get(name, ()))) for name, outcome in outcomes.items()]
    total = Outcome(*(sum(values) for values in zip(*(vars(o).values() for o in outcomes.values()), strict=True)))
    rows.append(_row("**all**", total, sum(map(len, found.values()))))
    return HEAD + "\n".join(rows) + "\n" + _bugs(tomllib.loads(MUTANTS.read_text())["sample"]) + TAIL


def _bugs(samples: list[dict[str, Any]]) -> str:
    """The section about the samples of bugs."""
    rows = []
    for sample in samples:
        missed = sum(each.get("count", 1) for each in sample.get("survivor", ()))
        share = f"{missed} ({100 * missed / sample['tried']:.0f}%)"
        counts = f"{sample['tried']} | {sample['missed_at_first']} | {share}"
        rows.append(f"| {sample['what']} | {counts} | {sample['date']} | `{sample['command']}` |")
    return BUGS + "\n".join(rows) + "\n"


def _row(name: str, o: Outcome, found: int) -> str:
    minutes = f"{o.seconds / 60:.0f}" if o.seconds else ""
    return f"| {name} | {o.inputs:,} | {o.faults:,} | {o.crashes} | {o.wrong} | {o.losses} | {found} | {minutes} |"


def run_faults() -> None:
    """Runs the tests that inject faults and records how many held."""
    for name, files in FAULTS.items():
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *files], cwd=ROOT, capture_output=True, text=True, check=False
        )
        counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout.splitlines()[-1])}
        crashed = done.returncode not in (0, 1)
        passed, failed = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
        record(name, Outcome(faults=passed + failed, losses=failed, crashes=int(crashed)))


if __name__ == "__main__":
    if "--faults" in sys.argv:
        run_faults()
    PAGE.write_text(render(), encoding="utf-8")
