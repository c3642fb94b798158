# SPDX-License-Identifier: Apache-2.0
"""The types of `hlotag.audit`, which says what became of every tag of a program."""

from hlotag.audits.audit import Audit
from hlotag.results.costs import Cost
from hlotag.results.report import Problem, Report
from hlotag.results.tags import Effect, Instruction, Op, Origin, Tag, TagState, Verdict

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
