# SPDX-License-Identifier: Apache-2.0
"""Fixtures that more than one test file uses."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before anything imports JAX: tests mean the same on every machine.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Four devices, for shard_map.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs code in a fresh interpreter: run_python(code, ENVIRONMENT_VARIABLE="value") -> the finished process.

    The test fails if the code does, unless `may_fail`.
    """

    def run(code: str, *, input: str | None = None, may_fail=False, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, **environment},
            input=input,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert may_fail or done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]
        return done

    return run


@pytest.fixture(scope="module")
def client() -> Any:
    """A client of two CPU devices."""
    from hlotag import xla

    return xla.make_cpu_client(num_devices=2)


@pytest.fixture(scope="module")
def serialized(client: Any) -> bytes:
    """An executable, serialized."""
    from xla_programs import ADD_HLO

    return client.compile_and_load(ADD_HLO).serialize()


@pytest.fixture
def staged() -> Iterator[None]:
    """Runs a test in the stage."""
    import hlotag

    with hlotag.stage():
        yield


@pytest.fixture
def off_afterwards() -> Iterator[None]:
    """Turns the stage and dumps off after a test that may have turned them on."""
    import hlotag

    yield
    hlotag.disable()
    hlotag.dump_to(None)
    assert hlotag.active() is None


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, as it does in a terminal; a shell starts jobs in the background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=["jax", "hlotag"])
def set_xla_metadata(request: pytest.FixtureRequest) -> Any:
    """The tagging function of JAX, and hlotag's."""
    from jax.experimental import xla_metadata

    import hlotag

    return {"jax": xla_metadata, "hlotag": hlotag}[request.param].set_xla_metadata
