# SPDX-License-Identifier: Apache-2.0
"""docs/reliability.md is what its command makes of the record, and the record shows nothing broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from record import read

ROOT = Path(__file__).parent.parent


def test_the_page_is_what_its_command_makes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "reliability.py"), "--check"]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0, "run tools/reliability.py"


def test_nothing_is_broken_and_enough_was_tried() -> None:
    outcomes = read()
    broken = {name: o for name, o in outcomes.items() if o.crashes or o.wrong or o.losses}
    assert not broken
    assert sum(o.seconds for name, o in outcomes.items() if name.startswith("Fuzzing")) >= 3600
    assert all(o.inputs or o.faults for o in outcomes.values())
