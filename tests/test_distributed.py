# SPDX-License-Identifier: Apache-2.0
"""Jobs of several processes: each makes the same module by itself, and tags are in every process's HLO."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parent.parent / "examples" / "distributed.py"


@pytest.fixture(scope="module")
def reports():
    finished = subprocess.run([sys.executable, EXAMPLE, "--json"], capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


def test_four_processes_run_one_job(reports):
    assert [report["process"] for report in reports] == [0, 1, 2, 3]
    losses = reports[0]["losses"]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 3
    assert all(report["losses"] == losses for report in reports), "the gradients are summed over processes"


def test_every_process_lowers_the_same_module(reports):
    assert len({report["module"] for report in reports}) == 1


def test_tags_are_in_every_processs_hlo(reports):
    for report in reports:
        assert all(count > 0 for count in report["tags"].values()), report


# Every kind of thing that has an order: keys of a tag, tags of a program, rules, functions, and sets and dictionaries on the way.
MODULE = """
import sys
import jax, jax.numpy as jnp, numpy as np
import hlotag

@jax.jit
def inner(x):
    return jnp.tanh(x) * 2.0

def loss(w, x):
    for n in range(6):
        with jax.named_scope(f"layer{n}"):
            x = hlotag.tag(jnp.sin(x @ w["a"]) * inner(x), {f"k{n % 4}": n, "b": "c", "a": "b"}, grad={"z": n, "y": "x"})
    with hlotag.tagged({"last": True, "first": False}):
        x, _ = jax.lax.scan(lambda x, _: (jnp.cos(x @ w["b"]), None), inner(x), None, length=3)
    return x.sum()

rules = [hlotag.Rule({"r": str(n), "q": "s"}, op=op, scope="layer*") for n, op in enumerate(["sine", "dot_general", "tanh"])]
hlotag.enable(rules=rules)
w = {"a": np.ones((4, 4), np.float32), "b": np.ones((4, 4), np.float32)}
lowered = jax.jit(jax.value_and_grad(loss)).lower(w, np.ones((4, 4), np.float32))
sys.stdout.write(lowered.as_text(debug_info=True))
"""


def test_the_module_is_the_same_bytes_whatever_the_hash_seed(run_python):
    texts = []
    for seed in ("0", "1", "31337"):
        finished = run_python(MODULE, PYTHONHASHSEED=seed)
        assert finished.returncode == 0, finished.stderr
        texts.append(finished.stdout)
    for tag in ('k3 = "3"', 'z = "5"', 'r = "1"', 'last = "true"'):
        assert tag in texts[0]
    assert len({hashlib.sha256(text.encode()).hexdigest() for text in texts}) == 1
