# SPDX-License-Identifier: Apache-2.0
"""The table of derivatives against what this JAX emits."""

import importlib.util
import sys
from pathlib import Path

import pytest
from jax import lax

TOOL = Path(__file__).parents[1] / "tools" / "derivation_table.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("derivation_table", TOOL)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_has_what_jax_emits(tool):
    assert tool.update(tool.Table.read()) == []


def test_a_form_is_what_the_derivative_emits(tool):
    assert tool.form(lax.sin, (tool.array(3, 4),), (0,)) == ("sin", [("cos", ("O0",), []), ("mul", ("T", "0"), [0])])


def test_rows_say_what_an_equation_emits(tool):
    row = tool.Table.read().rows["dot_general"]
    assert ("dot_general", ("T", "O1"), [0]) in row
