# SPDX-License-Identifier: Apache-2.0
"""Problems as SARIF 2.1.0, which code hosts and editors show at their lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hlotag._util.version import VERSION
from hlotag.audit.report import Problem

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_WARNINGS = ("unmatched rule", "unread key", "warning")


def dumps(problems: Sequence[Problem], folder: Path) -> str:
    """The problems as a SARIF text.

    Args:
        problems: What to write.
        folder: The root of the repository; files below are named from there.

    Returns:
        The text.
    """
    kinds = dict.fromkeys(problem.kind for problem in problems)
    driver = {"name": "hlotag", "version": VERSION, "rules": [{"id": kind, "shortDescription": {"text": kind}} for kind in kinds]}
    run = {"tool": {"driver": driver}, "results": [_result(problem, folder) for problem in problems]}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(problem: Problem, folder: Path) -> dict[str, Any]:
    level = "warning" if problem.kind in _WARNINGS else "error"
    result = {"ruleId": problem.kind, "level": level, "message": {"text": f"{problem}"}}
    if problem.file:
        place = {"artifactLocation": {"uri": _uri(Path(problem.file), folder)}, "region": {"startLine": max(1, problem.line)}}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _uri(file: Path, folder: Path) -> str:
    path = (folder / file).absolute()
    return quote(path.relative_to(folder).as_posix()) if path.is_relative_to(folder) else path.as_uri()
