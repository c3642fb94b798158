# SPDX-License-Identifier: Apache-2.0
"""The examples run, say what they did in few lines, and leave a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import requires

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"
# What each needs beside hlotag's own requirements: the extra "examples".
LIBRARIES = {
    "equinox_mlp": ["equinox", "optax"],
    "flax_linen": ["flax", "optax"],
    "flax_nnx": ["flax", "optax"],
    "haiku_convnet": ["haiku"],
    "keras_classifier": ["keras"],
    "numpyro_posterior": ["numpyro"],
    "offload": [],
    "scanned_transformer": [],
    "sharded": [],
}


def test_every_example_is_listed():
    helpers = {"show", "train_step", "distributed"}  # The last two have tests of their own.
    assert {path.stem for path in EXAMPLES.glob("*.py")} - helpers == set(LIBRARIES)


def test_the_page_of_examples_is_of_these():
    command = [sys.executable, str(EXAMPLES.parent / "tools" / "examples_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_example(name, tmp_path):
    requires.libraries(*LIBRARIES[name], extra="examples")
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--out", str(tmp_path)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "COLUMNS": "120"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "bitwise equal to JAX alone: True" in done.stdout
    assert len(done.stdout.splitlines()) < 20, done.stdout
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
