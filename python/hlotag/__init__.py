# SPDX-License-Identifier: Apache-2.0
"""Tags on the operations of a JAX program that survive autodiff, batching, control flow and XLA.

`hlotag.enable()` is enough for programs that already use `jax.experimental.xla_metadata`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hlotag._util.version import VERSION as _VERSION

if TYPE_CHECKING:
    from hlotag import xla as xla
    from hlotag.audit.collect import audit as audit
    from hlotag.audit.model import Effect as Effect
    from hlotag.audit.model import Op as Op
    from hlotag.audit.model import Step as Step
    from hlotag.audit.model import Tag as Tag
    from hlotag.audit.model import TagState as TagState
    from hlotag.audit.report import Problem as Problem
    from hlotag.audit.report import Report as Report
    from hlotag.audit.views import Audit as Audit
    from hlotag.errors import ArgumentError as ArgumentError
    from hlotag.errors import Diagnostic as Diagnostic
    from hlotag.errors import HlotagError as HlotagError
    from hlotag.errors import IncompatibleJaxlibError as IncompatibleJaxlibError
    from hlotag.errors import KeyIgnored as KeyIgnored
    from hlotag.errors import ParseError as ParseError
    from hlotag.errors import PassError as PassError
    from hlotag.errors import PassFailed as PassFailed
    from hlotag.errors import ScopeError as ScopeError
    from hlotag.errors import SlowHost as SlowHost
    from hlotag.errors import TagDropped as TagDropped
    from hlotag.errors import TagError as TagError
    from hlotag.errors import UnsupportedError as UnsupportedError
    from hlotag.errors import XlaError as XlaError
    from hlotag.lowering.dump import dump_to as dump_to
    from hlotag.lowering.hlo_stage import Record as Record
    from hlotag.lowering.hlo_stage import recorded as recorded
    from hlotag.lowering.staging import disable as disable
    from hlotag.lowering.staging import enable as enable
    from hlotag.lowering.staging import stage as stage
    from hlotag.passes.pipeline import DEFAULT_PIPELINE as DEFAULT_PIPELINE
    from hlotag.passes.pipeline import PassInfo as PassInfo
    from hlotag.passes.pipeline import PassOption as PassOption
    from hlotag.passes.pipeline import list_passes as list_passes
    from hlotag.passes.pipeline import run_passes as run_passes
    from hlotag.passes.plugins import get_include as get_include
    from hlotag.passes.plugins import load_pass_plugin as load_pass_plugin
    from hlotag.passes.python_passes import register_pass as register_pass
    from hlotag.passes.rules import Rule as Rule
    from hlotag.passes.rules import load_rules as load_rules
    from hlotag.tagging.calls import fuse_limit as fuse_limit
    from hlotag.tagging.calls import must_fuse_call as must_fuse_call
    from hlotag.tagging.calls import xla_metadata_call as xla_metadata_call
    from hlotag.tagging.calls import xla_metadata_call2 as xla_metadata_call2
    from hlotag.tagging.keys import Key as Key
    from hlotag.tagging.keys import register_key as register_key
    from hlotag.tagging.state import Stage as Stage
    from hlotag.tagging.state import active as active
    from hlotag.tagging.tags import set_xla_metadata as set_xla_metadata
    from hlotag.tagging.tags import tag as tag
    from hlotag.tagging.tags import tagged as tagged
    from hlotag.xla.computation import xla_computation as xla_computation


__version__ = _VERSION

# Loaded when first used: `hlotag-opt` needs the passes and not JAX.
_HOME = {
    "audit.model": ["Effect", "Op", "Step", "Tag", "TagState"],
    "audit.report": ["Problem", "Report"],
    "audit.views": ["Audit"],
    "lowering.hlo_stage": ["Record", "recorded"],
    "tagging.calls": ["fuse_limit", "must_fuse_call", "xla_metadata_call", "xla_metadata_call2"],
    "lowering.dump": ["dump_to"],
    "errors": [
        "ArgumentError",
        "Diagnostic",
        "HlotagError",
        "IncompatibleJaxlibError",
        "KeyIgnored",
        "ParseError",
        "PassError",
        "PassFailed",
        "ScopeError",
        "SlowHost",
        "TagDropped",
        "TagError",
        "UnsupportedError",
        "XlaError",
    ],
    "tagging.keys": ["Key", "register_key"],
    "passes.pipeline": ["DEFAULT_PIPELINE", "PassInfo", "PassOption", "list_passes", "run_passes"],
    "passes.plugins": ["get_include", "load_pass_plugin"],
    "passes.python_passes": ["register_pass"],
    "passes.rules": ["Rule", "load_rules"],
    "lowering.staging": ["disable", "enable", "stage"],
    "tagging.state": ["Stage", "active"],
    "tagging.tags": ["set_xla_metadata", "tag", "tagged"],
    "xla.computation": ["xla_computation"],
}
# Packages that are public names themselves.
_PACKAGES = ("audit", "xla")
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted([*_MODULE_OF, *_PACKAGES])  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
