# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that `make test-compilers` runs, once for each platform: with HLOTAG_COMPILERS=cpu, gpu, tpu."""

import os

import pytest

import requires

PLATFORM = os.environ.get("HLOTAG_COMPILERS", "")

# The tests take an environment of their own, which other test runs have not.
collect_ignore_glob = [] if PLATFORM else ["test_*.py"]

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if PLATFORM == "cpu":
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
if PLATFORM == "gpu":
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0"
if PLATFORM == "tpu":
    os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # There is no machine to ask what it is.
    os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"  # By processes: none of them has the chips.

from compilers import FURTHER, KINDS, Compiler, is_here  # noqa: E402  (XLA reads the variables when it is loaded)


def _made(name: str) -> Compiler:
    if not is_here(PLATFORM):
        requires.unmet(f"there is no compiler for {PLATFORM}: make test-compilers")
    return (KINDS[PLATFORM] | FURTHER.get(PLATFORM, {}))[name]()


@pytest.fixture(scope="module", params=KINDS.get(PLATFORM, {}))
def compiler(request: pytest.FixtureRequest) -> Compiler:
    """A compiler for one device, and one for four."""
    return _made(request.param)


@pytest.fixture(scope="module", params=[name for name in KINDS.get(PLATFORM, {}) if name.startswith("4")])
def four(request: pytest.FixtureRequest) -> Compiler:
    """A compiler for four devices."""
    return _made(request.param)


@pytest.fixture(scope="module", params=KINDS.get(PLATFORM, {}) | FURTHER.get(PLATFORM, {}))
def any_compiler(request: pytest.FixtureRequest) -> Compiler:
    """Those, and compilers for further kinds of hardware."""
    return _made(request.param)
