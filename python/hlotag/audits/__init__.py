# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.audit`, which says what became of every tag of a program."""

from hlotag.audits.model import Apart, Effect, Instruction, Op, Origin, Tag, TagState, Verdict
from hlotag.audits.report import Problem, Report
from hlotag.audits.views import Audit
from hlotag.audits.work import Work

__all__ = [
    "Apart",
    "Audit",
    "Effect",
    "Instruction",
    "Op",
    "Origin",
    "Problem",
    "Report",
    "Tag",
    "TagState",
    "Verdict",
    "Work",
]
