# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.audit`, which says where every tag of a program went."""

from hlotag.audits.model import Apart, Effect, Form, Instruction, Kernel, Op, Step, Stray, Tag, TagState, Verdict
from hlotag.audits.report import Problem, Report
from hlotag.audits.views import Audit

__all__ = [
    "Apart",
    "Audit",
    "Effect",
    "Form",
    "Instruction",
    "Kernel",
    "Op",
    "Problem",
    "Report",
    "Step",
    "Stray",
    "Tag",
    "TagState",
    "Verdict",
]
