# SPDX-License-Identifier: Apache-2.0
"""Tags on the operations of a JAX program that survive autodiff, batching, control flow and XLA.

`hlotag.enable()` is enough for programs that already use `jax.experimental.xla_metadata`.
"""

from importlib.metadata import version as _version

from hlotag.errors import (
    HlotagError,
    IncompatibleJaxlibError,
    ParseError,
    PassError,
    PipelineError,
    TagDropped,
    TagError,
)
from hlotag.pipeline import DEFAULT_PIPELINE, list_passes, run_passes
from hlotag.rules import Rule, load_rules
from hlotag.stage import disable, enable, stage
from hlotag.state import Stage, active
from hlotag.tags import set_xla_metadata, tag, tagged

__version__ = _version("hlotag")

__all__ = [
    "DEFAULT_PIPELINE",
    "HlotagError",
    "IncompatibleJaxlibError",
    "ParseError",
    "PassError",
    "PipelineError",
    "Rule",
    "Stage",
    "TagDropped",
    "TagError",
    "active",
    "disable",
    "enable",
    "list_passes",
    "load_rules",
    "run_passes",
    "set_xla_metadata",
    "stage",
    "tag",
    "tagged",
]
