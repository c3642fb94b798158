# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that the examples of `hlotag compare` have in their docstrings."""

import ast
import re
from pathlib import Path

from hlotag.cli import main
from hlotag.comparisons import Comparison

ROOT = Path(__file__).parents[1]


def commands_of(name: str) -> list[list[str]]:
    """The arguments of each `hlotag compare` in the docstring of an example."""
    text = ast.get_docstring(ast.parse((ROOT / "examples" / name).read_text())) or ""
    return [
        line.replace("'", "").split()[1:] for line in re.findall(r"^    (hlotag compare .*)$", text.replace("\\\n", ""), re.M)
    ]


def run_example(arguments: list[str], file: Path) -> Comparison:
    """Runs a command in the root of the repository, with two seconds of rounds."""
    assert main([*arguments, "--seconds", "2", "--json", str(file)]) == 0
    return Comparison.from_json(file.read_text(), file.name)


def growths(found: Comparison, measure: str) -> dict[str, float]:
    """By variant, the growth of a measure of the program."""
    return {each.name: amount.growth for each in found.outcomes if (amount := each.program.amount(measure))}
