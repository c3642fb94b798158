# SPDX-License-Identifier: Apache-2.0
"""An audit's problems as SARIF 2.1.0, which code hosts and editors show at source lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hlotag._util.version import VERSION
from hlotag.results.report import Problem

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_WARNINGS = ("unmatched rule", "unread key", "warning")


def dumps(problems: Sequence[Problem], folder: Path, audited: Path) -> str:
    """Writes problems as SARIF.

    Files below `folder`, the root of the repository, get relative paths. Problems without a line get that of the audited file,
    since GitHub rejects results without a location.
    """
    kinds = dict.fromkeys(problem.kind for problem in problems)
    driver = {"name": "hlotag", "version": VERSION, "rules": [{"id": kind, "shortDescription": {"text": kind}} for kind in kinds]}
    run = {"tool": {"driver": driver}, "results": [_result(problem, folder, audited) for problem in problems]}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _result(problem: Problem, folder: Path, audited: Path) -> dict[str, Any]:
    level = "warning" if problem.kind in _WARNINGS else "error"
    file, line = (Path(problem.file), problem.line) if problem.file else (audited, 1)
    place = {"artifactLocation": {"uri": _uri(file, folder)}, "region": {"startLine": max(1, line)}}
    message = {"text": f"{problem}"}
    return {"ruleId": problem.kind, "level": level, "message": message, "locations": [{"physicalLocation": place}]}


def _uri(file: Path, folder: Path) -> str:
    path = (folder / file).absolute()
    return quote(path.relative_to(folder).as_posix()) if path.is_relative_to(folder) else path.as_uri()
