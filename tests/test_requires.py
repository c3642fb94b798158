# SPDX-License-Identifier: Apache-2.0
"""Nothing that a test needs is missing unseen."""

import re
import sys
from pathlib import Path

import pytest

import requires

# Facts of the machine and of JAX, and not missing tools: what runs on none of ours is said in docs/compatibility.md.
FACTS = {
    "test_hlo_gpu.py": "no GPU",
    "test_paths.py": "no TPU compiler",
    "test_rule_is_block.py": "one implementation of checkpoint",
}
HERE = Path(__file__)


@pytest.mark.parametrize(
    "need", [lambda: requires.tool("no-such-tool", "x"), lambda: requires.libraries("sys", "no_such_module", extra="test")]
)
@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_what_is_missing_skips_and_fails_with_ci(monkeypatch, need, ci, outcome):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match=r"no_such_module: pip install 'hlotag\[test\]'|no-such-tool: apt-get install x"):
        need()


def test_what_is_there_is_given():
    assert Path(requires.tool("sh", "dash")).is_file()
    requires.libraries("pytest", extra="test")
    assert sys.modules["pytest"] is pytest


def test_no_test_skips_by_other_means():
    own = {HERE.name, "requires.py"}
    skipping = {p.name for p in HERE.parent.glob("*.py") if re.search(r"\b(importorskip|skipif|skip\()", p.read_text())} - own
    assert skipping == set(FACTS)
