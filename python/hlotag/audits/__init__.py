# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.audit`, which says what became of every tag of a program."""

from hlotag.audits.audit import Audit
from hlotag.audits.costs import Cost
from hlotag.audits.model import Effect, Instruction, Op, Origin, Tag, TagState, Verdict
from hlotag.audits.report import Problem, Report

__all__ = [
    "Audit",
    "Cost",
    "Effect",
    "Instruction",
    "Op",
    "Origin",
    "Problem",
    "Report",
    "Tag",
    "TagState",
    "Verdict",
]
