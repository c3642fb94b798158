# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that `make test-compilers` runs, once for each platform: with HLOTAG_COMPILERS=cpu, gpu, tpu."""

import os
from collections.abc import Iterable
from typing import Any

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


def _fixture(names: Iterable[str]) -> Any:
    @pytest.fixture(scope="module", params=list(names))
    def made(request: pytest.FixtureRequest) -> Compiler:
        return _made(request.param)

    return made


# A compiler for one device and one for four; those for four; these, and compilers for further kinds of hardware.
compiler = _fixture(KINDS.get(PLATFORM, {}))
four = _fixture(name for name in KINDS.get(PLATFORM, {}) if name.startswith("4"))
any_compiler = _fixture(KINDS.get(PLATFORM, {}) | FURTHER.get(PLATFORM, {}))
