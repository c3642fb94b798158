# SPDX-License-Identifier: Apache-2.0
"""Makes docs/reliability.md of fuzz/record.json and fuzz/findings.toml; `reliability.py --check` fails if the page is not what it would make.

The record is written by `make fuzz`, `make hostile` and, for the faults that the tests inject, `reliability.py --faults`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "fuzz"))

from record import Outcome, findings, read, record  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
# Tests that break something on purpose, and what they break; each test counts as one fault.
FAULTS = {
    "Faults: files": ["tests/test_files.py"],
    "Faults: jaxlib and the cache": ["tests/test_host.py"],
    "Faults: input of the command line": ["tests/test_hostile.py", "tests/test_cli.py"],
    "Faults: failing passes and plugins": ["tests/test_failure.py", "tests/test_plugin.py"],
}
HEAD = """<!-- Made by tools/reliability.py from fuzz/record.json and fuzz/findings.toml; do not edit. -->
# Reliability

What was tried, and what came of it. A crash is a process that ended otherwise than with a result or an error in words. Wrong is a result that
is not the right one: other numbers, a module that is not valid, a pass that changes its own result when it runs again, a copy that is treated
otherwise, a tag where there should be none. A loss is an old file, a tag or a module that is gone after a failure. *Found* counts what these runs
found and what was mended since, each with a test that keeps it so (below); the three columns before it are of runs after that.

| what | inputs tried | faults injected | crashes | wrong results | losses | found | minutes |
|---|--:|--:|--:|--:|--:|--:|--:|
"""
TAIL = """
- `make fuzz TIME=seconds`: libFuzzer under the address and undefined-behaviour sanitizers on pipeline text and options, rules, names in
  locations, symbol tables, and on modules made of the fuzzer's bytes, run through every pass with upstream's MLIR 22; mutated modules of JAX's in
  jaxlib's MLIR; random JAX programs with tags under random transformations.
- `make hostile`: a million operations, ten thousand regions in each other, a constant of 1 GiB, names of a million characters, call graphs
  in circles, each also at a quarter of the size: time must not grow with the square.
- `python tools/reliability.py --faults`: the tests that break files, disks, caches, libraries, plugins and passes; each
  test counts as one fault, though a few look at the undisturbed case.

## Known limits
- MLIR's text parser needs time with the square of the depth of regions, and stack: text is read up to 40,000 brackets deep (see
  [design_notes.md](design_notes.md)), deeper text is refused.
- XLA's own threads have stack for some 200 regions in each other, and the process ends beyond that: `hlotag audit` refuses a module with
  operations nested more than 128 deep.
- Finding what autodiff derived relies on what StableHLO's verifier checks of loops and branches. Where StableHLO is not registered
  (under `mlir-opt`), a `while` or `case` whose region has no terminator may end the process; the fuzz target leaves these out.
- A pipeline that ends in `hlotag-verify` forgets which keys the program took away; running a rule again gives them again.
"""


def page() -> str:
    """The page that the record makes."""
    outcomes, found = read(), findings()
    rows = [_row(name, outcome, len(found.get(name, ()))) for name, outcome in outcomes.items()]
    total = Outcome(*(sum(values) for values in zip(*(vars(o).values() for o in outcomes.values()), strict=True)))
    rows.append(_row("**all**", total, sum(map(len, found.values()))))
    mended = [f"- {name}: {one['what']} (`{one['kept']}`)" for name in sorted(found) for one in found[name]]
    return "\n".join([HEAD + "\n".join(rows), TAIL, "## Found and mended", *mended]) + "\n"


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


def main() -> int:
    if "--faults" in sys.argv:
        run_faults()
    if "--check" in sys.argv:
        return 0 if PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
