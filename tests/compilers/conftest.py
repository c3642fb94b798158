# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that `make test-compilers` runs, once for each platform: with HLOTAG_COMPILERS=gpu, then tpu."""

from __future__ import annotations

import os

import pytest

import requires

PLATFORM = os.environ.get("HLOTAG_COMPILERS", "")

# Each takes an environment of its own, which other test runs have not.
collect_ignore_glob = [] if PLATFORM else ["test_*.py"]


if PLATFORM:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + (" --xla_gpu_autotune_level=0" if PLATFORM == "gpu" else "")
    os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # There is no machine to ask what it is.
    os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"  # By processes: none of them has the chips.

    import compilers

    KINDS = {
        "gpu": {"H100": lambda: compilers.gpu("h100"), "4 H100": lambda: compilers.gpu("h100", 4)},
        "tpu": {"TPU v5e": lambda: compilers.tpu("v5e", 1), "4 TPU v5e": lambda: compilers.tpu("v5e")},
    }[PLATFORM]
    FURTHER = {
        "gpu": {"A100": lambda: compilers.gpu("a100"), "B200": lambda: compilers.gpu("b200")},
        "tpu": {"TPU v6e": lambda: compilers.tpu("v6e", 1)},
    }[PLATFORM]


def _made(kinds: dict, name: str) -> compilers.Compiler:
    if not compilers.is_here(PLATFORM):
        requires.unmet(f"there is no compiler for {PLATFORM}: make test-compilers")
    return kinds[name]()


@pytest.fixture(scope="module", params=list(KINDS) if PLATFORM else [])
def compiler(request: pytest.FixtureRequest) -> compilers.Compiler:
    """A compiler for one device, and one for four."""
    return _made(KINDS, request.param)


@pytest.fixture(scope="module", params=list(KINDS | FURTHER) if PLATFORM else [])
def any_compiler(request: pytest.FixtureRequest) -> compilers.Compiler:
    """Those, and compilers for further kinds of hardware."""
    return _made(KINDS | FURTHER, request.param)
