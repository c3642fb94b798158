# SPDX-License-Identifier: Apache-2.0
"""Which modules go through the HLO stage, and of which stage?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hlotag import _core
from hlotag._compat.bindings import capsule
from hlotag._util.identity import ByIdentity
from hlotag.hlo.restore import restorable

if TYPE_CHECKING:
    from hlotag.tagging.state import Stage

# Keys that JAX writes on the custom calls of kernels (LAPACK, Pallas). XLA keeps them, so they need no restoring.
_OF_KERNELS = frozenset({"num_batch_dims", "kernel_metadata"})

# By identity: jaxlib hashes modules by contents or by name.
stages: ByIdentity[Stage] = ByIdentity()


def has_work(module: Any, stage: Stage) -> bool:
    """Whether `module` has tags that the HLO stage of `stage` restores."""
    patterns = stage.hlo + stage.op_names

    def has_tags(entries: Mapping[str, str]) -> bool:
        return not _OF_KERNELS.issuperset(restorable(entries, patterns))

    return bool(patterns) and _core.any_entries(capsule(module), has_tags)


def like(module: Any, original: Any) -> None:
    """Prepares `module` for the HLO stage if `original`, from which it was made, is prepared."""
    if (stage := stages.get(original)) is not None and has_work(module, stage):
        stages[module] = stage
