# SPDX-License-Identifier: Apache-2.0
"""Fixtures that more than one test file uses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Before anything imports JAX: tests mean the same on every machine.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Four devices, for shard_map.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a fresh interpreter: run_python(code, ENVIRONMENT_VARIABLE="value") -> the finished process."""

    def run(code: str, *, input: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, **environment},
            input=input,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
