# SPDX-License-Identifier: Apache-2.0
"""What runs of the fuzzers and of the hostile inputs have shown; `tools/reliability.py` makes a page of it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = Path(__file__).parent / "record.json"
FINDINGS = Path(__file__).parent / "findings.toml"


@dataclass
class Outcome:
    """The sum of one kind of runs.

    Attributes:
        inputs: How many inputs were tried.
        faults: How many faults were injected.
        crashes: How often a process ended otherwise than it should.
        wrong: How often a result was not the right one.
        losses: How often something was lost: a tag, an old file, a result.
        seconds: How long it took; 0 where that means nothing.
    """

    inputs: int = 0
    faults: int = 0
    crashes: int = 0
    wrong: int = 0
    losses: int = 0
    seconds: int = 0


def read() -> dict[str, Outcome]:
    """All that is recorded, by the name of the kind."""
    return {name: Outcome(**fields) for name, fields in json.loads(PATH.read_text()).items()} if PATH.exists() else {}


def findings() -> dict[str, list[dict[str, str]]]:
    """What was found and mended, by the name of the kind: `what` it was, and the test or file by which it is `kept` so."""
    return tomllib.loads(FINDINGS.read_text())


def record(name: str, outcome: Outcome, *, add: bool = False) -> None:
    """Writes down an outcome in the place of an earlier one of that name, or, with `add`, on top of it."""
    everything = read()
    if add and name in everything:
        earlier = asdict(everything[name])
        outcome = Outcome(**{field: earlier[field] + value for field, value in asdict(outcome).items()})
    everything[name] = outcome
    text = json.dumps({key: asdict(value) for key, value in sorted(everything.items())}, indent=1)
    PATH.write_text(text + "\n")
