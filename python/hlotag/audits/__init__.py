# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.audit`, which says what became of every tag of a program."""

from hlotag.audits.model import Apart, Effect, Instruction, Kernel, Op, Origin, Tag, TagState, Verdict
from hlotag.audits.report import Problem, Report
from hlotag.audits.views import Audit

__all__ = [
    "Apart",
    "Audit",
    "Effect",
    "Instruction",
    "Kernel",
    "Op",
    "Origin",
    "Problem",
    "Report",
    "Tag",
    "TagState",
    "Verdict",
]
