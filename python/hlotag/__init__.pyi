# SPDX-License-Identifier: Apache-2.0
# The public names, and where they are defined. `__init__.py` reads this file too.

from . import audits as audits
from . import comparisons as comparisons
from . import errors as errors
from . import passes as passes
from . import profiles as profiles
from . import xla as xla
from .audits.audit import read_audit as read_audit
from .audits.blocks import auditing as auditing
from .audits.collect import audit as audit
from .comparisons.run import compare as compare
from .errors import HlotagError as HlotagError
from .errors import KeyIgnoredWarning as KeyIgnoredWarning
from .errors import PassFailedWarning as PassFailedWarning
from .errors import TagDroppedWarning as TagDroppedWarning
from .errors import TagIgnoredWarning as TagIgnoredWarning
from .lowering.dump import dump_to as dump_to
from .lowering.hlo_pass import recorded as recorded
from .lowering.staging import disable as disable
from .lowering.staging import enable as enable
from .lowering.staging import stage as stage
from .passes.pipeline import list_passes as list_passes
from .passes.pipeline import run_passes as run_passes
from .passes.python_passes import register_pass as register_pass
from .passes.rules import load_rules as load_rules
from .profiles.blocks import profiling as profiling
from .profiles.record import profile as profile
from .profiles.record import read_profile as read_profile
from .tagging.calls import fuse_limit as fuse_limit
from .tagging.calls import must_fuse_call as must_fuse_call
from .tagging.calls import xla_metadata_call as xla_metadata_call
from .tagging.calls import xla_metadata_call2 as xla_metadata_call2
from .tagging.keys import register_key as register_key
from .tagging.rules import Rule as Rule
from .tagging.state import active as active
from .tagging.tags import set_xla_metadata as set_xla_metadata
from .tagging.tags import tag as tag
from .tagging.tags import tagged as tagged

__version__: str
