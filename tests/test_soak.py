# SPDX-License-Identifier: Apache-2.0
"""The short form of benchmarks/soak.py: many functions in threads, each with stages of its own, and nothing kept of them."""

import gc
import importlib.util
import sys
from pathlib import Path

import jax
import pytest

import hlotag
from hlotag import _core
from hlotag.tagging import scopes, walk

pytestmark = pytest.mark.slow

PATH = Path(__file__).parent.parent / "benchmarks" / "soak.py"


def soak_module():
    spec = importlib.util.spec_from_file_location("soak", PATH)
    assert spec is not None and spec.loader is not None
    module = sys.modules["soak"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept():
    """What hlotag makes for each program or block."""
    jax.clear_caches()
    gc.collect()
    kinds = (walk.Walk, scopes._Entry, hlotag.Stage)
    # The compiled regular expressions and passes are shared; these are per program.
    objects = {kind.__name__: sum(type(x) is kind for x in gc.get_objects()) for kind in kinds}
    return objects | {"equations": _core.recorded_equations()}


def test_threads_keep_their_stages_and_nothing_is_kept():
    soak = soak_module()
    before = kept()
    memory = soak.soak(100, threads=4, samples=4)
    after = kept()
    # The innermost entry that a pool's thread or a context variable saw last may be alive; 400 stages and their blocks are not.
    assert all(after[kind] - before[kind] <= 8 for kind in after), (before, after)
    assert memory[-1] - memory[1] < 16, memory
