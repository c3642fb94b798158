# SPDX-License-Identifier: Apache-2.0
"""The report of `make test-gpu`, on the CPU."""

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_it_finds_tags_and_their_names_in_a_profile(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "tools")
    monkeypatch.setattr(sys, "path", [*sys.path])  # It adds the examples.
    import gpu_report

    ((_, seen, _),) = gpu_report.tags()
    assert "with it" in seen
    assert [row[0] for row in gpu_report.profile()] == ["profile: layer=0", "profile: layer=1"]
