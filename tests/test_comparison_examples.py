# SPDX-License-Identifier: Apache-2.0
"""The examples of `hlotag compare` that run on CPU: their commands run, and their answers are known."""

import jax
import pytest

from comparison_examples import ROOT, commands_of, growths, run_example
from hlotag.results.tags import Verdict

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def in_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_a_group_changes_nothing_on_cpu(tmp_path):
    """Four devices; the compiler does not read the key."""
    here, _ = commands_of("compare_groups.py")
    found = run_example(here, tmp_path / "c.json")
    outcome = found["compare_groups"]
    assert outcome.results == "equal" and [each.verdict for each in outcome.effects] == [Verdict.UNREAD]
    # Three gathers of 256 KiB.
    exchanged = outcome.program.amount("exchanged")
    assert exchanged and exchanged.now == exchanged.before == 3 * 4 * 256 * 256
    assert not [amount for amount in outcome.program.amounts if amount.measure != "time" and amount.growth]


def test_a_checkpoint_pays_flops_for_memory(tmp_path):
    """A layer has two products forward and four backward; a checkpoint adds the first two again."""
    (command,) = commands_of("compare_checkpoint.py")
    found = run_example(command, tmp_path / "c.json")
    flops, memory = growths(found, "flops"), growths(found, "memory")
    if jax.__version_info__ >= (0, 11):
        assert flops == pytest.approx({"first": 1 / 6, "every": 1 / 3, "products": 0}, abs=0.02)
        assert memory["every"] < memory["first"] < memory["products"] < -0.1
    else:  # XLA for CPU computed one of the two products again, and kept the other one's result.
        assert flops == pytest.approx({"first": 1 / 12, "every": 1 / 6, "products": 0}, abs=0.02)
        assert memory == {"first": 0, "every": 0, "products": 0}
    again = [row for row in found["every"].rows if row.phase == "recomputed" and row.key == "layer"]
    assert {row.value for row in again} == {"0", "1", "2", "3"}
