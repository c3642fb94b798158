# SPDX-License-Identifier: Apache-2.0
"""The modules that go through the HLO pass, each with its stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hlotag import _core
from hlotag._util.identity import ByIdentity
from hlotag.hlo.restore import restorable

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from hlotag.tagging.rules import Rule
    from hlotag.tagging.state import Stage

# By identity: jaxlib hashes modules by contents or by name.
stages: ByIdentity[Stage] = ByIdentity()


def has_work(module: ir.Module, stage: Stage) -> bool:
    """Whether the HLO pass of `stage` has something to do: tags to restore, or rules for collectives that XLA inserts."""
    patterns = stage.hlo + stage.op_names

    def has_tags(entries: Mapping[str, str]) -> bool:
        return bool(restorable(entries, patterns))

    return bool(patterns) and (bool(find_inserted_rules(module, stage)) or _core.any_entries(module, has_tags))


def find_inserted_rules(module: ir.Module, stage: Stage) -> Mapping[str, Rule]:
    """The rules for collectives that XLA inserts, by name. None for a program of one device."""
    attributes: Any = module.operation.attributes
    if stage.rules is None or not stage.rules.inserted or "mhlo.num_partitions" not in attributes:
        return {}
    return stage.rules.inserted if attributes["mhlo.num_partitions"].value > 1 else {}


def like(module: ir.Module, original: ir.Module) -> None:
    """Prepares `module` for the HLO pass if `original`, from which it was made, is prepared."""
    if (stage := stages.get(original)) is not None and has_work(module, stage):
        stages[module] = stage
