# SPDX-License-Identifier: Apache-2.0
"""Where did every tag of a program go? The package itself is callable: `hlotag.audit(f, x)`."""

import sys
import types
from typing import TYPE_CHECKING, Any

from hlotag.audit.model import Apart, Effect, Op, Stage, Step, Stray, Tag, TagState, Verdict
from hlotag.audit.views import Audit

if TYPE_CHECKING:
    from hlotag.audit.collect import audit

__all__ = ["Apart", "Audit", "Effect", "Op", "Stage", "Step", "Stray", "Tag", "TagState", "Verdict", "audit"]


class _CallablePackage(types.ModuleType):
    """Makes the package callable: `hlotag.audit` can be either the package or the function, whichever is imported last."""

    def __call__(self, *args: Any, **kwargs: Any) -> Audit:
        return self.audit(*args, **kwargs)

    @property
    def audit(self) -> Any:
        from hlotag.audit.collect import audit  # Lazy, because it imports JAX's tracing; an audit of dumps needs no tracing.

        return audit


sys.modules[__name__].__class__ = _CallablePackage
