# SPDX-License-Identifier: Apache-2.0
"""Nothing that a test needs is missing unseen."""

import re
from pathlib import Path

# Facts of the machine and of JAX, and not missing tools: what runs on none of ours is said in docs/compatibility.md.
FACTS = {
    "test_hlo_gpu.py": "no GPU",
    "test_paths.py": "no TPU compiler",
    "test_rule_is_block.py": "one implementation of checkpoint",
}
HERE = Path(__file__)


def test_no_test_skips_by_other_means():
    own = {HERE.name, "requires.py"}
    skipping = {p.name for p in HERE.parent.glob("*.py") if re.search(r"\b(importorskip|skipif|skip\()", p.read_text())} - own
    assert skipping == set(FACTS)
