# SPDX-License-Identifier: Apache-2.0
"""Where every tag of a program went. The package is what `hlotag.audit` names, and can be called: `hlotag.audit(f, x)`."""

import sys
import types
from typing import TYPE_CHECKING, Any

from hlotag.audit.model import Effect, Op, Stage, Step, Stray, Tag, TagState
from hlotag.audit.views import Audit

if TYPE_CHECKING:
    from hlotag.audit.collect import audit

__all__ = ["Audit", "Effect", "Op", "Stage", "Step", "Stray", "Tag", "TagState", "audit"]


class _CallablePackage(types.ModuleType):
    """A package and a function cannot both be the attribute `audit` of `hlotag`; whichever was imported last would win."""

    def __call__(self, *args: Any, **kwargs: Any) -> Audit:
        return self.audit(*args, **kwargs)

    @property
    def audit(self) -> Any:
        from hlotag.audit.collect import audit  # It needs JAX's tracing; an audit of dumps does not.

        return audit


sys.modules[__name__].__class__ = _CallablePackage
