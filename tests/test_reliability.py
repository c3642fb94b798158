# SPDX-License-Identifier: Apache-2.0
"""docs/reliability.md is what its command makes of the record, and the record shows nothing broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from record import findings, read

ROOT = Path(__file__).parent.parent


def test_the_page_is_what_its_command_makes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "reliability.py"), "--check"]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0, "run tools/reliability.py"


@pytest.mark.parametrize("kept", [one["kept"] for found in findings().values() for one in found])
def test_what_was_found_is_kept_mended(kept: str) -> None:
    path, _, test = kept.partition("::")
    assert not test or f"\ndef {test}(" in (ROOT / path).read_text()
    assert (ROOT / path).is_file()


def test_findings_are_of_runs_that_are_recorded() -> None:
    assert set(findings()) <= set(read())


def test_nothing_is_broken_and_enough_was_tried() -> None:
    outcomes = read()
    broken = {name: o for name, o in outcomes.items() if o.crashes or o.wrong or o.losses}
    assert not broken
    assert sum(o.seconds for name, o in outcomes.items() if name.startswith("Fuzzing")) >= 3600
    assert all(o.inputs or o.faults for o in outcomes.values())
